/**
 * Reads a GGUF header: metadata and the index of tensors. Format: the GGUF specification in ggml's docs/gguf.md,
 * versions 2 and 3. Nothing is allocated before the file has been seen to be large enough for it.
 */

import { AprError } from '../../errors.ts';
import type { ByteSource } from '../byte-source.ts';
import { type GgmlType, ggmlTypeById, rowBytes } from '../ggml-types.ts';
import type { MetadataTypeName, MetadataValue, NumberArray } from '../metadata.ts';
import type { ModelFile, TensorInfo } from '../model-file.ts';
import { HeaderReader } from './header-reader.ts';
import { decodeUtf8, GgufMetadata, type MetadataEntry, stringArray } from './metadata.ts';

/** Value types by their number in the file. */
const VALUE_TYPES = [
  'uint8', 'int8', 'uint16', 'int16', 'uint32', 'int32', 'float32', 'bool', 'string', 'array', 'uint64', 'int64', 'float64',
] as const satisfies readonly MetadataTypeName[];
type ValueType = (typeof VALUE_TYPES)[number];
type NumberType = Exclude<ValueType, 'bool' | 'string' | 'array'>;

const NUMBER_ARRAYS = {
  uint8: Uint8Array, int8: Int8Array, uint16: Uint16Array, int16: Int16Array, uint32: Uint32Array, int32: Int32Array,
  float32: Float32Array, uint64: BigUint64Array, int64: BigInt64Array, float64: Float64Array,
} as const satisfies Record<NumberType, unknown>;

const MAX_KEY_BYTES = 65_535;
const MAX_TENSOR_NAME_BYTES = 65_535;
const MAX_DIMENSIONS = 4;
const DEFAULT_ALIGNMENT = 32;
const MAX_ALIGNMENT = 1 << 20;
/** Smallest bytes that a metadata entry and a tensor entry can take: they bound the counts. */
const MIN_ENTRY_BYTES = 8 + 4 + 1;
const MIN_TENSOR_BYTES = 8 + 4 + 4 + 8;

/** @throws AprError BAD_FORMAT, UNSUPPORTED (version, byte order) */
export async function parseGguf(source: ByteSource): Promise<ModelFile> {
  return new GgufParser(source).parse();
}

class GgufParser {
  readonly #source: ByteSource;
  readonly #reader: HeaderReader;

  constructor(source: ByteSource) {
    this.#source = source;
    this.#reader = new HeaderReader(source);
  }

  async parse(): Promise<ModelFile> {
    const reader = this.#reader;
    await reader.ensure(8, 'the GGUF header');
    reader.position = 4;
    const version = this.#checkVersion(reader.u32());
    await reader.ensure(16, 'the GGUF header');
    const tensorCount = this.#count(reader.u64(), MIN_TENSOR_BYTES, 'tensors');
    const entryCount = this.#count(reader.u64(), MIN_ENTRY_BYTES, 'metadata entries');
    const entries = new Map<string, MetadataEntry>();
    /** String arrays get their bytes when the header has stopped growing. */
    const pending: { key: string; starts: Uint32Array; ends: Uint32Array }[] = [];
    for (let i = 0; i < entryCount; i++) {
      const key = await this.#string(`the key of metadata entry ${i}`, MAX_KEY_BYTES);
      if (entries.has(key)) throw this.#bad(`metadata key "${shorten(key)}" stands twice in the file`);
      await reader.ensure(4, `metadata "${shorten(key)}"`);
      const type = this.#valueType(reader.u32(), key);
      const value = type === 'array' ? await this.#array(key) : await this.#scalar(type, key);
      if (value instanceof Object && 'starts' in value) {
        pending.push({ key, ...value });
        entries.set(key, { type, value: '' });
      } else {
        entries.set(key, { type, value });
      }
    }
    const declared = await this.#tensorInfos(tensorCount);
    for (const { key, starts, ends } of pending) {
      entries.set(key, { type: 'array', value: stringArray(reader.bytes, starts, ends) });
    }
    const metadata = new GgufMetadata(this.#source.name, entries);
    const tensors = this.#placeTensors(declared, metadata.uint('general.alignment') ?? DEFAULT_ALIGNMENT);
    return { format: 'gguf', version, source: this.#source, metadata, tensors };
  }

  #checkVersion(version: number): number {
    if (version === 2 || version === 3) return version;
    const swapped = ((version & 0xff) << 24) | ((version & 0xff00) << 8) | ((version >>> 8) & 0xff00) | (version >>> 24);
    if (swapped >= 1 && swapped <= 3) {
      throw new AprError('UNSUPPORTED', `${this.#source.name}: a big-endian GGUF file; convert it to little-endian first`);
    }
    throw new AprError('UNSUPPORTED', `${this.#source.name}: GGUF version ${version}, supported are 2 and 3`, { version });
  }

  /** A count that the rest of the file could hold. */
  #count(value: bigint, minimumBytes: number, what: string): number {
    const most = Math.floor(this.#reader.remaining / minimumBytes);
    if (value > BigInt(most)) {
      throw this.#bad(`the header declares ${value} ${what}, but the file of ${this.#source.size} bytes has room for ${most}`);
    }
    return Number(value);
  }

  async #string(what: string, limit: number): Promise<string> {
    const reader = this.#reader;
    await reader.ensure(8, what);
    const length = reader.u64();
    if (length > BigInt(limit)) throw this.#bad(`${what} is ${length} bytes long, at most ${limit} are possible`);
    await reader.ensure(Number(length), what);
    const end = reader.position + Number(length);
    const text = decodeUtf8(reader.bytes.subarray(reader.position, end));
    reader.position = end;
    return text;
  }

  #valueType(id: number, key: string): ValueType {
    const type = VALUE_TYPES[id];
    if (type === undefined) throw this.#bad(`metadata "${shorten(key)}" has unknown value type ${id}`);
    return type;
  }

  async #scalar(type: Exclude<ValueType, 'array'>, key: string): Promise<MetadataValue> {
    const reader = this.#reader;
    const what = `metadata "${shorten(key)}"`;
    if (type === 'string') return this.#string(what, reader.remaining);
    const size = type === 'bool' ? 1 : NUMBER_ARRAYS[type].BYTES_PER_ELEMENT;
    await reader.ensure(size, what);
    const { view, position: at } = reader;
    reader.position += size;
    switch (type) {
      case 'uint8': return view.getUint8(at);
      case 'int8': return view.getInt8(at);
      case 'uint16': return view.getUint16(at, true);
      case 'int16': return view.getInt16(at, true);
      case 'uint32': return view.getUint32(at, true);
      case 'int32': return view.getInt32(at, true);
      case 'float32': return view.getFloat32(at, true);
      case 'float64': return view.getFloat64(at, true);
      case 'uint64': return integer(view.getBigUint64(at, true));
      case 'int64': return integer(view.getBigInt64(at, true));
      case 'bool': {
        const value = view.getUint8(at);
        if (value > 1) throw this.#bad(`${what} is a boolean with value ${value}, expected 0 or 1`);
        return value === 1;
      }
    }
  }

  async #array(key: string): Promise<MetadataValue | { starts: Uint32Array; ends: Uint32Array }> {
    const reader = this.#reader;
    const what = `metadata "${shorten(key)}"`;
    await reader.ensure(12, what);
    const type = this.#valueType(reader.u32(), key);
    const declared = reader.u64();
    if (type === 'array') throw this.#bad(`${what} is an array of arrays, which no model file needs`);
    const size = type === 'string' ? 8 : type === 'bool' ? 1 : NUMBER_ARRAYS[type].BYTES_PER_ELEMENT;
    if (declared > BigInt(Math.floor(reader.remaining / size))) {
      throw this.#bad(`${what} declares ${declared} elements, more than the file of ${this.#source.size} bytes can hold`);
    }
    const length = Number(declared);
    if (type === 'string') return this.#strings(length, what);
    await reader.ensure(length * size, what);
    // A copy: elements lie at any address, typed arrays only at multiples of their size.
    const bytes = reader.bytes.slice(reader.position, reader.position + length * size);
    reader.position += length * size;
    if (type === 'bool') {
      if (bytes.some((value) => value > 1)) throw this.#bad(`${what} has a boolean that is neither 0 nor 1`);
      return { kind: 'booleans', length, values: bytes };
    }
    const values: NumberArray['values'] = new NUMBER_ARRAYS[type](bytes.buffer);
    return { kind: 'numbers', length, values };
  }

  async #strings(length: number, what: string): Promise<{ starts: Uint32Array; ends: Uint32Array }> {
    const reader = this.#reader;
    const starts = new Uint32Array(length);
    const ends = new Uint32Array(length);
    for (let i = 0; i < length; i++) {
      if (!reader.has(8)) await reader.ensure(8, what);
      const low = reader.u32();
      const high = reader.u32();
      if (high !== 0 || low > reader.remaining) throw this.#bad(`${what}: string ${i} is longer than the rest of the file`);
      if (!reader.has(low)) await reader.ensure(low, what);
      starts[i] = reader.position;
      reader.position += low;
      ends[i] = reader.position;
    }
    return { starts, ends };
  }

  async #tensorInfos(count: number): Promise<DeclaredTensor[]> {
    const reader = this.#reader;
    const names = new Set<string>();
    const tensors: DeclaredTensor[] = [];
    for (let i = 0; i < count; i++) {
      const name = await this.#string(`the name of tensor ${i}`, MAX_TENSOR_NAME_BYTES);
      const what = `tensor "${shorten(name)}"`;
      if (name.includes('\0')) throw this.#bad(`the name of tensor ${i} holds a zero byte: "${shorten(name)}"`);
      if (names.has(name)) throw this.#bad(`${what} stands twice in the file`);
      names.add(name);
      await reader.ensure(4, what);
      const dimensions = reader.u32();
      if (dimensions < 1 || dimensions > MAX_DIMENSIONS) {
        throw this.#bad(`${what} has ${dimensions} dimensions, expected 1 to ${MAX_DIMENSIONS}`);
      }
      await reader.ensure(dimensions * 8 + 12, what);
      const shape = Array.from({ length: dimensions }, () => reader.u64());
      const typeId = reader.u32();
      const type = ggmlTypeById(typeId);
      if (type === undefined) {
        throw new AprError('UNSUPPORTED', `${this.#source.name}: ${what} has type ${typeId}, which ggml does not define`, { tensor: name });
      }
      const elements = shape.reduce((product, size) => product * size, 1n);
      if (elements > BigInt(Number.MAX_SAFE_INTEGER) || shape.some((size) => size > BigInt(Number.MAX_SAFE_INTEGER))) {
        throw this.#bad(`${what} declares ${shape.join(' × ')} values, more than any file holds`);
      }
      const sizes = shape.map(Number);
      const [width = 0, ...others] = sizes;
      if (width % type.blockSize !== 0) {
        throw this.#bad(`${what} has rows of ${width} values, which blocks of ${type.blockSize} (${type.name}) do not divide`);
      }
      const byteLength = rowBytes(type, width) * others.reduce((product, size) => product * size, 1);
      tensors.push({ name, type, shape: sizes, byteLength, offset: reader.u64() });
    }
    return tensors;
  }

  /** Checks where the tensors' data lie and makes their offsets absolute. */
  #placeTensors(declared: readonly DeclaredTensor[], alignment: number): Map<string, TensorInfo> {
    if (alignment === 0 || (alignment & (alignment - 1)) !== 0 || alignment > MAX_ALIGNMENT) {
      throw this.#bad(`general.alignment is ${alignment}, expected a power of two up to ${MAX_ALIGNMENT}`);
    }
    const start = Math.ceil(this.#reader.position / alignment) * alignment;
    const tensors = new Map<string, TensorInfo>();
    for (const { name, offset, ...rest } of declared) {
      const what = `tensor "${shorten(name)}"`;
      if (offset % BigInt(alignment) !== 0n) {
        throw this.#bad(`${what} lies at offset ${offset}, expected a multiple of the alignment ${alignment}`);
      }
      const end = BigInt(start) + offset + BigInt(rest.byteLength);
      if (end > BigInt(this.#source.size)) {
        throw this.#bad(
          `the file is truncated, or its index is wrong: ${what} needs bytes up to ${end}, the file has ${this.#source.size}`,
        );
      }
      tensors.set(name, { name, ...rest, offset: start + Number(offset) });
    }
    const byOffset = [...tensors.values()].filter(({ byteLength }) => byteLength > 0).sort((a, b) => a.offset - b.offset);
    for (let i = 1; i < byOffset.length; i++) {
      const before = byOffset[i - 1]!;
      const tensor = byOffset[i]!;
      if (before.offset + before.byteLength > tensor.offset) {
        throw this.#bad(`the data of tensors "${shorten(before.name)}" and "${shorten(tensor.name)}" overlap`);
      }
    }
    return tensors;
  }

  #bad(reason: string): AprError {
    return new AprError('BAD_FORMAT', `${this.#source.name}: ${reason}`);
  }
}

interface DeclaredTensor {
  readonly name: string;
  readonly type: GgmlType;
  readonly shape: readonly number[];
  readonly byteLength: number;
  /** From the start of the data section. */
  readonly offset: bigint;
}

/** As a number where that is exact. */
function integer(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/** A name fit for a message, whatever a file calls itself. */
function shorten(name: string): string {
  const printable = name.replace(/\p{C}/gu, '\uFFFD');
  return printable.length > 80 ? `${printable.slice(0, 77)}…` : printable;
}
