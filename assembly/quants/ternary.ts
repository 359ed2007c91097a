/**
 * Superblocks of ternary weights without scales in them: value d · (q − 1). A block is 16 rows of 256 columns:
 *
 *      0  d f16[16 rows]
 *     32  8 runs of 32 columns of codes of 2 bits (codes.ts)
 *   1056  end: 66 bytes a row
 */

import { add_scaled } from '../simd/accumulate';
import { OCTET, RECORD_SCALES, RECORD_SUMS32 } from '../simd/activations';
import { f32_from_f16, f32x4_load_f16 } from '../simd/half';
import { BYTE_MASK, dot_bytes, FOURTH, held, THIRD } from '../simd/octets';
import { store_results, TILE_D, TILE_HALF, TILE_PAIRS } from '../simd/tile';
import { code_of, TWO_MASK } from './codes';
import { store_octet, store_scales, TILE_OCTET, unpack_scales } from './k-tile';

export const BLOCK: usize = 1056;
export const RUNS: usize = 32;
export const RUN: usize = 128;

export function store_d(block: usize, row: i32, d: u32): void {
  store<u16>(block + (row << 1), d);
}

export function dequantize(out: usize, block: usize, row: i32): void {
  const d = f32_from_f16(load<u16>(block + (row << 1)));
  for (let k = 0; k < 256; k++) {
    const q = code_of(block + RUNS + <usize>(k >> 5) * RUN, row, 2, k & 31);
    store<f32>(out + (k << 2), d * <f32>(q - 1));
  }
}

/** One token times a group: 16 results at TILE_RESULTS. */
export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  const half = scratch + TILE_HALF;
  const low = held(scratch, TWO_MASK);
  const mask = held(scratch, BYTE_MASK);
  let y0 = f32x4.splat(0);
  let y1 = f32x4.splat(0);
  let y2 = f32x4.splat(0);
  let y3 = f32x4.splat(0);
  for (let column = 0; column < width; column += 256) {
    // −Σ x takes the offset of 1 away.
    let sums = i32x4.splat(0);
    const minus = i16x8.splat(-1);
    for (let p = 0; p < 4; p++) {
      sums = i32x4.add(sums, i32x4.dot_i16x8_s(v128.load32_splat(x + (p << 2), RECORD_SUMS32), minus));
    }
    let s0 = sums;
    let s1 = s0;
    let s2 = s0;
    let s3 = s0;
    let w = group + RUNS;
    let quants = x;
    for (let j = 0; j < 16; j++) {
      let p0 = v128.load(w);
      let p1 = v128.load(w, 16);
      let p2 = v128.load(w, 32);
      let p3 = v128.load(w, 48);
      w += 64;
      for (let octet = 0; octet < 2; octet++) {
        const x0 = v128.load32_splat(quants);
        const x1 = v128.load32_splat(quants, 4);
        const x2 = v128.load32_splat(quants, THIRD);
        const x3 = v128.load32_splat(quants, FOURTH);
        s0 = dot_bytes(s0, v128.and(p0, low), v128.and(i16x8.shr_u(p0, 2), low), mask, x0, x1, x2, x3);
        s1 = dot_bytes(s1, v128.and(p1, low), v128.and(i16x8.shr_u(p1, 2), low), mask, x0, x1, x2, x3);
        s2 = dot_bytes(s2, v128.and(p2, low), v128.and(i16x8.shr_u(p2, 2), low), mask, x0, x1, x2, x3);
        s3 = dot_bytes(s3, v128.and(p3, low), v128.and(i16x8.shr_u(p3, 2), low), mask, x0, x1, x2, x3);
        p0 = i16x8.shr_u(p0, 4);
        p1 = i16x8.shr_u(p1, 4);
        p2 = i16x8.shr_u(p2, 4);
        p3 = i16x8.shr_u(p3, 4);
        quants += OCTET;
      }
    }
    const dx = v128.load32_splat(x, RECORD_SCALES);
    y0 = add_scaled(y0, s0, f32x4_load_f16(group, half), dx);
    y1 = add_scaled(y1, s1, f32x4_load_f16(group + 8, half), dx);
    y2 = add_scaled(y2, s2, f32x4_load_f16(group + 16, half), dx);
    y3 = add_scaled(y3, s3, f32x4_load_f16(group + 24, half), dx);
    group += BLOCK;
    x += step;
  }
  store_results(scratch, y0, y1, y2, y3);
}

/** One block to a tile: i16 q − 1 in the plain build; q and scales of 1 in the relaxed one. */
export function unpack(tile: usize, block: usize): void {
  unpack_scales(tile, TILE_D, block);
  const one = i16x8.splat(1);
  if (ASC_FEATURE_RELAXED_SIMD) {
    for (let i: usize = 0; i < 512; i += 16) v128.store(tile + i, one, TILE_PAIRS);
  }
  const low = held(tile, TWO_MASK);
  const mask = held(tile, BYTE_MASK);
  for (let j = 0; j < 16; j++) {
    for (let v: usize = 0; v < 4; v++) {
      store_scales(tile, j, v, i32x4.splat(1));
      let plane = v128.load(block + RUNS + (j << 6) + (v << 4));
      for (let octet = 0; octet < 2; octet++) {
        const a = v128.and(plane, low);
        const b = v128.and(i16x8.shr_u(plane, 2), low);
        store_octet(tile + <usize>((j << 1) + octet) * TILE_OCTET + (v << 4), a, b, mask, one, one);
        plane = i16x8.shr_u(plane, 4);
      }
    }
  }
}
