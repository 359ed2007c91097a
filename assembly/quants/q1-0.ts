/**
 * Q1_0: 128 columns, value d when the bit is set, −d when it is not.
 *
 * Native, 18 bytes:  0 d f16 | 2 bits [16]: bit i of byte j is for column 8 j + i
 * Group, 288 bytes:  0 4 runs of codes of 1 bit (codes.ts) | 256 d f16[16 rows]
 */

import { add_scaled } from '../simd/accumulate';
import { OCTET, RECORD_OFFSETS, RECORD_SCALES, SEGMENT } from '../simd/activations';
import { f32_from_f16, f32x4_load_f16 } from '../simd/half';
import { BYTE_MASK, dot_bytes, FOURTH, held, THIRD } from '../simd/octets';
import { store_results, TILE_D, TILE_HALF } from '../simd/tile';
import { code_of, ONE_MASK, spread, store_run } from './codes';
import { store_octet, TILE_OCTET, unpack_scales } from './k-tile';

export const COLUMNS: i32 = 128;
export const NATIVE: usize = 18;
export const BLOCK: usize = 288;
const D: usize = 256;
const RUN: usize = 64;

export function repack(block: usize, native: usize, row: i32): void {
  for (let run: usize = 0; run < 4; run++) {
    const bits = load<u32>(native + (run << 2), 2);
    const at = block + (run << 6);
    store_run(
      at,
      row,
      1,
      spread(bits & 255),
      spread((bits >> 8) & 255),
      spread((bits >> 16) & 255),
      spread(bits >> 24),
    );
  }
  store<u16>(block + (row << 1), load<u16>(native), D);
}

export function dequantize(out: usize, block: usize, row: i32): void {
  const d = f32_from_f16(load<u16>(block + (row << 1), D));
  for (let k = 0; k < COLUMNS; k++) {
    const q = code_of(block + <usize>(k >> 5) * RUN, row, 1, k & 31);
    store<f32>(out + (k << 2), d * <f32>((q << 1) - 1));
  }
}

export function dequantize_native(out: usize, native: usize): void {
  const d = f32_from_f16(load<u16>(native));
  for (let k = 0; k < COLUMNS; k++) {
    const q: i32 = (load<u8>(native + (k >> 3), 2) >> (k & 7)) & 1;
    store<f32>(out + (k << 2), d * <f32>((q << 1) - 1));
  }
}

/** One token times a group: 16 results at TILE_RESULTS. */
export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  const half = scratch + TILE_HALF;
  const low = held(scratch, ONE_MASK);
  const mask = held(scratch, BYTE_MASK);
  let y0 = f32x4.splat(0);
  let y1 = f32x4.splat(0);
  let y2 = f32x4.splat(0);
  let y3 = f32x4.splat(0);
  for (let column = 0; column < width; column += 32) {
    const at = (column & (SEGMENT - 1)) >> 5;
    const record = x + <usize>(column >> 8) * step;
    let quants = record + <usize>(at << 2) * OCTET;
    // The scales stand behind the runs of the block.
    const d = group + D - <usize>((column & (COLUMNS - 1)) >> 5) * RUN;
    let s0 = i32x4.splat(0);
    let s1 = s0;
    let s2 = s0;
    let s3 = s0;
    let p0 = v128.load(group);
    let p1 = v128.load(group, 16);
    let p2 = v128.load(group, 32);
    let p3 = v128.load(group, 48);
    for (let octet = 0; octet < 4; octet++) {
      const x0 = v128.load32_splat(quants);
      const x1 = v128.load32_splat(quants, 4);
      const x2 = v128.load32_splat(quants, THIRD);
      const x3 = v128.load32_splat(quants, FOURTH);
      s0 = dot_bytes(s0, v128.and(p0, low), v128.and(i16x8.shr_u(p0, 1), low), mask, x0, x1, x2, x3);
      s1 = dot_bytes(s1, v128.and(p1, low), v128.and(i16x8.shr_u(p1, 1), low), mask, x0, x1, x2, x3);
      s2 = dot_bytes(s2, v128.and(p2, low), v128.and(i16x8.shr_u(p2, 1), low), mask, x0, x1, x2, x3);
      s3 = dot_bytes(s3, v128.and(p3, low), v128.and(i16x8.shr_u(p3, 1), low), mask, x0, x1, x2, x3);
      p0 = i16x8.shr_u(p0, 2);
      p1 = i16x8.shr_u(p1, 2);
      p2 = i16x8.shr_u(p2, 2);
      p3 = i16x8.shr_u(p3, 2);
      quants += OCTET;
    }
    const dx = v128.load32_splat(record + (at << 2), RECORD_SCALES);
    // −Σ x.
    const sum = i32x4.shr_s(v128.load32_splat(record + (at << 2), RECORD_OFFSETS), 3);
    y0 = add_scaled(y0, i32x4.add(i32x4.shl(s0, 1), sum), f32x4_load_f16(d, half), dx);
    y1 = add_scaled(y1, i32x4.add(i32x4.shl(s1, 1), sum), f32x4_load_f16(d + 8, half), dx);
    y2 = add_scaled(y2, i32x4.add(i32x4.shl(s2, 1), sum), f32x4_load_f16(d + 16, half), dx);
    y3 = add_scaled(y3, i32x4.add(i32x4.shl(s3, 1), sum), f32x4_load_f16(d + 24, half), dx);
    group += RUN;
    if (group == d) group += 32;
  }
  store_results(scratch, y0, y1, y2, y3);
}

/** Up to eight runs of 32 columns to a tile: i16 in the plain build; 2 q + 7, an offset of 8, in the relaxed one. */
export function unpack(tile: usize, block: usize, runs: i32): void {
  const low = held(tile, ONE_MASK);
  const mask = held(tile, BYTE_MASK);
  const seven = i8x16.splat(7);
  const offset = i16x8.splat(8);
  const one = i16x8.splat(1);
  for (let i = 0; i < runs; i++) {
    const run = block + <usize>(i & 3) * RUN;
    unpack_scales(tile, TILE_D + (i << 6), block + D);
    for (let v: usize = 0; v < 64; v += 16) {
      let plane = v128.load(run + v);
      for (let octet = 0; octet < 4; octet++) {
        const a = v128.and(plane, low);
        const b = v128.and(i16x8.shr_u(plane, 1), low);
        const at = tile + <usize>((i << 2) + octet) * TILE_OCTET + v;
        store_octet(at, i8x16.add(i8x16.add(a, a), seven), i8x16.add(i8x16.add(b, b), seven), mask, offset, one);
        plane = i16x8.shr_u(plane, 2);
      }
    }
    if ((i & 3) == 3) block += BLOCK;
  }
}
