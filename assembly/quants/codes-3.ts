/**
 * Superblocks of three-bit codes into a book, a signed scale for each 16 columns: value d · factor · sc · (book[q] − 64).
 * Q3_K and what the IQ2 types become at load. A row is 256 columns; a block is 16 rows:
 *
 *      0  scales i8 [8 pairs][16 rows][2]
 *    256  d f16[16 rows]
 *    288  8 runs of 32 columns of codes of 3 bits (codes.ts)
 *   1824  end: 114 bytes a row
 */

import { add_scaled } from '../simd/accumulate';
import { OCTET, RECORD_SCALES, RECORD_SUMS16 } from '../simd/activations';
import { f32_from_f16, f32x4_load_f16 } from '../simd/half';
import { BYTE_MASK, dot_bytes, FOURTH, held, THIRD } from '../simd/octets';
import { store_results, TILE_D, TILE_HALF, TILE_PAIRS } from '../simd/tile';
import {
  book_value,
  code_of,
  first_code_of_3,
  held_book,
  look_up,
  second_code_of_3,
  store_run,
  THIRD_MASK,
  TWO_MASK,
} from './codes';
import { both_lanes, dot_scales, scale_place, scales_of } from './k-scales';
import { store_octet, store_scales, TILE_OCTET } from './k-tile';

export const BLOCK: usize = 1824;
export const SCALES: usize = 0;
export const D: usize = 256;
export const RUNS: usize = 288;
const RUN: usize = 192;
/** Books have 64 = 2^SHIFT added to their values. */
export const SHIFT: i32 = 6;

export function store_scale_3(block: usize, row: i32, j: i32, scale: i32): void {
  store<i8>(scale_place(block + SCALES, j, row), scale);
}

export function store_d_3(block: usize, row: i32, d: u32): void {
  store<u16>(block + (row << 1), d, D);
}

/** Four octets of codes, one a byte, of run `run`. */
export function store_codes_3(block: usize, row: i32, run: i32, c0: u64, c1: u64, c2: u64, c3: u64): void {
  store_run(block + RUNS + <usize>run * RUN, row, 3, c0, c1, c2, c3);
}

export function dequantize_3(out: usize, block: usize, row: i32, book: u64, factor: f32): void {
  const d = f32_from_f16(load<u16>(block + (row << 1), D)) * factor;
  for (let k = 0; k < 256; k++) {
    const scale = d * <f32>load<i8>(scale_place(block + SCALES, k >> 4, row));
    const q = code_of(block + RUNS + <usize>(k >> 5) * RUN, row, 3, k & 31);
    store<f32>(out + (k << 2), scale * <f32>(book_value(book, 0, q) - 64));
  }
}

/** One token times a group: 16 results at TILE_RESULTS. */
export function decode_3(
  scratch: usize,
  group: usize,
  x: usize,
  step: usize,
  width: i32,
  codes: u64,
  factor: f32,
): void {
  const half = scratch + TILE_HALF;
  const two = held(scratch, TWO_MASK);
  const four = held(scratch, THIRD_MASK);
  const mask = held(scratch, BYTE_MASK);
  const book = held_book(scratch, codes, 0);
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
    for (let run = 0; run < 16; run += 2) {
      let t0 = v128.load(w);
      let t1 = v128.load(w, 16);
      let t2 = v128.load(w, 32);
      let t3 = v128.load(w, 48);
      w += 64;
      for (let j = run; j < run + 2; j++) {
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
          a0 = dot_3(a0, p0, t0, two, four, book, mask, x0, x1, x2, x3);
          a1 = dot_3(a1, p1, t1, two, four, book, mask, x0, x1, x2, x3);
          a2 = dot_3(a2, p2, t2, two, four, book, mask, x0, x1, x2, x3);
          a3 = dot_3(a3, p3, t3, two, four, book, mask, x0, x1, x2, x3);
          p0 = i16x8.shr_u(p0, 4);
          p1 = i16x8.shr_u(p1, 4);
          p2 = i16x8.shr_u(p2, 4);
          p3 = i16x8.shr_u(p3, 4);
          t0 = i16x8.shr_u(t0, 2);
          t1 = i16x8.shr_u(t1, 2);
          t2 = i16x8.shr_u(t2, 2);
          t3 = i16x8.shr_u(t3, 2);
          quants += OCTET;
        }
        s0 = i32x4.add(s0, i32x4.mul(a0, scales_of(scales, j)));
        s1 = i32x4.add(s1, i32x4.mul(a1, scales_of(scales + 8, j)));
        s2 = i32x4.add(s2, i32x4.mul(a2, scales_of(scales + 16, j)));
        s3 = i32x4.add(s3, i32x4.mul(a3, scales_of(scales + 24, j)));
      }
    }
    const dx = v128.load32_splat(x, RECORD_SCALES);
    const part = f32x4.splat(factor);
    y0 = finish(y0, s0, group, x, dx, part, half);
    y1 = finish(y1, s1, group + 8, x, dx, part, half);
    y2 = finish(y2, s2, group + 16, x, dx, part, half);
    y3 = finish(y3, s3, group + 24, x, dx, part, half);
    group += BLOCK;
    x += step;
  }
  store_results(scratch, y0, y1, y2, y3);
}

function dot_3(
  acc: v128,
  plane: v128,
  third: v128,
  two: v128,
  four: v128,
  book: v128,
  mask: v128,
  x0: v128,
  x1: v128,
  x2: v128,
  x3: v128,
): v128 {
  const a = look_up(book, first_code_of_3(plane, third, two, four));
  const b = look_up(book, second_code_of_3(plane, third, two, four));
  return dot_bytes(acc, a, b, mask, x0, x1, x2, x3);
}

/** Takes the books' offset away. `block` is shifted to the four rows, by 8 bytes a row vector. */
function finish(y: v128, s: v128, block: usize, x: usize, dx: v128, factor: v128, half: usize): v128 {
  const m = dot_scales(block + SCALES, x + RECORD_SUMS16, 8);
  const d = f32x4.mul(f32x4_load_f16(block + D, half), factor);
  return add_scaled(y, i32x4.sub(s, i32x4.shl(m, SHIFT)), d, dx);
}

/** One block to a tile: i16 in the plain build, unsigned bytes of the book and scales in the relaxed one. */
export function unpack_3(tile: usize, block: usize, codes: u64, factor: f32): void {
  for (let v: usize = 0; v < 4; v++) {
    const d = f32x4_load_f16(block + D + (v << 3), tile + TILE_HALF);
    v128.store(tile + (v << 4), f32x4.mul(d, f32x4.splat(factor)), TILE_D);
  }
  if (ASC_FEATURE_RELAXED_SIMD) {
    for (let i: usize = 0; i < 256; i += 8) v128.store(tile + (i << 1), v128.load8x8_s(block + SCALES + i), TILE_PAIRS);
  }
  const two = held(tile, TWO_MASK);
  const four = held(tile, THIRD_MASK);
  const mask = held(tile, BYTE_MASK);
  const book = held_book(tile, codes, 0);
  const offset = i16x8.splat(64);
  for (let run = 0; run < 8; run++) {
    for (let v: usize = 0; v < 4; v++) {
      const at = block + RUNS + <usize>run * RUN + (v << 4);
      let third = v128.load(at);
      for (let j = 0; j < 2; j++) {
        const scales = scales_of(block + SCALES + (v << 3), 2 * run + j);
        store_scales(tile, 2 * run + j, v, scales);
        const scale = both_lanes(scales);
        let plane = v128.load(at + (j << 6), 64);
        for (let octet = 0; octet < 2; octet++) {
          const a = look_up(book, first_code_of_3(plane, third, two, four));
          const b = look_up(book, second_code_of_3(plane, third, two, four));
          const place = tile + <usize>(run * 4 + j * 2 + octet) * TILE_OCTET + (v << 4);
          store_octet(place, a, b, mask, offset, scale);
          plane = i16x8.shr_u(plane, 4);
          third = i16x8.shr_u(third, 2);
        }
      }
    }
  }
}
