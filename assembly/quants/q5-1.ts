/**
 * Q5_1: 32 columns, value d · q + m.
 *
 * Native, 24 bytes:  0 d f16 | 2 m f16 | 4 fifth bits u32: bit i is for column i | 8 nibbles [16], as in Q4_0
 * Group, 384 bytes:  0 fifth bits [16 rows] u32: planes of four octets | 64 octets [4 of 8 columns][16 rows] u32
 *                    (simd/octets.ts) | 320 d f16[16 rows] | 352 m f16[16 rows]
 *
 * Activations: see q4-1.ts.
 */

import { add_scaled_plus_minimum } from '../simd/accumulate';
import { OCTET, RECORD_OFFSETS, RECORD_SCALES, SEGMENT } from '../simd/activations';
import { f32_from_f16, f32x4_load_f16 } from '../simd/half';
import { BYTE_MASK, dot_planes, FOURTH, held, high_nibbles, LOW_MASK, low_nibbles, THIRD } from '../simd/octets';
import { store_results, TILE_D, TILE_HALF, TILE_M } from '../simd/tile';
import { code_of, spread, store_halves, store_run } from './codes';
import { store_octet, TILE_OCTET, unpack_scales } from './k-tile';

export const NATIVE: usize = 24;
export const BLOCK: usize = 384;
const OCTETS: usize = 64;
const D: usize = 320;
const M: usize = 352;

export function repack(block: usize, native: usize, row: i32): void {
  const fifth = load<u32>(native, 4);
  store_run(
    block,
    row,
    1,
    spread(fifth & 255),
    spread((fifth >> 8) & 255),
    spread((fifth >> 16) & 255),
    spread(fifth >> 24),
  );
  store_halves(block + OCTETS, row, native + 8);
  store<u16>(block + (row << 1), load<u16>(native), D);
  store<u16>(block + (row << 1), load<u16>(native, 2), M);
}

export function dequantize(out: usize, block: usize, row: i32): void {
  const d = f32_from_f16(load<u16>(block + (row << 1), D));
  const m = f32_from_f16(load<u16>(block + (row << 1), M));
  for (let k = 0; k < 32; k++) {
    const q = code_of(block + OCTETS, row, 4, k) | (code_of(block, row, 1, k) << 4);
    store<f32>(out + (k << 2), d * <f32>q + m);
  }
}

export function dequantize_native(out: usize, native: usize): void {
  const d = f32_from_f16(load<u16>(native));
  const m = f32_from_f16(load<u16>(native, 2));
  const fifth = load<u32>(native, 4);
  for (let k = 0; k < 32; k++) {
    const nibble: i32 = (load<u8>(native + (k & 15), 8) >> ((k >> 4) << 2)) & 15;
    const q: i32 = nibble | (((fifth >> k) & 1) << 4);
    store<f32>(out + (k << 2), d * <f32>q + m);
  }
}

/** Place of the fifth bits above the nibbles. */
const UPPER_MASK: i32 = 0x10101010;

/** One token times a group: 16 results at TILE_RESULTS. */
export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  const half = scratch + TILE_HALF;
  const low = held(scratch, LOW_MASK);
  const mask = held(scratch, BYTE_MASK);
  const upper = held(scratch, UPPER_MASK);
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
    let s1 = s0;
    let s2 = s0;
    let s3 = s0;
    let p0 = v128.load(group);
    let p1 = v128.load(group, 16);
    let p2 = v128.load(group, 32);
    let p3 = v128.load(group, 48);
    group += 64;
    for (let octet = 0; octet < 4; octet++) {
      const x0 = v128.load32_splat(quants);
      const x1 = v128.load32_splat(quants, 4);
      const x2 = v128.load32_splat(quants, THIRD);
      const x3 = v128.load32_splat(quants, FOURTH);
      s0 = dot_planes(s0, v128.load(group), p0, 3, low, upper, mask, x0, x1, x2, x3);
      s1 = dot_planes(s1, v128.load(group, 16), p1, 3, low, upper, mask, x0, x1, x2, x3);
      s2 = dot_planes(s2, v128.load(group, 32), p2, 3, low, upper, mask, x0, x1, x2, x3);
      s3 = dot_planes(s3, v128.load(group, 48), p3, 3, low, upper, mask, x0, x1, x2, x3);
      p0 = i16x8.shr_u(p0, 2);
      p1 = i16x8.shr_u(p1, 2);
      p2 = i16x8.shr_u(p2, 2);
      p3 = i16x8.shr_u(p3, 2);
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
  const upper = held(tile, UPPER_MASK);
  const mask = held(tile, BYTE_MASK);
  const offset = i16x8.splat(0);
  const one = i16x8.splat(1);
  for (let b = 0; b < blocks; b++) {
    unpack_scales(tile, TILE_D + (b << 6), block + D);
    unpack_scales(tile, TILE_M + (b << 6), block + M);
    for (let v: usize = 0; v < 64; v += 16) {
      let plane = v128.load(block + v);
      for (let octet = 0; octet < 4; octet++) {
        const packed = v128.load(block + OCTETS + (octet << 6) + v);
        const first = v128.or(low_nibbles(packed, low), v128.and(i16x8.shl(plane, 4), upper));
        const second = v128.or(high_nibbles(packed, low), v128.and(i16x8.shl(plane, 3), upper));
        store_octet(tile + <usize>((b << 2) + octet) * TILE_OCTET + v, first, second, mask, offset, one);
        plane = i16x8.shr_u(plane, 2);
      }
    }
    block += BLOCK;
  }
}
