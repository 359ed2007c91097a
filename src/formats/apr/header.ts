/**
 * The header of an .apr file, version 2: 64 bytes, little-endian.
 *
 *      0  magic "APR\0" ("APR2" of older writers)      20  u32 metadata size, without padding
 *      4  u8 major 2, u8 minor                         24  u64 index offset
 *      6  u16 flags                                    32  u64 data offset
 *      8  u32 tensor count                             40  u32 CRC-32 over bytes 0–39 and 44–63
 *     12  u64 metadata offset                          44  zeros
 *
 * Behind it JSON metadata, the tensor index, the tensors' data, each padded to 64 bytes, and the CRC-32 of everything
 * before that. Source: aprender's format/v2.
 */

import { AprError } from '../../errors.ts';
import { ByteWriter } from '../byte-writer.ts';
import { crc32 } from '../crc32.ts';

export const HEADER_BYTES = 64;
export const ALIGNMENT = 64;
/** CRC-32 of all bytes before it. */
export const FOOTER_BYTES = 4;

export const FLAG = {
  lz4: 1 << 0,
  zstd: 1 << 1,
  encrypted: 1 << 2,
  sharded: 1 << 4,
  quantized: 1 << 5,
  hasVocabulary: 1 << 9,
  rowMajor: 1 << 10,
  columnMajor: 1 << 11,
} as const;

export interface AprHeader {
  readonly flags: number;
  readonly tensorCount: number;
  /** From the start of the file, as the others. */
  readonly metadataOffset: number;
  readonly metadataSize: number;
  readonly indexOffset: number;
  readonly dataOffset: number;
}

/**
 * @param bytes the file's first 64
 * @throws AprError BAD_FORMAT, UNSUPPORTED
 */
export function readHeader(name: string, bytes: Uint8Array, fileSize: number): AprHeader {
  const bad = (reason: string): AprError => new AprError('BAD_FORMAT', `${name}: ${reason}`);
  if (bytes.length < HEADER_BYTES) {
    const message = `the .apr file has ${bytes.length} bytes, its header alone has ${HEADER_BYTES}; fetch it again`;
    throw bad(message);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, HEADER_BYTES);
  const major = view.getUint8(4);
  if (major !== 2) {
    const message = `${name}: .apr version ${major}, expected 2; ${major > 2 ? 'a newer apr may read it' : 'convert it anew'}`;
    throw new AprError('UNSUPPORTED', message, { version: major });
  }
  const stored = view.getUint32(40, true);
  const computed = headerChecksum(bytes);
  if (stored !== computed) {
    throw bad(`the header's CRC-32 is ${hex(stored)}, expected ${hex(computed)}; the file is damaged, fetch it again`);
  }
  const flags = view.getUint16(6, true);
  refuseFlags(name, flags);
  const offset = (at: number, what: string): number => {
    const value = view.getBigUint64(at, true);
    if (value >= HEADER_BYTES && value <= fileSize) return Number(value);
    throw bad(`${what} lies at byte ${value}, expected between ${HEADER_BYTES} and ${fileSize}, the file's size`);
  };
  const header: AprHeader = {
    flags,
    tensorCount: view.getUint32(8, true),
    metadataOffset: offset(12, 'the metadata'),
    metadataSize: view.getUint32(20, true),
    indexOffset: offset(24, 'the tensor index'),
    dataOffset: offset(32, 'the data'),
  };
  const metadataEnd = header.metadataOffset + header.metadataSize;
  if (metadataEnd > fileSize) {
    throw bad(`the file is truncated: its metadata ends at byte ${metadataEnd}, but it has ${fileSize} bytes`);
  }
  return header;
}

function refuseFlags(name: string, flags: number): void {
  const refuse = (what: string, remedy: string): never => {
    throw new AprError('UNSUPPORTED', `${name}: the .apr file is ${what}, which is not read; ${remedy}`, { flags });
  };
  if (flags & FLAG.columnMajor) refuse('in column-major order (LAYOUT-002)', 'convert the model anew, row by row');
  if (flags & FLAG.encrypted) refuse('encrypted', 'decrypt it first');
  if (flags & FLAG.sharded) refuse('one shard of several', 'convert the model anew into one file');
  // Compression flags are left alone: a writer sets them without compressing. Sizes in the index tell.
}

/** The header's bytes, checksum included. */
export function writeHeader(header: AprHeader): Uint8Array {
  const writer = new ByteWriter().text('APR\0').u8(2).u8(0).u16(header.flags).u32(header.tensorCount);
  writer.u64(header.metadataOffset).u32(header.metadataSize).u64(header.indexOffset).u64(header.dataOffset);
  writer.u32(0).raw(new Uint8Array(20));
  const bytes = writer.bytes();
  new DataView(bytes.buffer, bytes.byteOffset).setUint32(40, headerChecksum(bytes), true);
  return bytes;
}

function headerChecksum(bytes: Uint8Array): number {
  return crc32(bytes.subarray(44, HEADER_BYTES), crc32(bytes.subarray(0, 40)));
}

function hex(value: number): string {
  return `0x${value.toString(16).padStart(8, '0')}`;
}
