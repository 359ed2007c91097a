/** `apr inspect SOURCE` */

import { AprError } from '../../src/errors.ts';
import type { Inspection, InspectOptions } from '../../src/index.ts';
import type { Environment } from '../environment.ts';
import type { OptionValues } from '../options.ts';
import { onlySource } from '../positionals.ts';
import type { OutputForm } from '../render/error.ts';
import { inspectionLines, metadataLines, tokenLines } from '../render/inspection.ts';
import { jsonLine } from '../render/json.ts';
import { styleOf } from '../render/style.ts';
import { visible, write } from '../render/terminal.ts';
import { resolveSource, withAdvice } from '../source.ts';
import type { INSPECT_OPTIONS } from './inspect-options.ts';

/** @throws AprError for a file whose header cannot be read */
export async function inspect(
  positionals: readonly string[],
  values: OptionValues<typeof INSPECT_OPTIONS>,
  form: OutputForm,
  { stdout, stderr }: Environment,
): Promise<void> {
  const source = onlySource(positionals, 'apr inspect SOURCE');
  const options: InspectOptions = {
    metadata: values.metadata === true,
    vocabulary: values.vocab === true,
    template: values.template === true,
  };
  if (values['context-length'] !== undefined) options.contextLength = values['context-length'];
  if (values.threads !== undefined) options.threads = values.threads;
  const { inspectModel } = await import('../../src/index.ts');
  let found: Inspection;
  try {
    found = await inspectModel(await resolveSource(source, values, { stderr }), options);
  } catch (error) {
    throw withAdvice(error, source);
  }
  if (form === 'json') {
    await write(stdout, jsonLine({ ...found, model: source }));
    return;
  }
  if (values.template) {
    const template = found.chat_template_source;
    if (template == null) {
      const why = found.problems[0] ?? 'neither the file nor its architecture has one';
      throw new AprError('NOT_FOUND', `${source}: there is no chat template to show: ${why}`, { path: source });
    }
    await write(stdout, `${stdout.isTTY ? visible(template) : template}\n`);
    return;
  }
  const style = styleOf(stdout);
  await writeLines(stdout, inspectionLines(found, style));
  if (found.metadata !== undefined) await writeLines(stdout, metadataLines(found.metadata, style));
  if (found.vocabulary !== undefined) await writeLines(stdout, tokenLines(found.vocabulary, style));
}

/** Many lines in few pieces. */
async function writeLines(stdout: Environment['stdout'], lines: Iterable<string>): Promise<void> {
  let piece = '';
  for (const line of lines) {
    piece += `${line}\n`;
    if (piece.length < 1 << 16) continue;
    await write(stdout, piece);
    piece = '';
  }
  if (piece !== '') await write(stdout, piece);
}
