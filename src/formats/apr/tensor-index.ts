/**
 * The tensor index of an .apr file. An entry, packed: u16 name length, name (UTF-8, up to 256 bytes), u8 data type,
 * u8 dimensions, u64 each (the row's length last), u64 offset from the data's start, u64 size. Sorted by the names'
 * bytes, since readers look entries up by halves.
 */

import { AprError } from '../../errors.ts';
import { ByteWriter } from '../byte-writer.ts';
import { decodeUtf8Strictly } from '../gguf/metadata.ts';
import type { TensorInfo } from '../model-file.ts';
import { refuseOverlaps } from '../overlaps.ts';
import { printable } from '../printable.ts';
import { bytesOf, dtypeMeanings, dtypeOf, nameOfDtype } from './dtypes.ts';
import { type AprHeader, FLAG } from './header.ts';
import { toGgufName } from './tensor-names.ts';

export const MAX_NAME_BYTES = 256;
const MAX_DIMENSIONS = 4;
/** Name of one byte, type, one dimension. */
const MIN_ENTRY_BYTES = 2 + 1 + 1 + 1 + 8 + 8 + 8;
const MAX_ENTRY_BYTES = 2 + MAX_NAME_BYTES + 1 + 1 + 8 * MAX_DIMENSIONS + 8 + 8;
const MAX_TENSORS = 1 << 16;

/** Bytes of the file that can belong to the index. */
export function indexExtent(name: string, header: AprHeader, fileSize: number): number {
  const { tensorCount, indexOffset } = header;
  const available = fileSize - indexOffset;
  if (tensorCount > MAX_TENSORS || tensorCount * MIN_ENTRY_BYTES > available) {
    const most = Math.min(MAX_TENSORS, Math.floor(available / MIN_ENTRY_BYTES));
    const message = `${name}: the header declares ${tensorCount} tensors, expected at most the ${most} that the file can hold`;
    throw new AprError('BAD_FORMAT', message);
  }
  return Math.min(available, tensorCount * MAX_ENTRY_BYTES);
}

/**
 * Tensors by their GGUF names, in the order of their data; shapes in ggml order, offsets from the file's start.
 * An empty `lm_head.weight` stands for a tied head and is left out.
 * @param bytes from the index on
 * @throws AprError BAD_FORMAT, UNSUPPORTED for a data type
 */
export function readIndex(
  source: { readonly name: string; readonly size: number },
  header: AprHeader,
  bytes: Uint8Array,
): Map<string, TensorInfo> {
  const bad = (reason: string): AprError => new AprError('BAD_FORMAT', `${source.name}: ${reason}`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const tensors: TensorInfo[] = [];
  const names = new Set<string>();
  let before: Uint8Array | undefined;
  let at = 0;
  const need = (length: number, what: string): void => {
    if (at + length > bytes.length) {
      throw bad(`the tensor index is truncated: ${what} lies behind its end; the file is damaged, fetch it again`);
    }
  };
  for (let i = 0; i < header.tensorCount; i++) {
    need(2, `entry ${i}`);
    const length = view.getUint16(at, true);
    at += 2;
    if (length < 1 || length > MAX_NAME_BYTES) {
      throw bad(`the name of tensor ${i} is ${length} bytes long, expected 1 to ${MAX_NAME_BYTES}`);
    }
    need(length + 2, `the name of tensor ${i}`);
    const nameBytes = bytes.subarray(at, at + length);
    at += length;
    const stored = decodeUtf8Strictly(nameBytes);
    if (stored === undefined) throw bad(`the name of tensor ${i} is not valid UTF-8`);
    if (/\p{C}/u.test(stored)) throw bad(`the name of tensor ${i} holds control characters: "${printable(stored)}"`);
    const what = `tensor "${printable(stored)}"`;
    const order = before === undefined ? -1 : compareBytes(before, nameBytes);
    if (order === 0) throw bad(`${what} stands twice in the index`);
    if (order > 0) throw bad(`${what} stands out of order in the index, expected names sorted by their bytes`);
    before = nameBytes;
    const dtype = view.getUint8(at);
    const dimensions = view.getUint8(at + 1);
    at += 2;
    if (dimensions < 1 || dimensions > MAX_DIMENSIONS) {
      throw bad(`${what} has ${dimensions} dimensions, expected 1 to ${MAX_DIMENSIONS}`);
    }
    need(dimensions * 8 + 16, what);
    const u64 = (): bigint => {
      const value = view.getBigUint64(at, true);
      at += 8;
      return value;
    };
    const sizes = Array.from({ length: dimensions }, u64).reverse();
    const offset = BigInt(header.dataOffset) + u64();
    const size = u64();
    if (offset + size > BigInt(source.size)) {
      throw bad(
        `the file is truncated or its index is damaged: ${what} ends at byte ${offset + size}, ` +
          `but the file has ${source.size} bytes; fetch it again`,
      );
    }
    const most = BigInt(Number.MAX_SAFE_INTEGER);
    if (sizes.some((each) => each > most) || sizes.reduce((product, each) => product * each, 1n) > most) {
      throw bad(`${what} declares ${sizes.join(' × ')} values, more than any file holds`);
    }
    const shape = sizes.map(Number);
    if (stored === 'lm_head.weight' && size === 0n) continue;
    const name = toGgufName(stored);
    if (names.has(name)) throw bad(`${what} stands twice in the index, once under its GGUF name ${printable(name)}`);
    names.add(name);
    const type = typeOf(source.name, stored, dtype, shape, Number(size), header.flags);
    tensors.push({ name, type, shape, offset: Number(offset), byteLength: Number(size) });
  }
  refuseOverlaps(source.name, tensors);
  tensors.sort((a, b) => a.offset - b.offset);
  return new Map(tensors.map((tensor) => [tensor.name, tensor]));
}

function typeOf(
  source: string,
  tensor: string,
  id: number,
  shape: readonly number[],
  size: number,
  flags: number,
): TensorInfo['type'] {
  const what = `${source}: tensor "${printable(tensor)}"`;
  const meanings = dtypeMeanings(id);
  if (meanings.length === 0) {
    throw new AprError('UNSUPPORTED', `${what} has data type ${id}, which .apr does not define`, { tensor, found: id });
  }
  const type = meanings.find((each) => bytesOf(each, shape) === size);
  if (type === undefined) {
    const sizes = meanings.map((each) => {
      const expected = bytesOf(each, shape);
      return expected === undefined
        ? `rows of a width that ${nameOfDtype(each)} blocks divide`
        : `${expected} as ${nameOfDtype(each)}`;
    });
    const packed = (flags & (FLAG.lz4 | FLAG.zstd)) !== 0 ? '; its data seem to be compressed, which is not read' : '';
    const dims = [...shape].reverse().join(', ');
    const message = `${what} of [${dims}], data type ${id}, has ${size} bytes, expected ${sizes.join(' or ')}${packed}`;
    throw new AprError(packed === '' ? 'BAD_FORMAT' : 'UNSUPPORTED', message, { tensor, found: size });
  }
  if (typeof type !== 'string') return type;
  const message = `${what} has type ${type} (data type ${id}), which is not implemented; convert the model from its GGUF file`;
  throw new AprError('UNSUPPORTED', message, { tensor, found: type });
}

export interface IndexEntry {
  /** As it is to stand in the file. */
  readonly name: string;
  readonly tensor: TensorInfo;
  /** From the data's start. */
  readonly offset: number;
}

export function writeIndex(entries: readonly IndexEntry[]): Uint8Array {
  const encoder = new TextEncoder();
  const writer = new ByteWriter();
  const sorted = entries.map((entry) => ({ ...entry, bytes: encoder.encode(entry.name) }));
  sorted.sort((a, b) => compareBytes(a.bytes, b.bytes));
  for (const { bytes, tensor, offset } of sorted) {
    writer.u16(bytes.length).raw(bytes).u8(dtypeOf(tensor.type)).u8(tensor.shape.length);
    for (const size of [...tensor.shape].reverse()) writer.u64(size);
    writer.u64(offset).u64(tensor.byteLength);
  }
  return writer.bytes();
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const difference = a[i]! - b[i]!;
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
