/** Writes a model as an .apr file, version 2. */

import { AprError } from '../../errors.ts';
import { type ByteSink, copyPadded, padded } from '../byte-sink.ts';
import { crc32 } from '../crc32.ts';
import type { Metadata, StringArray } from '../metadata.ts';
import type { ModelFile } from '../model-file.ts';
import { printable } from '../printable.ts';
import { HYPERPARAMETERS, ROPE_TYPES } from './foreign.ts';
import { ALIGNMENT, FLAG, FOOTER_BYTES, HEADER_BYTES, writeHeader } from './header.ts';
import { MAX_METADATA_BYTES } from './metadata.ts';
import { type IndexEntry, MAX_NAME_BYTES, writeIndex } from './tensor-index.ts';
import { toGgufName, toHuggingFaceName } from './tensor-names.ts';
import { type Json, toTypedJson } from './typed-json.ts';

/** Top-level keys that hold strings of a GGUF key. */
const SHARED = {
  'tokenizer.ggml.tokens': 'tokenizer.vocabulary',
  'tokenizer.ggml.merges': 'tokenizer.merges',
} as const;

/**
 * Tensors keep their bytes and their order, metadata its types (under `gguf`); vocabulary and chat template are
 * embedded.
 * @returns bytes written
 * @throws AprError UNSUPPORTED for tensor names that the format cannot hold, or what the sink and the source throw
 */
export async function writeApr(file: ModelFile, sink: ByteSink): Promise<number> {
  const json = new TextEncoder().encode(JSON.stringify(describe(file)));
  if (json.length > MAX_METADATA_BYTES) {
    const message = `${file.source.name}: the metadata comes to ${json.length} bytes of JSON, expected at most ${MAX_METADATA_BYTES}`;
    throw new AprError('UNSUPPORTED', message);
  }
  let dataSize = 0;
  const entries = [...file.tensors.values()].map((tensor): IndexEntry => {
    const offset = dataSize;
    dataSize += padded(tensor.byteLength, ALIGNMENT);
    return { name: storedName(file.source.name, tensor.name), tensor, offset };
  });
  const index = writeIndex(entries);
  const indexOffset = HEADER_BYTES + padded(json.length, ALIGNMENT);
  const dataOffset = indexOffset + padded(index.length, ALIGNMENT);
  const header = writeHeader({
    flags: flagsOf(file),
    tensorCount: entries.length,
    metadataOffset: HEADER_BYTES,
    metadataSize: json.length,
    indexOffset,
    dataOffset,
  });

  let crc = 0;
  const summed: ByteSink = {
    write: async (bytes) => {
      crc = crc32(bytes, crc);
      await sink.write(bytes);
    },
  };
  await summed.write(header);
  await summed.write(json);
  await summed.write(new Uint8Array(indexOffset - HEADER_BYTES - json.length));
  await summed.write(index);
  await summed.write(new Uint8Array(dataOffset - indexOffset - index.length));
  for (const { tensor } of entries) await copyPadded(summed, file.source, tensor, ALIGNMENT);
  const footer = new Uint8Array(FOOTER_BYTES);
  new DataView(footer.buffer).setUint32(0, crc, true);
  await sink.write(footer);
  return dataOffset + dataSize + FOOTER_BYTES;
}

function storedName(source: string, name: string): string {
  const stored = toHuggingFaceName(name);
  const what = `${source}: tensor "${printable(name)}"`;
  if (toGgufName(stored) !== name) {
    // It has a Hugging Face name in a GGUF file, and would come back as another tensor.
    throw new AprError(
      'UNSUPPORTED',
      `${what} cannot keep its name in an .apr file, where that stands for "${toGgufName(stored)}"`,
    );
  }
  const { length } = new TextEncoder().encode(stored);
  if (length <= MAX_NAME_BYTES) return stored;
  throw new AprError(
    'UNSUPPORTED',
    `${what}: its name has ${length} bytes in an .apr file, expected at most ${MAX_NAME_BYTES}`,
  );
}

function flagsOf({ metadata, tensors }: ModelFile): number {
  const quantized = [...tensors.values()].some(({ type }) => type.blockSize > 1);
  const hasVocabulary = metadata.typeOf('tokenizer.ggml.tokens') === 'array';
  return FLAG.rowMajor | (quantized ? FLAG.quantized : 0) | (hasVocabulary ? FLAG.hasVocabulary : 0);
}

/** The metadata section: the fields that readers of the format look for, and all of GGUF's with their types. */
function describe({ metadata, tensors, version }: ModelFile): { [key: string]: Json } {
  const text = (key: string): string | undefined => optional(metadata, key, 'string');
  const architecture = text('general.architecture');
  const out: { [key: string]: Json } = {};
  const put = (key: string, value: Json | undefined): void => {
    if (value !== undefined) out[key] = value;
  };
  put('model_type', architecture);
  put('architecture', architecture);
  for (const key of ['name', 'description', 'author', 'license', 'version']) put(key, text(`general.${key}`));
  out.original_format = 'gguf';
  out.total_size = sum(tensors, ({ byteLength }) => byteLength);
  out.param_count = sum(tensors, ({ shape }) => shape.reduce((product, size) => product * size, 1));
  for (const [key, suffix] of HYPERPARAMETERS) {
    const value: number | undefined = optional(metadata, `${architecture}.${suffix}`, 'number');
    if (value !== undefined && Number.isFinite(value)) put(key, value);
  }
  if (architecture !== undefined && Object.hasOwn(ROPE_TYPES, architecture)) put('rope_type', ROPE_TYPES[architecture]);

  const tokens = strings(metadata, 'tokenizer.ggml.tokens');
  const merges = strings(metadata, 'tokenizer.ggml.merges');
  const shared: Record<string, string> = {};
  if (tokens !== undefined) {
    const kind = text('tokenizer.ggml.model');
    out['tokenizer.vocabulary'] = allOf(tokens);
    shared['tokenizer.ggml.tokens'] = SHARED['tokenizer.ggml.tokens'];
    out['tokenizer.vocab_size'] = tokens.length;
    out.vocab_size = tokens.length;
    put('tokenizer.model_type', kind === 'gpt2' ? 'bpe' : kind);
    put('tokenizer.pre_type', text('tokenizer.ggml.pre'));
    put('tokenizer.architecture', architecture);
    const special: [string, string][] = [];
    for (const [name, key] of [
      ['bos', 'bos'],
      ['eos', 'eos'],
      ['unk', 'unknown'],
      ['pad', 'padding'],
    ] as const) {
      const id: number | undefined = optional(metadata, `tokenizer.ggml.${key}_token_id`, 'number');
      if (id === undefined || !(id >= 0 && id < tokens.length)) continue;
      special.push([`${name}_token`, tokens.at(id)]);
      if (name === 'bos' || name === 'eos') out[`tokenizer.${name}_token_id`] = id;
    }
    out.special_tokens = Object.fromEntries(special);
  }
  if (merges !== undefined) {
    out['tokenizer.merges'] = allOf(merges);
    shared['tokenizer.ggml.merges'] = SHARED['tokenizer.ggml.merges'];
  }
  put('chat_template', text('tokenizer.chat_template'));
  put('tokenizer.chat_template', text('tokenizer.chat_template'));
  out.gguf = { version, metadata: toTypedJson(metadata, shared) };
  return out;
}

function optional<T extends 'string' | 'number'>(
  metadata: Metadata,
  key: string,
  type: T,
): (T extends 'string' ? string : number) | undefined {
  const value = metadata.value(key);
  return typeof value === type ? (value as T extends 'string' ? string : number) : undefined;
}

function strings(metadata: Metadata, key: string): StringArray | undefined {
  const value = metadata.value(key);
  return typeof value === 'object' && value.kind === 'strings' ? value : undefined;
}

function allOf(strings: StringArray): string[] {
  return Array.from({ length: strings.length }, (_, i) => strings.at(i));
}

function sum<T>(tensors: ReadonlyMap<string, T>, of: (tensor: T) => number): number {
  let total = 0;
  for (const tensor of tensors.values()) total += of(tensor);
  return total;
}
