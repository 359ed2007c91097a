/**
 * Reads a GGUF header: metadata and the index of tensors. Format: the GGUF specification in ggml's docs/gguf.md,
 * versions 1 to 3. Nothing is allocated before the file has been seen to be large enough for it.
 */

import { AprError } from '../../errors.ts';
import type { ByteSource } from '../byte-source.ts';
import type { MetadataValue, NumberArray } from '../metadata.ts';
import type { ModelFile } from '../model-file.ts';
import { printable } from '../printable.ts';
import { HeaderReader } from './header-reader.ts';
import { decodeUtf8, decodeUtf8Strictly, GgufMetadata, type MetadataEntry, stringArray } from './metadata.ts';
import { readName } from './name.ts';
import { MIN_TENSOR_BYTES, placeTensors, readTensorIndex } from './tensor-index.ts';
import { NUMBER_ARRAYS, VALUE_TYPES, type ValueType } from './value-types.ts';

/** `GGUF` as a little-endian integer. */
const MAGIC = 0x46554747;
const DEFAULT_ALIGNMENT = 32;
/** Bytes of the smallest metadata entry: key's length and one character, type, one byte of value. */
const MIN_ENTRY_BYTES = 4 + 1 + 4 + 1;
/** Far above any model, and what keeps the objects made for the entries from outgrowing the file many times. */
const MAX_ENTRIES = 1 << 16;

/** A string; its bytes beside it where they are not UTF-8 and the text lacks them. */
interface ScannedString {
  readonly kind: 'string';
  readonly text: string;
  readonly bytes?: Uint8Array;
}

/** Where the strings of an array lie; their bytes are known when the header has stopped growing. */
interface StringSpans {
  readonly kind: 'spans';
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
}

type ScannedValue = Exclude<MetadataValue, string> | ScannedString | StringSpans;

/**
 * Parses the header; no weight is read.
 * @throws AprError BAD_FORMAT naming what is damaged, UNSUPPORTED (version, byte order, tensor type, nested arrays)
 */
export async function openGguf(source: ByteSource): Promise<ModelFile & { readonly metadata: GgufMetadata }> {
  const reader = new HeaderReader(source);
  await reader.ensure(8, 'the GGUF header');
  if (reader.u32() !== MAGIC) throw bad(reader, 'does not begin with "GGUF"');
  const version = readVersion(reader);
  // Version 2 widened counts, lengths and dimensions to 64 bits; the rest stayed.
  reader.sizeBytes = version === 1 ? 4 : 8;
  await reader.ensure(2 * reader.sizeBytes, 'the GGUF header');
  const tensorCount = readCount(reader, MIN_TENSOR_BYTES, 'tensors');
  const entryCount = readCount(reader, MIN_ENTRY_BYTES, 'metadata entries');
  const values = new Map<string, { readonly type: ValueType; readonly value: ScannedValue }>();
  for (let i = 0; i < entryCount; i++) {
    const key = await readName(reader, `the key of metadata entry ${i}`);
    const what = `metadata "${printable(key)}"`;
    if (values.has(key)) throw bad(reader, `${what} stands twice in the file`);
    await reader.ensure(4, what);
    const type = readValueType(reader, what);
    values.set(key, {
      type,
      value: type === 'array' ? await readArray(reader, what) : await readScalar(reader, type, what),
    });
  }
  const declared = await readTensorIndex(reader, tensorCount);

  let header: Uint8Array | undefined; // shared by all arrays of strings, without the weights that were fetched with it
  const entries = new Map<string, MetadataEntry>();
  for (const [key, { type, value }] of values) {
    if (typeof value !== 'object') entries.set(key, { type, value });
    else if (value.kind === 'spans') {
      header ??= reader.bytes.slice(0, reader.position);
      entries.set(key, { type, value: stringArray(header, value.starts, value.ends) });
    } else if (value.kind === 'string') {
      const { text, bytes } = value;
      entries.set(key, bytes === undefined ? { type, value: text } : { type, value: text, bytes });
    } else entries.set(key, { type, value });
  }
  const metadata = new GgufMetadata(source.name, entries);
  const alignment = metadata.uint('general.alignment') ?? DEFAULT_ALIGNMENT;
  const tensors = placeTensors(reader, declared, reader.position, alignment);
  return { format: 'gguf', version, source, metadata, tensors };
}

function readVersion(reader: HeaderReader): number {
  const version = reader.u32();
  if (version >= 1 && version <= 3) return version;
  const { name } = reader.source;
  // The version's bytes in the other order, as a file for a big-endian machine has them.
  if (version !== 0 && (version & 0xffff) === 0) {
    const message =
      `${name}: a big-endian GGUF file, expected a little-endian one; ` +
      "convert it with gguf_convert_endian of llama.cpp's gguf-py";
    throw new AprError('UNSUPPORTED', message, { version });
  }
  if (version === 0) throw bad(reader, 'GGUF version 0 does not exist, expected 1 to 3; the file is damaged');
  const message = `${name}: GGUF version ${version}, expected 1 to 3; a newer apr may read it`;
  throw new AprError('UNSUPPORTED', message, { version });
}

/** A count that the rest of the file can hold. */
function readCount(reader: HeaderReader, minimumBytes: number, what: string): number {
  const count = reader.size();
  const needed = count * BigInt(minimumBytes);
  if (needed > BigInt(reader.remaining)) throw reader.tooShort(`the list of ${count} ${what}`, needed);
  if (count > BigInt(MAX_ENTRIES))
    throw bad(reader, `the header declares ${count} ${what}, expected at most ${MAX_ENTRIES}`);
  return Number(count);
}

function readValueType(reader: HeaderReader, what: string): ValueType {
  const id = reader.u32();
  const type = VALUE_TYPES[id];
  if (type === undefined) throw bad(reader, `${what} has value type ${id}, expected 0 to ${VALUE_TYPES.length - 1}`);
  return type;
}

async function readScalar(
  reader: HeaderReader,
  type: Exclude<ValueType, 'array'>,
  what: string,
): Promise<Exclude<ScannedValue, StringSpans>> {
  if (type === 'string') return readString(reader, what);
  const size = type === 'bool' ? 1 : NUMBER_ARRAYS[type].BYTES_PER_ELEMENT;
  await reader.ensure(size, what);
  const { view, position: at } = reader;
  reader.position += size;
  switch (type) {
    case 'uint8':
      return view.getUint8(at);
    case 'int8':
      return view.getInt8(at);
    case 'uint16':
      return view.getUint16(at, true);
    case 'int16':
      return view.getInt16(at, true);
    case 'uint32':
      return view.getUint32(at, true);
    case 'int32':
      return view.getInt32(at, true);
    case 'float32':
      return view.getFloat32(at, true);
    case 'float64':
      return view.getFloat64(at, true);
    case 'uint64':
      return exact(view.getBigUint64(at, true));
    case 'int64':
      return exact(view.getBigInt64(at, true));
    case 'bool': {
      const value = view.getUint8(at);
      if (value > 1) throw bad(reader, `${what} is a boolean of value ${value}, expected 0 or 1`);
      return value === 1;
    }
  }
}

async function readString(reader: HeaderReader, what: string): Promise<ScannedString> {
  await reader.ensure(reader.sizeBytes, what);
  const length = reader.size();
  if (length > BigInt(reader.remaining)) throw reader.tooShort(what, length);
  await reader.ensure(Number(length), what);
  const bytes = reader.take(Number(length));
  const text = decodeUtf8Strictly(bytes);
  if (text !== undefined) return { kind: 'string', text };
  return { kind: 'string', text: decodeUtf8(bytes), bytes: bytes.slice() };
}

async function readArray(reader: HeaderReader, what: string): Promise<ScannedValue> {
  await reader.ensure(4 + reader.sizeBytes, what);
  const type = readValueType(reader, what);
  const declared = reader.size();
  if (type === 'array') {
    const message = `${reader.source.name}: ${what} is an array of arrays, expected numbers, booleans or strings`;
    throw new AprError('UNSUPPORTED', message);
  }
  const size = type === 'string' ? reader.sizeBytes : type === 'bool' ? 1 : NUMBER_ARRAYS[type].BYTES_PER_ELEMENT;
  const needed = declared * BigInt(size);
  if (needed > BigInt(reader.remaining)) throw reader.tooShort(`${what} of ${declared} elements`, needed);
  const length = Number(declared);
  if (type === 'string') return readStrings(reader, length, what);
  await reader.ensure(length * size, what);
  // A copy: elements lie at any address, typed arrays only at multiples of their size.
  const bytes = reader.take(length * size).slice();
  if (type === 'bool') {
    const wrong = bytes.findIndex((value) => value > 1);
    if (wrong >= 0) throw bad(reader, `${what} has a boolean of value ${bytes[wrong]} at ${wrong}, expected 0 or 1`);
    return { kind: 'booleans', length, values: bytes };
  }
  const values: NumberArray['values'] = new NUMBER_ARRAYS[type](bytes.buffer);
  return { kind: 'numbers', length, values };
}

async function readStrings(reader: HeaderReader, length: number, what: string): Promise<StringSpans> {
  const starts = new Uint32Array(length);
  const ends = new Uint32Array(length);
  for (let i = scanStrings(reader, starts, ends, 0); i < length; i = scanStrings(reader, starts, ends, i)) {
    const string = `string ${i} of ${what}`;
    await reader.ensure(reader.sizeBytes, string);
    const size = reader.size();
    if (size > BigInt(reader.remaining)) throw reader.tooShort(string, size);
    await reader.ensure(Number(size), string);
    reader.position -= reader.sizeBytes;
  }
  return { kind: 'spans', starts, ends };
}

/**
 * Notes where strings from number `i` on lie, up to the first that has not been fetched whole; returns its number.
 * Most of a header's bytes pass through this loop, so it waits for nothing and calls nothing but the view.
 */
function scanStrings(reader: HeaderReader, starts: Uint32Array, ends: Uint32Array, i: number): number {
  const { view, sizeBytes } = reader;
  const fetched = reader.bytes.length;
  let { position } = reader;
  let index = i;
  for (; index < starts.length && position + sizeBytes <= fetched; index++) {
    const end = position + sizeBytes + view.getUint32(position, true);
    if (end > fetched || (sizeBytes === 8 && view.getUint32(position + 4, true) !== 0)) break;
    starts[index] = position + sizeBytes;
    ends[index] = end;
    position = end;
  }
  reader.position = position;
  return index;
}

/** As a number where that is exact. */
function exact(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

function bad(reader: HeaderReader, reason: string): AprError {
  return new AprError('BAD_FORMAT', `${reader.source.name}: ${reason}`);
}
