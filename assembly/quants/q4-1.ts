/**
 * Q4_1: 32 columns, value d · q + m.
 *
 * Native, 20 bytes:  0 d f16 | 2 m f16 | 4 nibbles [16], as in Q4_0
 * Group, 320 bytes:  0 codes of 4 bits (codes.ts) | 256 d f16[16 rows] | 288 m f16[16 rows]
 *
 * ggml takes Q8_1 activations here: Q8_0 with d · Σ q as a binary16 beside it. The sums of Q8_0 records are exact.
 */

import { add_scaled_plus_minimum } from '../simd/accumulate';
import { OCTET, RECORD_OFFSETS, RECORD_SCALES, SEGMENT } from '../simd/activations';
import { f32_from_f16, f32x4_load_f16 } from '../simd/half';
import {
  BYTE_MASK,
  dot_nibbles,
  FOURTH,
  held,
  high_nibbles,
  LOW_MASK,
  low_nibbles,
  NIBBLE_MASK,
  THIRD,
} from '../simd/octets';
import { store_results, TILE_D, TILE_HALF, TILE_M } from '../simd/tile';
import { code_of, store_halves } from './codes';
import { store_octet, TILE_OCTET, unpack_scales } from './k-tile';

export const NATIVE: usize = 20;
export const BLOCK: usize = 320;
const D: usize = 256;
const M: usize = 288;

export function repack(block: usize, native: usize, row: i32): void {
  store_halves(block, row, native + 4);
  store<u16>(block + (row << 1), load<u16>(native), D);
  store<u16>(block + (row << 1), load<u16>(native, 2), M);
}

export function dequantize(out: usize, block: usize, row: i32): void {
  const d = f32_from_f16(load<u16>(block + (row << 1), D));
  const m = f32_from_f16(load<u16>(block + (row << 1), M));
  for (let k = 0; k < 32; k++) store<f32>(out + (k << 2), d * <f32>code_of(block, row, 4, k) + m);
}

export function dequantize_native(out: usize, native: usize): void {
  const d = f32_from_f16(load<u16>(native));
  const m = f32_from_f16(load<u16>(native, 2));
  for (let i = 0; i < 16; i++) {
    const byte: i32 = load<u8>(native + i, 4);
    store<f32>(out + (i << 2), d * <f32>(byte & 15) + m);
    store<f32>(out + (i << 2), d * <f32>(byte >> 4) + m, 64);
  }
}

/** One token times a group: 16 results at TILE_RESULTS. */
export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  const half = scratch + TILE_HALF;
  const mask = held(scratch, NIBBLE_MASK);
  let y0 = f32x4.splat(0);
  let y1 = f32x4.splat(0);
  let y2 = f32x4.splat(0);
  let y3 = f32x4.splat(0);
  for (let column = 0; column < width; column += 32) {
    const at = (column & (SEGMENT - 1)) >> 5;
    const record = x + <usize>(column >> 8) * step;
    let quants = record + <usize>(at << 2) * OCTET;
    const d = group + D;
    let s0 = i32x4.splat(0);
    let s1 = i32x4.splat(0);
    let s2 = i32x4.splat(0);
    let s3 = i32x4.splat(0);
    for (let octet = 0; octet < 4; octet++) {
      const x0 = v128.load32_splat(quants);
      const x1 = v128.load32_splat(quants, 4);
      const x2 = v128.load32_splat(quants, THIRD);
      const x3 = v128.load32_splat(quants, FOURTH);
      s0 = dot_nibbles(s0, v128.load(group), mask, x0, x1, x2, x3);
      s1 = dot_nibbles(s1, v128.load(group, 16), mask, x0, x1, x2, x3);
      s2 = dot_nibbles(s2, v128.load(group, 32), mask, x0, x1, x2, x3);
      s3 = dot_nibbles(s3, v128.load(group, 48), mask, x0, x1, x2, x3);
      group += 64;
      quants += OCTET;
    }
    const dx = v128.load32_splat(record + (at << 2), RECORD_SCALES);
    const sums = v128.load32_splat(record + (at << 2), RECORD_OFFSETS);
    y0 = finish(y0, s0, sums, d, dx, half);
    y1 = finish(y1, s1, sums, d + 8, dx, half);
    y2 = finish(y2, s2, sums, d + 16, dx, half);
    y3 = finish(y3, s3, sums, d + 24, dx, half);
    group = d + 64;
  }
  store_results(scratch, y0, y1, y2, y3);
}

/** `d` of four rows, their minima M − D behind it. */
function finish(y: v128, s: v128, sums: v128, d: usize, dx: v128, half: usize): v128 {
  const m = f32x4_load_f16(d + (M - D), half);
  return add_scaled_plus_minimum(y, s, f32x4_load_f16(d, half), sums, m, dx);
}

/** Up to eight blocks to a tile: i16 q in the plain build, unsigned bytes in the relaxed one. */
export function unpack(tile: usize, block: usize, blocks: i32): void {
  const low = held(tile, LOW_MASK);
  const mask = held(tile, BYTE_MASK);
  const zero = i16x8.splat(0);
  const one = i16x8.splat(1);
  for (let b = 0; b < blocks; b++) {
    unpack_scales(tile, TILE_D + (b << 6), block + D);
    unpack_scales(tile, TILE_M + (b << 6), block + M);
    for (let i: usize = 0; i < 256; i += 16) {
      const packed = v128.load(block + i);
      const at = tile + (<usize>(b << 2) + (i >> 6)) * TILE_OCTET + (i & 63);
      store_octet(at, low_nibbles(packed, low), high_nibbles(packed, low), mask, zero, one);
    }
    block += BLOCK;
  }
}
