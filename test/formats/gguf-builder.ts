/** Writes GGUF files for tests, well-formed ones with {@link buildGguf} and any others with {@link ByteWriter}. */

import { type GgmlTypeName, ggmlType } from '../../src/formats/ggml-types.ts';
import type { MetadataTypeName } from '../../src/formats/metadata.ts';

/** Ids of the value types in the file. */
export const VALUE_TYPE = {
  uint8: 0,
  int8: 1,
  uint16: 2,
  int16: 3,
  uint32: 4,
  int32: 5,
  float32: 6,
  bool: 7,
  string: 8,
  array: 9,
  uint64: 10,
  int64: 11,
  float64: 12,
} as const satisfies Record<MetadataTypeName, number>;

type ScalarTypeName = Exclude<MetadataTypeName, 'array'>;
type Scalar = number | bigint | boolean | string | Uint8Array;

/** A value with its type said, for {@link BuilderValue}s whose type would be guessed otherwise. */
export interface TypedValue {
  readonly type: ScalarTypeName;
  readonly value: Scalar | readonly Scalar[];
}

/**
 * Types are guessed: text is `string`, truth `bool`, whole numbers `uint32` (`int32` below 0), other numbers `float32`,
 * arrays by their first element. {@link typed} says another one.
 */
export type BuilderValue = Scalar | readonly Scalar[] | TypedValue;

/** `typed('uint64', 7)`, `typed('int32', [1, 2, 3])`; a string may be given as raw bytes. */
export function typed(type: ScalarTypeName, value: Scalar | readonly Scalar[]): TypedValue {
  return { type, value };
}

export interface BuilderTensor {
  readonly name: string;
  /** ggml order: row length first. */
  readonly shape: readonly (number | bigint)[];
  /** A name, or any id. Default F32. */
  readonly type?: GgmlTypeName | number;
  /** Default: zeros, as many as shape and type need. */
  readonly data?: Uint8Array | Float32Array;
  /** From the start of the data section, in place of the next free one. */
  readonly offset?: number | bigint;
}

export interface BuilderFile {
  /** Default 3. */
  readonly version?: number;
  /** Default 32; written as `general.alignment` when it is another. */
  readonly alignment?: number;
  readonly metadata?: Readonly<Record<string, BuilderValue>>;
  readonly tensors?: readonly BuilderTensor[];
  /** Counts in the header, in place of the true ones. */
  readonly counts?: { readonly tensors?: number | bigint; readonly entries?: number | bigint };
}

/** Tensors declared larger than this, or further back, get no data. */
const MOST_DATA = 2 ** 26;

/** The file's bytes. */
export function buildGguf(file: BuilderFile = {}): Uint8Array {
  const { version = 3, alignment = 32, tensors = [], counts = {} } = file;
  const metadata: Record<string, BuilderValue> = { ...file.metadata };
  if (alignment !== 32) metadata['general.alignment'] = alignment;
  const entries = Object.entries(metadata);
  const writer = new ByteWriter(version === 1 ? 4 : 8).text('GGUF').u32(version);
  writer.size(counts.tensors ?? tensors.length).size(counts.entries ?? entries.length);
  for (const [key, value] of entries) writer.string(key).value(value);

  const pad = (size: number): number => Math.ceil(size / alignment) * alignment;
  const placed: { readonly offset: number; readonly data: Uint8Array }[] = [];
  let free = 0;
  for (const { name, shape, type = 'F32', data, offset = free } of tensors) {
    const { id, bytes } = describeTensor(shape, type, data);
    writer.string(name).u32(shape.length);
    for (const size of shape) writer.size(size);
    writer.u32(id).u64(offset);
    if (Number(offset) > MOST_DATA) continue; // a lie for the reader to find
    placed.push({ offset: Number(offset), data: bytes });
    free = Math.max(free, pad(Number(offset) + bytes.length));
  }
  const header = writer.bytes();
  const start = pad(header.length);
  const out = new Uint8Array(tensors.length === 0 ? header.length : start + free);
  out.set(header);
  for (const { offset, data } of placed) out.set(data, start + offset);
  return out;
}

function describeTensor(
  shape: readonly (number | bigint)[],
  type: GgmlTypeName | number,
  data: Uint8Array | Float32Array | undefined,
): { id: number; bytes: Uint8Array } {
  const id = typeof type === 'number' ? type : ggmlType(type).id;
  if (data !== undefined) return { id, bytes: new Uint8Array(data.buffer, data.byteOffset, data.byteLength) };
  if (typeof type === 'number') return { id, bytes: new Uint8Array(0) };
  const { blockSize, blockBytes } = ggmlType(type);
  const size = Math.ceil(shape.reduce<number>((product, each) => product * Number(each), 1) / blockSize) * blockBytes;
  return { id, bytes: new Uint8Array(size <= MOST_DATA ? size : 0) };
}

/** Appends little-endian values; every method returns the writer. */
export class ByteWriter {
  #bytes = new Uint8Array(1024);
  #length = 0;
  readonly #sizeBytes: 4 | 8;

  /** @param sizeBytes width of counts, lengths and dimensions: 4 in version 1 */
  constructor(sizeBytes: 4 | 8 = 8) {
    this.#sizeBytes = sizeBytes;
  }

  /** What has been written so far. */
  bytes(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }

  u8(value: number): this {
    return this.#number(1, (view) => view.setUint8(0, value));
  }

  u32(value: number): this {
    return this.#number(4, (view) => view.setUint32(0, value, true));
  }

  u64(value: number | bigint): this {
    return this.#number(8, (view) => view.setBigUint64(0, BigInt(value), true));
  }

  /** A count, length or dimension. */
  size(value: number | bigint): this {
    return this.#sizeBytes === 4 ? this.u32(Number(value)) : this.u64(value);
  }

  /** Bytes as they are. */
  raw(bytes: Uint8Array): this {
    while (this.#length + bytes.length > this.#bytes.length) {
      const grown = new Uint8Array(this.#bytes.length * 2);
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
    return this;
  }

  /** Text without a length before it. */
  text(text: string): this {
    return this.raw(new TextEncoder().encode(text));
  }

  /** GGUF's string: length, bytes. */
  string(value: string | Uint8Array): this {
    const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value;
    return this.size(bytes.length).raw(bytes);
  }

  /** A metadata value behind its type. */
  value(value: BuilderValue): this {
    if (isTyped(value)) return this.#typedValue(value);
    return this.#typedValue({ type: guess(Array.isArray(value) ? value[0] : value), value: value as Scalar });
  }

  #typedValue({ type, value }: TypedValue): this {
    if (!Array.isArray(value)) return this.u32(VALUE_TYPE[type]).#scalar(type, value as Scalar);
    this.u32(VALUE_TYPE.array).u32(VALUE_TYPE[type]).size(value.length);
    for (const each of value as readonly Scalar[]) this.#scalar(type, each);
    return this;
  }

  #scalar(type: ScalarTypeName, value: Scalar): this {
    switch (type) {
      case 'string':
        return this.string(value as string | Uint8Array);
      case 'bool':
        return this.u8(Number(value));
      case 'uint8':
      case 'int8':
        return this.u8(Number(value));
      case 'uint16':
      case 'int16':
        return this.#number(2, (view) => view.setUint16(0, Number(value), true));
      case 'uint32':
      case 'int32':
        return this.u32(Number(value));
      case 'uint64':
      case 'int64':
        return this.#number(8, (view) => view.setBigInt64(0, BigInt(value as number), true));
      case 'float32':
        return this.#number(4, (view) => view.setFloat32(0, Number(value), true));
      case 'float64':
        return this.#number(8, (view) => view.setFloat64(0, Number(value), true));
    }
  }

  #number(size: number, write: (view: DataView) => void): this {
    const bytes = new Uint8Array(size);
    write(new DataView(bytes.buffer));
    return this.raw(bytes);
  }
}

function isTyped(value: BuilderValue): value is TypedValue {
  return typeof value === 'object' && 'type' in value && 'value' in value;
}

function guess(value: Scalar | undefined): ScalarTypeName {
  if (typeof value === 'string' || value instanceof Uint8Array) return 'string';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint') return 'uint64';
  if (value === undefined) throw new Error('the type of an empty array must be said: typed(…, [])');
  if (!Number.isInteger(value)) return 'float32';
  return value < 0 ? 'int32' : 'uint32';
}
