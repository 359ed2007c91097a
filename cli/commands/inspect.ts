/** `apr inspect SOURCE` */

import { AprError } from '../../src/errors.ts';
import type { Inspection } from '../../src/index.ts';
import type { Environment } from '../environment.ts';
import type { OptionValues } from '../options.ts';
import type { OutputForm } from '../render/error.ts';
import { visibleLine, write } from '../render/terminal.ts';
import { resolveSource, withAdvice } from '../source.ts';
import type { INSPECT_OPTIONS } from './inspect-options.ts';

/** @throws AprError for a file whose header cannot be read */
export async function inspect(
  positionals: readonly string[],
  values: OptionValues<typeof INSPECT_OPTIONS>,
  form: OutputForm,
  { stdout }: Environment,
): Promise<void> {
  const [source, ...surplus] = positionals;
  if (source === undefined || surplus.length > 0) {
    const message = `found ${positionals.length} arguments, expected the path of a model: apr inspect SOURCE`;
    throw new AprError('USAGE', message, { found: positionals.length, expected: 1 });
  }
  const { inspectModel } = await import('../../src/index.ts');
  let found: Inspection;
  try {
    found = await inspectModel(resolveSource(source), { metadata: values.metadata === true });
  } catch (error) {
    throw withAdvice(error, source);
  }
  if (form === 'json') await write(stdout, `${JSON.stringify({ ...found, model: source })}\n`);
  else for (const line of lines(found)) await write(stdout, `${visibleLine(line)}\n`);
}

function lines(found: Inspection): string[] {
  const rows: (readonly [string, string])[] = [
    ['name', found.name ?? 'not given'],
    ['format', `${found.format} version ${found.format_version}, ${size(found.file_bytes)}`],
    ['architecture', found.architecture ?? 'not given'],
    ['parameters', `${(found.parameters / 1e6).toFixed(2)} M in ${found.tensors} tensors`],
  ];
  for (const [type, { tensors, values, bytes }] of Object.entries(found.tensor_types)) {
    const share = ((100 * values) / Math.max(1, found.parameters)).toFixed(1);
    rows.push([`  ${type}`, `${tensors} tensors, ${share} % of the parameters, ${size(bytes)}`]);
  }
  const hp = found.hyperparameters;
  if (hp !== undefined) {
    rows.push(
      ['layers', `${hp.blockCount} of width ${hp.embeddingLength}, inner width ${hp.feedForwardLength}`],
      ['heads', `${hp.headCount} of size ${hp.headDim}, ${hp.headCountKv} for keys and values`],
      ['context', `${hp.contextLength} positions`],
      ['RoPE', `base ${hp.ropeFreqBase}, ${hp.ropeDims} values a head, scaling ${hp.ropeScaling.type}`],
    );
    if (hp.expertCount > 0) {
      rows.push([
        'experts',
        `${hp.expertCount}, ${hp.expertUsedCount} used, inner width ${hp.expertFeedForwardLength}`,
      ]);
    }
  }
  for (const [key, value] of Object.entries(found.defaults))
    rows.push(['assumed', `${key} = ${value}: the file does not say`]);
  if (found.tokenizer !== undefined) {
    const { model, pre, vocabulary_size, add_bos, special_tokens } = found.tokenizer;
    rows.push([
      'tokenizer',
      `${model}${pre === undefined ? '' : ` (${pre})`}, ${vocabulary_size} tokens${add_bos ? ', BOS first' : ''}`,
    ]);
    for (const [key, { id, text }] of Object.entries(special_tokens)) {
      rows.push([`  ${key.replace(/^tokenizer\.ggml\.|_token_id$/g, '')}`, `${id} ${JSON.stringify(text)}`]);
    }
  }
  if (found.chat_template !== undefined) rows.push(['chat template', TEMPLATES[found.chat_template]]);
  for (const problem of found.problems) rows.push(['problem', problem]);
  for (const [key, value] of Object.entries(found.metadata ?? {})) rows.push([key, JSON.stringify(value)]);
  const width = Math.max(...rows.slice(0, 40).map(([name]) => name.length));
  return rows.map(([name, text]) => `${name.padEnd(width)}  ${text}`);
}

const TEMPLATES = {
  file: "the file's own",
  'built-in': 'none in the file, a built-in one fits',
  none: 'none',
} as const;

function size(bytes: number): string {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(2)} GB` : `${(bytes / 1e6).toFixed(2)} MB`;
}
