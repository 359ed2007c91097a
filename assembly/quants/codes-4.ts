/**
 * Superblocks of four-bit codes into a book, a signed scale for each 32 columns: value d · factor · sc · book[q].
 * IQ4_XS, whose codes lie as iq4-book.ts says, and what the IQ3 types become at load. A block is 16 rows of 256 columns:
 *
 *      0  scales i8 [4 pairs][16 rows][2]
 *    128  d · factor f32[16 rows]
 *    192  8 runs of 32 columns of codes of 4 bits (codes.ts)
 *   2240  end: 140 bytes a row
 */

import { add_scaled } from '../simd/accumulate';
import { OCTET, RECORD_SCALES, RECORD_SUMS32 } from '../simd/activations';
import { BYTE_MASK, FOURTH, held, high_nibbles, LOW_MASK, low_nibbles, THIRD } from '../simd/octets';
import { store_results, TILE_D, TILE_PAIRS } from '../simd/tile';
import { book_value, code_of, dot_book, held_book, look_up, store_run } from './codes';
import { both_lanes, dot_scales, scale_place, scales_of } from './k-scales';
import { copy_scales, store_octet, store_scales, TILE_OCTET } from './k-tile';

export const BLOCK: usize = 2240;
export const SCALES: usize = 0;
export const D: usize = 128;
export const RUNS: usize = 192;
export const RUN: usize = 256;
/** Books of the IQ3 types have 64 = 2^SHIFT added to their values. */
export const SHIFT: i32 = 6;

export function store_scale_4(block: usize, row: i32, j: i32, scale: i32): void {
  store<i8>(scale_place(block + SCALES, j, row), scale);
}

export function store_d_4(block: usize, row: i32, d: f32): void {
  store<f32>(block + (row << 2), d, D);
}

/** Four octets of codes, one a byte, of run `run`. */
export function store_codes_4(block: usize, row: i32, run: i32, c0: u64, c1: u64, c2: u64, c3: u64): void {
  store_run(block + RUNS + <usize>run * RUN, row, 4, c0, c1, c2, c3);
}

export function dequantize_4(out: usize, block: usize, row: i32, low: u64, high: u64, offset: i32): void {
  const d = load<f32>(block + (row << 2), D);
  for (let k = 0; k < 256; k++) {
    const scale = d * <f32>load<i8>(scale_place(block + SCALES, k >> 5, row));
    const q = code_of(block + RUNS + <usize>(k >> 5) * RUN, row, 4, k & 31);
    store<f32>(out + (k << 2), scale * <f32>(book_value(low, high, q) - offset));
  }
}

/** One token times a group: 16 results at TILE_RESULTS. The book's values have 2^shift added. */
export function decode_4(
  scratch: usize,
  group: usize,
  x: usize,
  step: usize,
  width: i32,
  book: v128,
  shift: i32,
): void {
  const low = held(scratch, LOW_MASK);
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
    for (let j = 0; j < 8; j++) {
      let a0 = i32x4.splat(0);
      let a1 = i32x4.splat(0);
      let a2 = i32x4.splat(0);
      let a3 = i32x4.splat(0);
      for (let octet = 0; octet < 4; octet++) {
        const x0 = v128.load32_splat(quants);
        const x1 = v128.load32_splat(quants, 4);
        const x2 = v128.load32_splat(quants, THIRD);
        const x3 = v128.load32_splat(quants, FOURTH);
        a0 = dot_book(a0, v128.load(w), low, book, mask, x0, x1, x2, x3);
        a1 = dot_book(a1, v128.load(w, 16), low, book, mask, x0, x1, x2, x3);
        a2 = dot_book(a2, v128.load(w, 32), low, book, mask, x0, x1, x2, x3);
        a3 = dot_book(a3, v128.load(w, 48), low, book, mask, x0, x1, x2, x3);
        w += 64;
        quants += OCTET;
      }
      s0 = i32x4.add(s0, i32x4.mul(a0, scales_of(scales, j)));
      s1 = i32x4.add(s1, i32x4.mul(a1, scales_of(scales + 8, j)));
      s2 = i32x4.add(s2, i32x4.mul(a2, scales_of(scales + 16, j)));
      s3 = i32x4.add(s3, i32x4.mul(a3, scales_of(scales + 24, j)));
    }
    const dx = v128.load32_splat(x, RECORD_SCALES);
    y0 = finish_4(y0, s0, group, 0, x, dx, shift);
    y1 = finish_4(y1, s1, group, 16, x, dx, shift);
    y2 = finish_4(y2, s2, group, 32, x, dx, shift);
    y3 = finish_4(y3, s3, group, 48, x, dx, shift);
    group += BLOCK;
    x += step;
  }
  store_results(scratch, y0, y1, y2, y3);
}

/** Takes the book's offset, 2^shift, away. `rows` is the place of the four rows' d among those of the group. */
export function finish_4(y: v128, s: v128, group: usize, rows: usize, x: usize, dx: v128, shift: i32): v128 {
  const m = dot_scales(group + (rows >> 1) + SCALES, x + RECORD_SUMS32, 4);
  return add_scaled(y, i32x4.sub(s, i32x4.shl(m, shift)), v128.load(group + rows, D), dx);
}

/** One block of an IQ3 type to a tile: i16 in the plain build, unsigned bytes of the book and scales in the relaxed one. */
export function unpack_4(tile: usize, block: usize, bookLow: u64, bookHigh: u64): void {
  copy_scales(tile, TILE_D, block + D);
  if (ASC_FEATURE_RELAXED_SIMD) {
    for (let i: usize = 0; i < 128; i += 8) v128.store(tile + (i << 1), v128.load8x8_s(block + SCALES + i), TILE_PAIRS);
  }
  const low = held(tile, LOW_MASK);
  const mask = held(tile, BYTE_MASK);
  const book = held_book(tile, bookLow, bookHigh);
  const offset = i16x8.splat(64);
  for (let j = 0; j < 8; j++) {
    for (let v: usize = 0; v < 4; v++) {
      const scales = scales_of(block + SCALES + (v << 3), j);
      store_scales(tile, j, v, scales);
      const scale = both_lanes(scales);
      for (let octet = 0; octet < 4; octet++) {
        const packed = v128.load(block + RUNS + <usize>j * RUN + (octet << 6) + (v << 4));
        const a = look_up(book, low_nibbles(packed, low));
        const b = look_up(book, high_nibbles(packed, low));
        store_octet(tile + <usize>((j << 2) + octet) * TILE_OCTET + (v << 4), a, b, mask, offset, scale);
      }
    }
  }
}
