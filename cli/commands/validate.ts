/** `apr validate SOURCE` */

import { AprError, EXIT_STATUS } from '../../src/errors.ts';
import type { TensorQuality, Validation } from '../../src/index.ts';
import type { Environment } from '../environment.ts';
import type { OptionValues } from '../options.ts';
import type { OutputForm } from '../render/error.ts';
import { jsonLine } from '../render/json.ts';
import { visibleLine, write } from '../render/terminal.ts';
import { resolveSource } from '../source.ts';
import type { VALIDATE_OPTIONS } from './validate-options.ts';

/**
 * @returns the exit status: 0 when the model would run, that of CONTRACT otherwise
 * @throws AprError for a file that cannot be read
 */
export async function validate(
  positionals: readonly string[],
  values: OptionValues<typeof VALIDATE_OPTIONS>,
  form: OutputForm,
  { stdout, stderr }: Environment,
): Promise<number> {
  const [source, ...surplus] = positionals;
  if (source === undefined) {
    throw new AprError('USAGE', 'SOURCE is missing, expected the path of a model: apr validate SOURCE');
  }
  if (surplus.length > 0) {
    const message = `found ${positionals.length} arguments, expected SOURCE alone`;
    throw new AprError('USAGE', message, { found: positionals.length, expected: 1 });
  }
  const { validateModel } = await import('../../src/index.ts');
  const result = await validateModel(await resolveSource(source, values, { stderr }), {
    quality: values.quality === true,
  });
  if (form === 'json') await write(stdout, jsonLine({ ...result, model: source }));
  else for (const line of lines(source, result, values.quiet === true)) await write(stdout, `${visibleLine(line)}\n`);
  return result.valid ? 0 : EXIT_STATUS.CONTRACT;
}

function lines(source: string, result: Validation, quiet: boolean): string[] {
  const { findings, quality, format, architecture, tensors, valid } = result;
  const out = findings.map(({ severity, rule, message }) => `${severity}: ${message} (${rule})`);
  if (quiet) return out;
  if (quality !== undefined) {
    const types = [...new Set(Object.values(quality.not_decoded))];
    const skipped = Object.keys(quality.not_decoded).length;
    if (skipped > 0) out.push(`not looked at: the values of ${skipped} tensors of type ${types.join(', ')}`);
    out.push(`looked at ${sum(quality.tensors, 'count')} values: ${sum(quality.tensors, 'zeros')} zeros`);
  }
  const count = findings.filter(({ severity }) => severity === 'error').length;
  const verdict = valid ? 'valid' : `not valid, ${count} ${count === 1 ? 'error' : 'errors'}`;
  out.push(`${source}: ${format}, ${architecture ?? 'no architecture'}, ${tensors} tensors: ${verdict}`);
  return out;
}

function sum(tensors: readonly TensorQuality[], key: 'count' | 'zeros'): number {
  return tensors.reduce((total, tensor) => total + tensor[key], 0);
}
