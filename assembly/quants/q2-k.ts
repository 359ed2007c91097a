/**
 * Q2_K: 256 columns in 16 sub-blocks of 16, value d · sc · q − dmin · m.
 *
 * Native, 84 bytes:  0 scale (low nibble) and minimum (high) of each sub-block [16]
 *                   16 bit pairs [64]: pair j of byte 32 p + i is for column 128 p + 32 j + i | 80 d f16 | 82 dmin f16
 * Group, 1344 bytes:    0  scales and minima as they are [8 pairs][16 rows][2]
 *                     256  d f16[16 rows] | 288 dmin f16[16 rows]
 *                     320  8 runs of 32 columns of codes of 2 bits (codes.ts)
 */

import { add_scaled_less_minimum } from '../simd/accumulate';
import { OCTET, RECORD_SCALES, RECORD_SUMS16 } from '../simd/activations';
import { f32_from_f16, f32x4_load_f16 } from '../simd/half';
import { BYTE_MASK, dot_bytes, FOURTH, held, THIRD } from '../simd/octets';
import { store_results, TILE_D, TILE_DMIN, TILE_HALF, TILE_PAIRS } from '../simd/tile';
import { code_of, store_shifted, TWO_MASK } from './codes';
import { both_lanes, scale_place } from './k-scales';
import { store_octet, store_scales, TILE_OCTET, unpack_scales } from './k-tile';

export const NATIVE: usize = 84;
export const BLOCK: usize = 1344;
const SCALES: usize = 0;
const D: usize = 256;
const DMIN: usize = 288;
const RUNS: usize = 320;
const RUN: usize = 128;

export function repack(block: usize, native: usize, row: i32): void {
  for (let run = 0; run < 8; run++) {
    const bytes = native + 16 + ((run >> 2) << 5);
    store_shifted(block + RUNS + <usize>run * RUN, row, 2, bytes, (run & 3) << 1, 0x0303030303030303);
  }
  for (let j = 0; j < 16; j++) store<u8>(scale_place(block + SCALES, j, row), load<u8>(native + j));
  store<u16>(block + (row << 1), load<u16>(native, 80), D);
  store<u16>(block + (row << 1), load<u16>(native, 82), DMIN);
}

export function dequantize(out: usize, block: usize, row: i32): void {
  const d = f32_from_f16(load<u16>(block + (row << 1), D));
  const dmin = f32_from_f16(load<u16>(block + (row << 1), DMIN));
  for (let k = 0; k < 256; k++) {
    const packed: i32 = load<u8>(scale_place(block + SCALES, k >> 4, row));
    const q = code_of(block + RUNS + <usize>(k >> 5) * RUN, row, 2, k & 31);
    store<f32>(out + (k << 2), d * <f32>(packed & 15) * <f32>q - dmin * <f32>(packed >> 4));
  }
}

export function dequantize_native(out: usize, native: usize): void {
  const d = f32_from_f16(load<u16>(native, 80));
  const dmin = f32_from_f16(load<u16>(native, 82));
  for (let k = 0; k < 256; k++) {
    const packed: i32 = load<u8>(native + (k >> 4));
    const q: i32 = (load<u8>(native + ((k >> 7) << 5) + (k & 31), 16) >> (((k >> 5) & 3) << 1)) & 3;
    store<f32>(out + (k << 2), d * <f32>(packed & 15) * <f32>q - dmin * <f32>(packed >> 4));
  }
}

/** Scales of sub-block j of four rows as i32; `scales` points at the first of the rows. */
function two_bit_scales(scales: usize, j: i32): v128 {
  const pair = v128.load8x8_u(scales + ((j >> 1) << 5));
  return v128.and(i32x4.shr_u(pair, (j & 1) << 4), i32x4.splat(15));
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
    let s0 = i32x4.splat(0);
    let s1 = i32x4.splat(0);
    let s2 = i32x4.splat(0);
    let s3 = i32x4.splat(0);
    const scales = group + SCALES;
    let w = group + RUNS;
    let quants = x;
    for (let j = 0; j < 16; j++) {
      let a0 = i32x4.splat(0);
      let a1 = i32x4.splat(0);
      let a2 = i32x4.splat(0);
      let a3 = i32x4.splat(0);
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
        a0 = dot_bytes(a0, v128.and(p0, low), v128.and(i16x8.shr_u(p0, 2), low), mask, x0, x1, x2, x3);
        a1 = dot_bytes(a1, v128.and(p1, low), v128.and(i16x8.shr_u(p1, 2), low), mask, x0, x1, x2, x3);
        a2 = dot_bytes(a2, v128.and(p2, low), v128.and(i16x8.shr_u(p2, 2), low), mask, x0, x1, x2, x3);
        a3 = dot_bytes(a3, v128.and(p3, low), v128.and(i16x8.shr_u(p3, 2), low), mask, x0, x1, x2, x3);
        p0 = i16x8.shr_u(p0, 4);
        p1 = i16x8.shr_u(p1, 4);
        p2 = i16x8.shr_u(p2, 4);
        p3 = i16x8.shr_u(p3, 4);
        quants += OCTET;
      }
      s0 = i32x4.add(s0, i32x4.mul(a0, two_bit_scales(scales, j)));
      s1 = i32x4.add(s1, i32x4.mul(a1, two_bit_scales(scales + 8, j)));
      s2 = i32x4.add(s2, i32x4.mul(a2, two_bit_scales(scales + 16, j)));
      s3 = i32x4.add(s3, i32x4.mul(a3, two_bit_scales(scales + 24, j)));
    }
    const dx = v128.load32_splat(x, RECORD_SCALES);
    y0 = finish(y0, s0, group, x, dx, half);
    y1 = finish(y1, s1, group + 8, x, dx, half);
    y2 = finish(y2, s2, group + 16, x, dx, half);
    y3 = finish(y3, s3, group + 24, x, dx, half);
    group += BLOCK;
    x += step;
  }
  store_results(scratch, y0, y1, y2, y3);
}

/** `block` is shifted to the four rows: by 8 bytes a row vector, in scales, d and dmin alike. */
function finish(y: v128, s: v128, block: usize, x: usize, dx: v128, half: usize): v128 {
  let m = i32x4.splat(0);
  for (let p = 0; p < 8; p++) {
    const pair = i16x8.shr_u(v128.load8x8_u(block + SCALES + (p << 5)), 4);
    m = i32x4.add(m, i32x4.dot_i16x8_s(pair, v128.load32_splat(x + RECORD_SUMS16 + (p << 2))));
  }
  const d = f32x4_load_f16(block + D, half);
  return add_scaled_less_minimum(y, s, d, m, f32x4_load_f16(block + DMIN, half), dx);
}

/** One block to a tile: i16 sc · q in the plain build, unsigned bytes and scales in the relaxed one. */
export function unpack(tile: usize, block: usize): void {
  for (let i: usize = 0; i < 256; i += 8) {
    v128.store(tile + (i << 1), i16x8.shr_u(v128.load8x8_u(block + SCALES + i), 4), TILE_PAIRS);
  }
  unpack_scales(tile, TILE_D, block + D);
  unpack_scales(tile, TILE_DMIN, block + DMIN);
  const low = held(tile, TWO_MASK);
  const mask = held(tile, BYTE_MASK);
  const zero = i16x8.splat(0);
  for (let j = 0; j < 16; j++) {
    for (let v: usize = 0; v < 4; v++) {
      const scales = two_bit_scales(block + SCALES + (v << 3), j);
      store_scales(tile, j, v, scales);
      const scale = both_lanes(scales);
      let plane = v128.load(block + RUNS + (j << 6) + (v << 4));
      for (let octet = 0; octet < 2; octet++) {
        const a = v128.and(plane, low);
        const b = v128.and(i16x8.shr_u(plane, 2), low);
        store_octet(tile + <usize>((j << 1) + octet) * TILE_OCTET + (v << 4), a, b, mask, zero, scale);
        plane = i16x8.shr_u(plane, 4);
      }
    }
  }
}
