/** Random weights of every type, and products of them as the reference backend's readers define them. */

import { gridEntries } from '../../src/backends/grids.ts';
import { dequantize } from '../../src/backends/reference/dequantize.ts';
import { roundTrip } from '../../src/backends/reference/round-trip.ts';
import { type GgmlType, type GgmlTypeName, ggmlType, rowBytes } from '../../src/formats/ggml-types.ts';
import type { KernelHost } from './kernel-host.ts';

export const TYPES: readonly GgmlTypeName[] = [
  'F32',
  'F16',
  'BF16',
  'Q4_0',
  'Q4_1',
  'Q5_0',
  'Q5_1',
  'Q8_0',
  'Q2_K',
  'Q3_K',
  'Q4_K',
  'Q5_K',
  'Q6_K',
  'IQ1_S',
  'IQ1_M',
  'IQ2_XXS',
  'IQ2_XS',
  'IQ2_S',
  'IQ3_XXS',
  'IQ3_S',
  'IQ4_NL',
  'IQ4_XS',
  'TQ1_0',
  'TQ2_0',
  'MXFP4',
  'Q1_0',
  'Q2_0',
];

/** Where the f16 scales of a block lie. */
const SCALES: Partial<Record<GgmlTypeName, readonly number[]>> = {
  Q4_0: [0],
  Q4_1: [0, 2],
  Q5_0: [0],
  Q5_1: [0, 2],
  Q8_0: [0],
  Q4_K: [0, 2],
  Q5_K: [0, 2],
  Q6_K: [208],
  Q2_K: [80, 82],
  Q3_K: [108],
  IQ1_S: [0],
  IQ2_XXS: [0],
  IQ2_XS: [0],
  IQ2_S: [0],
  IQ3_XXS: [0],
  IQ3_S: [0],
  IQ4_NL: [0],
  IQ4_XS: [0],
  TQ1_0: [52],
  TQ2_0: [64],
  Q1_0: [0],
  Q2_0: [0],
};

/** xorshift32, so that every run sees the same numbers. */
export function random(seed: number): () => number {
  let state = seed | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

export function gaussian(next: () => number): number {
  return Math.sqrt(-2 * Math.log(next() + 1e-12)) * Math.cos(2 * Math.PI * next());
}

/** `rows` native rows: random bits, with scales that are small numbers, some of them subnormal or negative. */
export function nativeRows(name: GgmlTypeName, width: number, rows: number, seed: number): Uint8Array {
  const type = ggmlType(name);
  const next = random(seed);
  const bytes = new Uint8Array(rowBytes(type, width) * rows);
  const view = new DataView(bytes.buffer);
  if (name === 'F32') {
    for (let i = 0; i < bytes.length; i += 4) view.setFloat32(i, gaussian(next), true);
    return bytes;
  }
  if (name === 'F16' || name === 'BF16') {
    // Halves of all magnitudes below 2 in F16; exponents around 1 in BF16.
    for (let i = 0; i < bytes.length; i += 2) {
      const sign = next() < 0.5 ? 0x8000 : 0;
      view.setUint16(
        i,
        sign | (name === 'F16' ? Math.floor(next() * 0x4000) : 0x3d00 + Math.floor(next() * 0x300)),
        true,
      );
    }
    return bytes;
  }
  for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(next() * 256);
  for (let block = 0; block < bytes.length; block += type.blockBytes) {
    for (const place of SCALES[name] ?? []) {
      const half = next() < 0.1 ? Math.floor(next() * 0x400) : 0x1800 + Math.floor(next() * 0x1000);
      view.setUint16(block + place, half | (next() < 0.2 ? 0x8000 : 0), true);
    }
    // An exponent: 0 and 1 are subnormal scales.
    if (name === 'MXFP4') bytes[block] = next() < 0.1 ? Math.floor(next() * 4) : 116 + Math.floor(next() * 12);
    if (name === 'IQ1_M') {
      // The scale is a nibble in each of four words.
      const half = 0x1800 + Math.floor(next() * 0x1000);
      for (let word = 0; word < 4; word++) {
        const at = block + 48 + 2 * word;
        view.setUint16(at, (view.getUint16(at, true) & 0xfff) | (((half >> (4 * word)) & 15) << 12), true);
      }
    }
  }
  return bytes;
}

/** Puts the grid of a type into memory; 0 for a type without one. */
export function placeGrid(host: KernelHost, type: GgmlType): number {
  const entries = gridEntries(type.id);
  if (entries === undefined) return 0;
  const pointer = host.alloc(entries.byteLength);
  host.bytes(pointer, entries.byteLength).set(new Uint8Array(entries.buffer));
  return pointer;
}

export interface Matrix {
  readonly type: GgmlType;
  readonly width: number;
  readonly rows: number;
  readonly native: Uint8Array;
  /** Interleaved groups. */
  readonly pointer: number;
  /** What `repack` took as `grid`. */
  readonly grid: number;
}

export function placeMatrix(host: KernelHost, name: GgmlTypeName, width: number, rows: number, seed: number): Matrix {
  return placeRows(host, ggmlType(name), width, rows, nativeRows(name, width, rows, seed));
}

/** Puts native rows into memory as groups. */
export function placeRows(host: KernelHost, type: GgmlType, width: number, rows: number, native: Uint8Array): Matrix {
  const size = host.exports.group_bytes(type.id, width) >>> 0;
  const staging = host.alloc(native.length);
  host.bytes(staging, native.length).set(native);
  const pointer = host.alloc(size * Math.ceil(rows / 16));
  // Whatever stood there before must not shine through where rows are missing.
  host.bytes(pointer, size * Math.ceil(rows / 16)).fill(0x5a);
  const row = rowBytes(type, width);
  const grid = placeGrid(host, type);
  for (let first = 0; first < rows; first += 16) {
    const count = Math.min(16, rows - first);
    host.exports.repack(type.id, staging + first * row, pointer + (first / 16) * size, width, count, grid);
  }
  return { type, width, rows, native, pointer, grid };
}

export function referenceRow(matrix: Matrix, row: number): Float32Array {
  const out = new Float32Array(matrix.width);
  const view = new DataView(matrix.native.buffer);
  dequantize(matrix.type, view, row * rowBytes(matrix.type, matrix.width), matrix.width, out);
  return out;
}

export function activations(width: number, rows: number, seed: number): Float32Array {
  const next = random(seed);
  const x = new Float32Array(width * rows);
  for (let i = 0; i < x.length; i++) x[i] = gaussian(next) * (next() < 0.01 ? 8 : 1);
  return x;
}

/** Puts `x` into memory in the form that products with the type take; in pieces, if `pieces` says so. */
export function placeActivations(
  host: KernelHost,
  type: GgmlType,
  x: Float32Array,
  width: number,
  rows: number,
): number {
  const { exports } = host;
  const source = host.alloc(x.length * 4);
  host.floats(source, x.length).set(x);
  const format = exports.activation_format(type.id);
  const dst = host.alloc(exports.activation_bytes(format, width, rows));
  const items = rows * Math.ceil(width / 256);
  for (let item = items - 1; item >= 0; item--) {
    exports.quantize(item, item + 1, host.scratch, format, dst, source, width, rows);
  }
  return dst;
}

/** Row r of weights · row i of x, and Σ |w x|, in f64. */
export function referenceProduct(
  matrix: Matrix,
  x: Float32Array,
): (i: number, r: number) => { value: number; magnitude: number } {
  const { width } = matrix;
  const rounded = Float32Array.from(x);
  for (let at = 0; at < x.length; at += width) roundTrip(matrix.type.name, rounded, at, width);
  const weights = Array.from({ length: matrix.rows }, (_, r) => referenceRow(matrix, r));
  return (i, r) => {
    const row = weights[r]!;
    let value = 0;
    let magnitude = 0;
    for (let k = 0; k < width; k++) {
      const product = row[k]! * rounded[i * width + k]!;
      value += product;
      magnitude += Math.abs(product);
    }
    return { value, magnitude };
  };
}

/** mul_mat of all rows of x by `list`, one group at a time, last group first; dst has `dstRows` rows of matrix.rows. */
export function mulMat(
  host: KernelHost,
  matrix: Matrix,
  x: number,
  xRows: number,
  pairs: readonly (readonly [number, number])[],
  dstRows: number,
): Float32Array {
  const list = host.alloc(pairs.length * 8);
  host.ints(list, pairs.length * 2).set(pairs.flat());
  const dst = host.alloc(dstRows * matrix.rows * 4);
  const out = host.floats(dst, dstRows * matrix.rows).fill(-12345);
  for (let g = Math.ceil(matrix.rows / 16) - 1; g >= 0; g--) {
    host.exports.mul_mat(
      g,
      g + 1,
      host.scratch,
      matrix.type.id,
      dst,
      matrix.rows,
      matrix.pointer,
      matrix.width,
      matrix.rows,
      x,
      xRows,
      list,
      pairs.length,
    );
  }
  return Float32Array.from(out);
}
