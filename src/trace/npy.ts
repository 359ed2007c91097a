/**
 * NumPy's array files. Format: numpy.lib.format, versions 1.0 to 3.0: magic, version, length of the header, the header
 * as a Python literal padded with spaces to a multiple of 64 bytes, then the values.
 */

import { AprError } from '../errors.ts';

export type NpyType = '<f4' | '<f8' | '<f2' | '<i4' | '<i8';

const BYTES: Readonly<Record<NpyType, number>> = { '<f4': 4, '<f8': 8, '<f2': 2, '<i4': 4, '<i8': 8 };
const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59]; // \x93NUMPY
const ALIGNMENT = 64;
/** Longer ones hold structured types with thousands of fields. */
const MAX_HEADER = 65_536;
/** Magic, version, and the longer form of the length. */
export const NPY_PREFIX_BYTES = 12;

export interface NpyHeader {
  readonly type: NpyType;
  /** Last dimension varies fastest. */
  readonly shape: readonly number[];
  /** Where the values begin. */
  readonly offset: number;
}

/** Header of a C-ordered array, version 1.0. */
export function npyHeader(type: NpyType, shape: readonly number[]): Uint8Array {
  const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(', ')})`;
  const literal = `{'descr': '${type}', 'fortran_order': False, 'shape': ${tuple}, }`;
  const size = Math.ceil((10 + literal.length + 1) / ALIGNMENT) * ALIGNMENT;
  const text = `${literal.padEnd(size - 10 - 1)}\n`;
  const bytes = new Uint8Array(size);
  bytes.set([...MAGIC, 1, 0, text.length & 255, text.length >> 8]);
  bytes.set(new TextEncoder().encode(text), 10);
  return bytes;
}

/** Bytes that must be read from the start of the file to parse its header. @throws AprError BAD_FORMAT */
export function npyHeaderEnd(name: string, prefix: Uint8Array): number {
  if (prefix.length < NPY_PREFIX_BYTES || MAGIC.some((byte, i) => prefix[i] !== byte)) {
    throw bad(name, 'does not begin as a .npy file does');
  }
  const view = new DataView(prefix.buffer, prefix.byteOffset, prefix.length);
  const version = prefix[6] as number;
  if (version < 1 || version > 3) throw bad(name, `is of .npy version ${version}, expected 1 to 3`);
  const length = version === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (length > MAX_HEADER) throw bad(name, `has a header of ${length} bytes, expected at most ${MAX_HEADER}`);
  return (version === 1 ? 10 : 12) + length;
}

/**
 * @param bytes the file's start, {@link npyHeaderEnd} bytes
 * @param size of the whole file
 * @throws AprError BAD_FORMAT for what is no header or does not fit the size, UNSUPPORTED for other types and orders
 */
export function parseNpyHeader(name: string, bytes: Uint8Array, size: number): NpyHeader {
  const text = new TextDecoder('latin1').decode(bytes.subarray(bytes[6] === 1 ? 10 : 12));
  const type = /['"]descr['"]\s*:\s*['"]([^'"]*)['"]/.exec(text)?.[1];
  const order = /['"]fortran_order['"]\s*:\s*(True|False)/.exec(text)?.[1];
  const list = /['"]shape['"]\s*:\s*\(([\d\s,L]*)\)/.exec(text)?.[1];
  if (type === undefined || order === undefined || list === undefined) {
    throw bad(name, 'has no header with descr, fortran_order and shape');
  }
  const shape = (list.match(/\d+/g) ?? []).map(Number);
  if (!Object.hasOwn(BYTES, type)) {
    const types = Object.keys(BYTES).join(', ');
    throw new AprError(
      'UNSUPPORTED',
      `${name}: holds values of type ${JSON.stringify(type)}, expected one of ${types}`,
    );
  }
  if (order === 'True' && shape.filter((length) => length > 1).length > 1) {
    throw new AprError('UNSUPPORTED', `${name}: is in Fortran order, expected C order (numpy.ascontiguousarray)`);
  }
  const count = shape.reduce((product, length) => product * length, 1);
  const expected = bytes.length + count * BYTES[type as NpyType];
  if (!Number.isSafeInteger(expected) || expected !== size) {
    throw bad(name, `has ${size} bytes, expected ${expected} for values ${type} of shape (${shape.join(', ')})`);
  }
  return { type: type as NpyType, shape, offset: bytes.length };
}

/** Bytes of one value. */
export function npyValueBytes(type: NpyType): number {
  return BYTES[type];
}

/**
 * `bytes` as values; integers come as bits of f32, int32, as activations hold them: -1 for those that int32 does not hold.
 */
export function npyValues(type: NpyType, bytes: Uint8Array): Float32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const count = bytes.length / BYTES[type];
  if (type === '<f4' || type === '<i4') {
    const out = new Float32Array(count);
    new Uint8Array(out.buffer).set(bytes);
    return out;
  }
  if (type === '<i8') {
    const ids = Int32Array.from({ length: count }, (_, i) => {
      const id = view.getBigInt64(i * 8, true);
      return BigInt.asIntN(32, id) === id ? Number(id) : -1;
    });
    return new Float32Array(ids.buffer);
  }
  const read =
    type === '<f8' ? (i: number) => view.getFloat64(i * 8, true) : (i: number) => half(view.getUint16(i * 2, true));
  return Float32Array.from({ length: count }, (_, i) => read(i));
}

/** IEEE 754 binary16. */
function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function bad(name: string, what: string): AprError {
  return new AprError('BAD_FORMAT', `${name}: ${what}`, { path: name });
}
