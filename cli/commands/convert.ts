/** `apr convert SOURCE -o FILE` */

import { AprError } from '../../src/errors.ts';
import type { Environment } from '../environment.ts';
import type { OptionValues } from '../options.ts';
import type { OutputForm } from '../render/error.ts';
import { jsonLine } from '../render/json.ts';
import { visibleLine, write } from '../render/terminal.ts';
import { resolveSource } from '../source.ts';
import type { CONVERT_OPTIONS } from './convert-options.ts';

/** @throws AprError for everything that goes wrong */
export async function convert(
  positionals: readonly string[],
  values: OptionValues<typeof CONVERT_OPTIONS>,
  form: OutputForm,
  { stdout, stderr }: Environment,
): Promise<void> {
  const [source, ...surplus] = positionals;
  if (source === undefined) {
    throw new AprError('USAGE', 'SOURCE is missing, expected the path of a model: apr convert SOURCE -o FILE');
  }
  if (surplus.length > 0) {
    const message = `found ${positionals.length} arguments, expected SOURCE alone; the file to write goes behind -o`;
    throw new AprError('USAGE', message, { found: positionals.length, expected: 1 });
  }
  if (values.output === undefined) {
    const message = '-o (--output) is missing, expected the file to write, such as -o model.apr';
    throw new AprError('USAGE', message, { option: '--output' });
  }
  const { convertModel } = await import('../../src/index.ts');
  const path = await resolveSource(source, values, { stderr });
  const done = await convertModel(path, values.output, { force: values.force === true });
  if (form === 'json') {
    await write(stdout, jsonLine(done));
    return;
  }
  if (values.quiet) return;
  const what = `${done.from} to ${done.to}, ${done.tensors} tensors, ${(done.bytes / 1e6).toFixed(1)} MB`;
  stderr.write(`${visibleLine(`wrote ${done.target}: ${what}`)}\n`);
}
