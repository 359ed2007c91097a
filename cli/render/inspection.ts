/** What `apr inspect` found, as people read it. */

import type { Inspection, MemoryEstimate, TokenEntry } from '../../src/index.ts';
import type { Style } from './style.ts';
import { visibleLine } from './terminal.ts';
import { plural, showBytes, showCount, showScalar } from './units.ts';

type Row = readonly [name: string, text: string];

/** Text of metadata that is longer is cut; JSON has all of it. */
const LONGEST_TEXT = 200;

const TEMPLATES = {
  file: "the file's own; --template shows it",
  'built-in': 'none in the file, a built-in one fits; --template shows it',
  none: 'none: a prompt is the whole input of the model',
} as const;

export function inspectionLines(found: Inspection, style: Style): string[] {
  const rows: Row[] = [
    ['name', found.name ?? 'not given'],
    ['format', `${found.format} version ${found.format_version}, ${showBytes(found.file_bytes)}`],
    ['architecture', found.architecture ?? 'not given'],
    ['parameters', `${showCount(found.parameters)} in ${plural(found.tensors, 'tensor')}`],
    ...typeRows(found),
    ...modelRows(found),
    ...Object.entries(found.defaults).map(
      ([key, value]): Row => ['assumed', `${key} = ${showScalar(value)}: the file does not say`],
    ),
    ...tokenizerRows(found),
  ];
  if (found.chat_template !== undefined) rows.push(['chat template', TEMPLATES[found.chat_template]]);
  if (found.memory !== undefined) rows.push(...memoryRows(found.memory));
  const width = Math.max(...rows.map(([name]) => name.length));
  return [
    ...rows.map(([name, text]) => `${style.bold(visibleLine(name).padEnd(width))}  ${visibleLine(text)}`),
    ...found.problems.map((text) => `${style.colour(5, 'problem'.padEnd(width))}  ${visibleLine(text)}`),
  ];
}

function typeRows({ tensor_types: types, file_type, bits_per_weight, parameters }: Inspection): Row[] {
  const bits = `${bits_per_weight.toFixed(2)} bits a parameter`;
  const rows: Row[] = [['quantisation', file_type === undefined ? bits : `${file_type}, ${bits}`]];
  for (const [type, { tensors, values, bytes }] of Object.entries(types)) {
    const share = ((100 * values) / Math.max(1, parameters)).toFixed(1);
    rows.push([`  ${type}`, `${plural(tensors, 'tensor')}, ${share} % of the parameters, ${showBytes(bytes)}`]);
  }
  return rows;
}

function modelRows({ hyperparameters: hp }: Inspection): Row[] {
  if (hp === undefined) return [];
  const { type } = hp.ropeScaling;
  const factor = 'factor' in hp.ropeScaling ? ` by ${showScalar(hp.ropeScaling.factor)}` : '';
  const rows: Row[] = [
    ['layers', `${hp.blockCount} of width ${hp.embeddingLength}, inner width ${hp.feedForwardLength}`],
    ['heads', `${hp.headCount} of size ${hp.headDim}, ${hp.headCountKv} for keys and values`],
    ['context', `${hp.contextLength} positions`],
    ['RoPE', `base ${showScalar(hp.ropeFreqBase)}, ${hp.ropeDims} values a head, scaling ${type}${factor}`],
  ];
  if (hp.slidingWindow > 0) rows.push(['window', `${hp.slidingWindow} positions, in the layers that have one`]);
  if (hp.expertCount > 0) {
    const text = `${hp.expertCount}, ${hp.expertUsedCount} used, inner width ${hp.expertFeedForwardLength}`;
    rows.push(['experts', text]);
  }
  return rows;
}

function tokenizerRows({ tokenizer }: Inspection): Row[] {
  if (tokenizer === undefined) return [];
  const { model, pre, vocabulary_size, add_bos, add_eos, special_tokens, end_of_generation } = tokenizer;
  const added = `${add_bos ? ', BOS first' : ''}${add_eos ? ', EOS last' : ''}`;
  return [
    ['tokenizer', `${model}${pre === undefined ? '' : ` (${pre})`}, ${vocabulary_size} tokens${added}`],
    ...Object.entries(special_tokens).map(([key, { id, text }]): Row => {
      const ends = end_of_generation.includes(id) ? ', ends an answer' : '';
      return [`  ${key.replace(/^tokenizer\.ggml\.|_token_id$/g, '')}`, `${id} ${JSON.stringify(text)}${ends}`];
    }),
  ];
}

function memoryRows(memory: MemoryEstimate): Row[] {
  const { context_length, threads, weight_bytes, kv_cache_bytes, compute_bytes, total_bytes } = memory;
  const rows: Row[] = [
    ['memory', `${showBytes(total_bytes)} for ${context_length} positions and ${plural(threads, 'thread')}`],
    ['  weights', showBytes(weight_bytes)],
    ['  KV cache', `${showBytes(kv_cache_bytes)}, ${showBytes(memory.kv_cache_bytes_per_position)} a position`],
    ['  computing', showBytes(compute_bytes)],
  ];
  const { available_bytes: available, largest_context_length: largest } = memory;
  if (available === undefined) return rows;
  if (memory.fits) rows.push(['  fits here', `yes, ${showBytes(available)} are free`]);
  else {
    const advice =
      largest === undefined || largest === 0
        ? 'and no context is short enough'
        : `a context of about ${largest} positions would fit (-c ${largest})`;
    rows.push(['  fits here', `no, ${showBytes(available)} are free; ${advice}`]);
  }
  return rows;
}

export function metadataLines(metadata: NonNullable<Inspection['metadata']>, style: Style): string[] {
  const rows = Object.entries(metadata).map(([key, value]): Row => [visibleLine(key), showScalar(value)]);
  const width = Math.min(60, Math.max(0, ...rows.map(([key]) => key.length)));
  return [
    '',
    style.bold('metadata'),
    ...rows.map(([key, text]) => {
      const cut =
        text.length > LONGEST_TEXT
          ? `${text.slice(0, LONGEST_TEXT)}… (${text.length} characters; --json has all)`
          : text;
      return `  ${key.padEnd(width)}  ${visibleLine(cut)}`;
    }),
  ];
}

export function* tokenLines(vocabulary: readonly TokenEntry[], style: Style): Generator<string> {
  yield '';
  yield style.bold('tokens');
  const width = String(vocabulary.length).length + 2;
  for (const { id, type, text, token } of vocabulary) {
    // A token that is a part of a character has no text; what the file calls it says more.
    const shown = text.includes('\uFFFD') ? `${JSON.stringify(text)} (${JSON.stringify(token)})` : JSON.stringify(text);
    yield `${String(id).padStart(width)}  ${type.padEnd(11)}  ${visibleLine(shown)}`;
  }
}
