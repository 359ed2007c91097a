/**
 * What the IQ1 types become at load: ternary codes g + 1 of 2 bits, one bit for each 8 columns that says whether their
 * delta of 1/8 is negative, and a scale for each 16 columns; value d · sc · (g ± 1/8). A block is 16 rows of 256 columns:
 *
 *      0  scales i8 [8 pairs][16 rows][2]
 *    256  d f16[16 rows]
 *    288  negative deltas [16 rows] u32: octet 0 is bit 31, octet 31 bit 0
 *    352  8 runs of 32 columns of codes of 2 bits (codes.ts)
 *   1376  end: 86 bytes a row
 *
 * Products are with 8 g ± 1, whole numbers, an eighth of which is taken with d.
 */

import { add_scaled } from '../simd/accumulate';
import { OCTET, RECORD_SCALES, RECORD_SUMS16 } from '../simd/activations';
import { f32_from_f16, f32x4_load_f16 } from '../simd/half';
import { BYTE_MASK, dot_bytes, FOURTH, held, THIRD } from '../simd/octets';
import { store_results, TILE_D, TILE_HALF, TILE_PAIRS } from '../simd/tile';
import { book_value, code_of, held_book, look_up, store_run, THIRD_MASK, TWO_MASK } from './codes';
import { both_lanes, dot_scales, scale_place, scales_of } from './k-scales';
import { store_octet, store_scales, TILE_OCTET } from './k-tile';

export const BLOCK: usize = 1376;
const SCALES: usize = 0;
const D: usize = 256;
const DELTAS: usize = 288;
const RUNS: usize = 352;
const RUN: usize = 128;

/** 8 g + 1 of codes 0, 1, 2, then 8 g − 1 of the same codes with 4 added; plus 64 = 2^SHIFT. */
const BOOK: u64 = 0x40473f3740494139;
const SHIFT: i32 = 6;

/** 8 · value / (d · sc) of a code. */
export function iq1_value(code: i32, negative: bool): f32 {
  return <f32>(book_value(BOOK, 0, code | (negative ? 4 : 0)) - 64);
}

/** d of a row, and the bits of its negative deltas. */
export function store_row(block: usize, row: i32, d: u32, deltas: u32): void {
  store<u16>(block + (row << 1), d, D);
  store<u32>(block + (row << 2), deltas, DELTAS);
}

export function store_scale(block: usize, row: i32, j: i32, scale: i32): void {
  store<i8>(scale_place(block + SCALES, j, row), scale);
}

/** Four octets of codes, one a byte, of run `run`. */
export function store_codes(block: usize, row: i32, run: i32, c0: u64, c1: u64, c2: u64, c3: u64): void {
  store_run(block + RUNS + <usize>run * RUN, row, 2, c0, c1, c2, c3);
}

export function dequantize(out: usize, block: usize, row: i32): void {
  const d = f32_from_f16(load<u16>(block + (row << 1), D)) * 0.125;
  const deltas = load<u32>(block + (row << 2), DELTAS);
  for (let k = 0; k < 256; k++) {
    const scale = d * <f32>load<i8>(scale_place(block + SCALES, k >> 4, row));
    const q = code_of(block + RUNS + <usize>(k >> 5) * RUN, row, 2, k & 31);
    store<f32>(out + (k << 2), scale * iq1_value(q, ((deltas >> (31 - (k >> 3))) & 1) != 0));
  }
}

/** acc + four rows' dot products of an octet; planes begin at it, its delta is the sign of `deltas`. */
function dot_octet(
  acc: v128,
  plane: v128,
  deltas: v128,
  two: v128,
  four: v128,
  book: v128,
  mask: v128,
  x0: v128,
  x1: v128,
  x2: v128,
  x3: v128,
): v128 {
  const negative = v128.and(i32x4.shr_s(deltas, 31), four);
  const a = look_up(book, v128.or(v128.and(plane, two), negative));
  const b = look_up(book, v128.or(v128.and(i16x8.shr_u(plane, 2), two), negative));
  return dot_bytes(acc, a, b, mask, x0, x1, x2, x3);
}

/** One token times a group: 16 results at TILE_RESULTS. */
export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  const half = scratch + TILE_HALF;
  const two = held(scratch, TWO_MASK);
  const four = held(scratch, THIRD_MASK);
  const mask = held(scratch, BYTE_MASK);
  const book = held_book(scratch, BOOK, 0);
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
    let t0 = v128.load(group, DELTAS);
    let t1 = v128.load(group, DELTAS + 16);
    let t2 = v128.load(group, DELTAS + 32);
    let t3 = v128.load(group, DELTAS + 48);
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
        a0 = dot_octet(a0, p0, t0, two, four, book, mask, x0, x1, x2, x3);
        a1 = dot_octet(a1, p1, t1, two, four, book, mask, x0, x1, x2, x3);
        a2 = dot_octet(a2, p2, t2, two, four, book, mask, x0, x1, x2, x3);
        a3 = dot_octet(a3, p3, t3, two, four, book, mask, x0, x1, x2, x3);
        p0 = i16x8.shr_u(p0, 4);
        p1 = i16x8.shr_u(p1, 4);
        p2 = i16x8.shr_u(p2, 4);
        p3 = i16x8.shr_u(p3, 4);
        t0 = i32x4.shl(t0, 1);
        t1 = i32x4.shl(t1, 1);
        t2 = i32x4.shl(t2, 1);
        t3 = i32x4.shl(t3, 1);
        quants += OCTET;
      }
      s0 = i32x4.add(s0, i32x4.mul(a0, scales_of(scales, j)));
      s1 = i32x4.add(s1, i32x4.mul(a1, scales_of(scales + 8, j)));
      s2 = i32x4.add(s2, i32x4.mul(a2, scales_of(scales + 16, j)));
      s3 = i32x4.add(s3, i32x4.mul(a3, scales_of(scales + 24, j)));
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

/** Takes the book's offset away. `block` is shifted to the four rows, by 8 bytes a row vector. */
function finish(y: v128, s: v128, block: usize, x: usize, dx: v128, half: usize): v128 {
  const m = dot_scales(block + SCALES, x + RECORD_SUMS16, 8);
  const d = f32x4.mul(f32x4_load_f16(block + D, half), f32x4.splat(0.125));
  return add_scaled(y, i32x4.sub(s, i32x4.shl(m, SHIFT)), d, dx);
}

/** One block to a tile: i16 in the plain build, unsigned bytes of the book and scales in the relaxed one. */
export function unpack(tile: usize, block: usize): void {
  for (let v: usize = 0; v < 4; v++) {
    const d = f32x4_load_f16(block + D + (v << 3), tile + TILE_HALF);
    v128.store(tile + (v << 4), f32x4.mul(d, f32x4.splat(0.125)), TILE_D);
  }
  if (ASC_FEATURE_RELAXED_SIMD) {
    for (let i: usize = 0; i < 256; i += 8) v128.store(tile + (i << 1), v128.load8x8_s(block + SCALES + i), TILE_PAIRS);
  }
  const two = held(tile, TWO_MASK);
  const four = held(tile, THIRD_MASK);
  const mask = held(tile, BYTE_MASK);
  const book = held_book(tile, BOOK, 0);
  const offset = i16x8.splat(64);
  for (let v: usize = 0; v < 4; v++) {
    let deltas = v128.load(block + DELTAS + (v << 4));
    for (let j = 0; j < 16; j++) {
      const scales = scales_of(block + SCALES + (v << 3), j);
      store_scales(tile, j, v, scales);
      const scale = both_lanes(scales);
      let plane = v128.load(block + RUNS + (j << 6) + (v << 4));
      for (let octet = 0; octet < 2; octet++) {
        const negative = v128.and(i32x4.shr_s(deltas, 31), four);
        const a = look_up(book, v128.or(v128.and(plane, two), negative));
        const b = look_up(book, v128.or(v128.and(i16x8.shr_u(plane, 2), two), negative));
        store_octet(tile + <usize>((j << 1) + octet) * TILE_OCTET + (v << 4), a, b, mask, offset, scale);
        plane = i16x8.shr_u(plane, 4);
        deltas = i32x4.shl(deltas, 1);
      }
    }
  }
}
