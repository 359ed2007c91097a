/**
 * Writes GGUF version 3 files tensor by tensor, a few MB in memory at a time.
 * Format: ggml's docs/gguf.md.
 */

import { closeSync, openSync, writeSync } from 'node:fs';
import { type GgmlTypeName, ggmlType, rowBytes } from '../../src/formats/ggml-types.ts';

/** Value types of GGUF metadata that these files use, with their ids. */
const VALUE_IDS = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 } as const;
const ALIGNMENT = 32;
const CHUNK_BYTES = 4 << 20;

type Scalar = 'u32' | 'i32' | 'f32' | 'bool' | 'string';

export type MetadataValue =
  | { readonly type: Scalar; readonly value: number | boolean | string }
  | { readonly type: 'array'; readonly of: Scalar; readonly value: readonly (number | boolean | string)[] };

export const u32 = (value: number): MetadataValue => ({ type: 'u32', value });
export const f32 = (value: number): MetadataValue => ({ type: 'f32', value });
export const bool = (value: boolean): MetadataValue => ({ type: 'bool', value });
export const string = (value: string): MetadataValue => ({ type: 'string', value });
export const array = (of: Scalar, value: readonly (number | string)[]): MetadataValue => ({ type: 'array', of, value });

export interface TensorSource {
  readonly name: string;
  readonly type: GgmlTypeName;
  /** ggml order: row length first. */
  readonly shape: readonly number[];
  /** Writes the next whole rows; called in order with chunks until the tensor is full. */
  fill(chunk: Uint8Array): void;
}

/**
 * Writes a file, replacing any of that name.
 * @returns its size in bytes
 * @throws RangeError for a row length that is no multiple of the type's block size
 */
export function writeGguf(
  path: string,
  metadata: Readonly<Record<string, MetadataValue>>,
  tensors: readonly TensorSource[],
): number {
  const placed = place(tensors);
  const header = encodeHeader(metadata, placed);
  const file = openSync(path, 'w');
  let written = 0;
  const write = (bytes: Uint8Array): void => {
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
    written += bytes.length;
  };
  const pad = (): void => write(new Uint8Array(-written & (ALIGNMENT - 1)));
  try {
    write(header);
    pad();
    // Four spare bytes: a chunk may be filled in words.
    const buffer = new Uint8Array(CHUNK_BYTES + 4);
    for (const { source, rowLength, rows } of placed) {
      const step = Math.max(1, Math.floor(CHUNK_BYTES / rowLength));
      for (let row = 0; row < rows; row += step) {
        const chunk = buffer.subarray(0, rowLength * Math.min(step, rows - row));
        source.fill(chunk);
        write(chunk);
      }
      pad();
    }
  } finally {
    closeSync(file);
  }
  return written;
}

interface PlacedTensor {
  readonly source: TensorSource;
  /** Bytes. */
  readonly rowLength: number;
  readonly rows: number;
  readonly offset: number;
}

function place(tensors: readonly TensorSource[]): PlacedTensor[] {
  let offset = 0;
  return tensors.map((source) => {
    const [width = 1, ...rest] = source.shape;
    const type = ggmlType(source.type);
    if (width % type.blockSize !== 0) {
      throw new RangeError(
        `tensor ${source.name}: row length ${width}, expected a multiple of ${type.blockSize} for ${type.name}`,
      );
    }
    const rowLength = rowBytes(type, width);
    if (rowLength > CHUNK_BYTES) throw new RangeError(`tensor ${source.name}: a row of ${rowLength} bytes is too long`);
    const rows = rest.reduce((product, length) => product * length, 1);
    const placed = { source, rowLength, rows, offset };
    offset = Math.ceil((offset + rowLength * rows) / ALIGNMENT) * ALIGNMENT;
    return placed;
  });
}

function encodeHeader(metadata: Readonly<Record<string, MetadataValue>>, tensors: readonly PlacedTensor[]): Uint8Array {
  const out = new HeaderBytes();
  out.raw(Buffer.from('GGUF'));
  out.u32(3);
  out.u64(tensors.length);
  out.u64(Object.keys(metadata).length);
  for (const [key, entry] of Object.entries(metadata)) {
    out.string(key);
    out.u32(VALUE_IDS[entry.type]);
    if (entry.type !== 'array') {
      out.scalar(entry.type, entry.value);
      continue;
    }
    out.u32(VALUE_IDS[entry.of]);
    out.u64(entry.value.length);
    for (const value of entry.value) out.scalar(entry.of, value);
  }
  for (const { source, offset } of tensors) {
    out.string(source.name);
    out.u32(source.shape.length);
    for (const length of source.shape) out.u64(length);
    out.u32(ggmlType(source.type).id);
    out.u64(offset);
  }
  return out.bytes();
}

/** Little-endian bytes in a buffer that grows. */
class HeaderBytes {
  #buffer = Buffer.alloc(1 << 20);
  #length = 0;

  u32(value: number): void {
    this.#at(4).writeUInt32LE(value >>> 0);
  }

  u64(value: number): void {
    this.#at(8).writeBigUInt64LE(BigInt(value));
  }

  string(text: string): void {
    const bytes = Buffer.from(text);
    this.u64(bytes.length);
    this.raw(bytes);
  }

  scalar(type: Scalar, value: number | boolean | string): void {
    if (type === 'string') this.string(String(value));
    else if (type === 'bool') this.#at(1).writeUInt8(value ? 1 : 0);
    else if (type === 'f32') this.#at(4).writeFloatLE(Number(value));
    else this.u32(Number(value));
  }

  raw(bytes: Uint8Array): void {
    this.#at(bytes.length).set(bytes);
  }

  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  /** Room for that many bytes at the end. */
  #at(length: number): Buffer {
    const start = this.#length;
    this.#length += length;
    if (this.#length > this.#buffer.length) {
      const grown = Buffer.alloc(this.#length * 2);
      this.#buffer.copy(grown, 0, 0, start);
      this.#buffer = grown;
    }
    return this.#buffer.subarray(start, this.#length);
  }
}
