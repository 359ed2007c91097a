/** Tokenizers to test on: of files in the repository, of files beside it, and made of a few tokens. */

import { join } from 'node:path';
import { REPOSITORY } from '../../bench/repository.ts';
import { GgufMetadata, stringArray } from '../../src/formats/gguf/metadata.ts';
import type { Metadata, MetadataTypeName, MetadataValue, StringArray } from '../../src/formats/metadata.ts';
import { openModel } from '../../src/formats/open-model.ts';
import { openFileSource } from '../../src/platform/node/file-source.ts';
import { createTokenizer, type Tokenizer } from '../../src/tokenizer/index.ts';

/** The repository, with a slash at its end. */
export const ROOT = `${REPOSITORY}/`;
/** Vectors and models that the repository does not contain; tests that need them skip where they are absent. */
export const SHARED = join(REPOSITORY, '..', 'shared/');
export { DEMO } from '../repository.ts';

export async function loadMetadata(path: string): Promise<Metadata> {
  const source = await openFileSource(path);
  try {
    return (await openModel(source)).metadata;
  } finally {
    await source.close();
  }
}

export async function loadTokenizer(path: string): Promise<Tokenizer> {
  return createTokenizer(await loadMetadata(path));
}

/** A packed array as a file has it: with other bytes between the strings. */
export function packed(strings: readonly (string | Uint8Array)[]): StringArray {
  const pieces = strings.map((text) => (typeof text === 'string' ? new TextEncoder().encode(text) : text));
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length + 8, 0));
  const starts = new Uint32Array(pieces.length);
  const ends = new Uint32Array(pieces.length);
  let at = 0;
  pieces.forEach((piece, index) => {
    starts[index] = at + 8;
    bytes.fill(0x61, at, at + 8);
    bytes.set(piece, at + 8);
    at += 8 + piece.length;
    ends[index] = at;
  });
  return stringArray(bytes, starts, ends);
}

function entryOf(value: unknown): { type: MetadataTypeName; value: MetadataValue } {
  if (typeof value === 'string') return { type: 'string', value };
  if (typeof value === 'boolean') return { type: 'bool', value };
  if (typeof value === 'number') return { type: value < 0 ? 'int32' : 'uint32', value };
  const list = value as readonly unknown[];
  if (list.every((item) => typeof item === 'number')) {
    const numbers = list as readonly number[];
    const values = numbers.every(Number.isInteger) ? Int32Array.from(numbers) : Float32Array.from(numbers);
    return { type: 'array', value: { kind: 'numbers', length: values.length, values } };
  }
  return { type: 'array', value: packed(list as readonly (string | Uint8Array)[]) };
}

/** Metadata of a made-up file; keys without a dot are under `tokenizer.ggml`. */
export function metadataOf(entries: Readonly<Record<string, unknown>>): Metadata {
  return new GgufMetadata(
    'made-up.gguf',
    new Map(
      Object.entries(entries)
        .filter(([, value]) => value !== undefined)
        .map(([key, value]) => [key.includes('.') ? key : `tokenizer.ggml.${key}`, entryOf(value)]),
    ),
  );
}

/** The 256 letters of byte-level BPE, in the order of their bytes. */
export const ALPHABET: readonly string[] = (() => {
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const prints = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
    return String.fromCharCode(prints ? byte : next++);
  });
})();

/** Entries of a byte-level vocabulary: the alphabet (id = byte), then `words`, then special tokens by their types. */
export function bpeEntries(
  merges: readonly string[],
  special: Readonly<Record<string, number>> = {},
): Record<string, unknown> {
  const tokens = [...ALPHABET, ...merges.map((merge) => merge.replace(' ', '')), ...Object.keys(special)];
  const types = tokens.map((token, id) => (id < 256 + merges.length ? 1 : special[token]!));
  return { model: 'gpt2', pre: 'gpt-2', tokens, merges: merges.length > 0 ? merges : ['a a'], token_type: types };
}
