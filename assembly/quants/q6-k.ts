/**
 * Q6_K: 256 columns in 16 sub-blocks of 16, value d · sc · (q − 32).
 *
 * Native, 210 bytes:  0 low nibbles [128] | 128 upper bit pairs [64] | 192 scales i8[16] | 208 d f16
 *                     Each half of 128 columns: 64 bytes of nibbles, 32 of bit pairs. Column c = 32 run + i of a half has
 *                     nibble byte 32 (run & 1) + i, high nibble from run 2 on, and bit pair `run` of byte i.
 * Group, 3392 bytes:    0  scales i8 [16][16 rows]
 *                     256  d f32[16 rows]
 *                     320  16 sub-blocks of 192 bytes: three words for each row, [3][16 rows] u32 (simd/sixes.ts)
 */

import { add_scaled } from '../simd/accumulate';
import { RECORD_SCALES, RECORD_SUMS16, STAIRS_SIX_OFFSETS, STAIRS_SIXES } from '../simd/activations';
import { f32_from_f16 } from '../simd/half';
import { held } from '../simd/octets';
import { last_six_bytes, last_six_pair, pack_sixes, SIX_MASK, unpack_six } from '../simd/sixes';
import { store_results, TILE_D, TILE_PAIRS, TILE_RESULTS } from '../simd/tile';
import { both_lanes, row_scale_pairs, row_scale_place, row_scales } from './k-scales';
import { copy_scales, store_scales } from './k-tile';

export const NATIVE: usize = 210;
export const BLOCK: usize = 3392;
const SCALES: usize = 0;
const D: usize = 256;
const SUBS: usize = 320;
const SUB: usize = 192;

/** Value of column k, 0 … 63. */
function native_six(native: usize, k: i32): i32 {
  const part = k >> 7;
  const run = (k >> 5) & 3;
  const i = k & 31;
  const nibble: i32 = (load<u8>(native + (part << 6) + ((run & 1) << 5) + i) >> ((run >> 1) << 2)) & 15;
  const pair: i32 = (load<u8>(native + (part << 5) + i, 128) >> (run << 1)) & 3;
  return nibble | (pair << 4);
}

export function repack(block: usize, native: usize, row: i32): void {
  for (let j = 0; j < 16; j++) {
    const at = block + SUBS + <usize>j * SUB + (row << 2);
    // The sixteen values, a byte each, as two words of eight.
    const part = native + ((j >> 3) << 6);
    const run = (j >> 1) & 3;
    const i: usize = (j & 1) << 4;
    const nibbles = part + ((run & 1) << 5) + i;
    const pairs = native + 128 + ((j >> 3) << 5) + i;
    const low: u64 = 0x0f0f0f0f0f0f0f0f;
    const high: u64 = 0x3030303030303030;
    const nibbleShift: u64 = (run >> 1) << 2;
    const pairShift: u64 = run << 1;
    const first = ((load<u64>(nibbles) >> nibbleShift) & low) | (((load<u64>(pairs) >> pairShift) << 4) & high);
    const second = ((load<u64>(nibbles, 8) >> nibbleShift) & low) | (((load<u64>(pairs, 8) >> pairShift) << 4) & high);
    pack_sixes(at, first, second);
    store<u8>(row_scale_place(block + SCALES, j, row), load<u8>(native + j, 192));
  }
  store<f32>(block + (row << 2), f32_from_f16(load<u16>(native, 208)), D);
}

export function dequantize(out: usize, block: usize, row: i32): void {
  const d = load<f32>(block + (row << 2), D);
  for (let k = 0; k < 256; k++) {
    const scale = d * <f32>load<i8>(row_scale_place(block + SCALES, k >> 4, row));
    const q = unpack_six(block + SUBS + <usize>(k >> 4) * SUB + (row << 2), k & 15);
    store<f32>(out + (k << 2), scale * <f32>(q - 32));
  }
}

export function dequantize_native(out: usize, native: usize): void {
  const d = f32_from_f16(load<u16>(native, 208));
  for (let k = 0; k < 256; k++) {
    const scale = d * <f32>load<i8>(native + (k >> 4), 192);
    store<f32>(out + (k << 2), scale * <f32>(native_six(native, k) - 32));
  }
}

/** One token times a group: 16 results at TILE_RESULTS. In the plain build `x` points at stair records. */
export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  if (ASC_FEATURE_RELAXED_SIMD) decode_bytes(scratch, group, x, step, width);
  else decode_stairs(scratch, group, x, step, width);
}

/**
 * V8 moves the loads of a straight run of code to its front, and what is computed to where it is used: here that would
 * need some thirty registers, and every vector would go through the stack. Branches that are never taken (no group lies
 * at address 1, 2 or 3) but might set the sums hold the parts together: 21.4 G MAC/s instead of 18.3.
 */
function decode_stairs(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
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
    let w = group + SUBS;
    let factors = x + STAIRS_SIXES;
    for (let j = 0; j < 16; j++) {
      let a0 = v128.load32_splat(x + (j << 2), STAIRS_SIX_OFFSETS);
      let a1 = a0;
      let a2 = a0;
      let a3 = a0;
      let v0 = v128.load(w);
      let v1 = v128.load(w, 16);
      let v2 = v128.load(w, 32);
      let v3 = v128.load(w, 48);
      let f = v128.load32_splat(factors);
      a0 = i32x4.add(a0, i32x4.dot_i16x8_s(v0, f));
      a1 = i32x4.add(a1, i32x4.dot_i16x8_s(v1, f));
      a2 = i32x4.add(a2, i32x4.dot_i16x8_s(v2, f));
      a3 = i32x4.add(a3, i32x4.dot_i16x8_s(v3, f));
      f = v128.load32_splat(factors, 4);
      v0 = i16x8.shr_s(v0, 6);
      v1 = i16x8.shr_s(v1, 6);
      v2 = i16x8.shr_s(v2, 6);
      v3 = i16x8.shr_s(v3, 6);
      a0 = i32x4.add(a0, i32x4.dot_i16x8_s(v0, f));
      a1 = i32x4.add(a1, i32x4.dot_i16x8_s(v1, f));
      a2 = i32x4.add(a2, i32x4.dot_i16x8_s(v2, f));
      a3 = i32x4.add(a3, i32x4.dot_i16x8_s(v3, f));
      f = v128.load32_splat(factors, 8);
      v0 = i16x8.shr_s(v0, 6);
      v1 = i16x8.shr_s(v1, 6);
      v2 = i16x8.shr_s(v2, 6);
      v3 = i16x8.shr_s(v3, 6);
      a0 = i32x4.add(a0, i32x4.dot_i16x8_s(v0, f));
      a1 = i32x4.add(a1, i32x4.dot_i16x8_s(v1, f));
      a2 = i32x4.add(a2, i32x4.dot_i16x8_s(v2, f));
      a3 = i32x4.add(a3, i32x4.dot_i16x8_s(v3, f));
      if (w == 1) {
        a0 = v128.load(w);
        a1 = a2 = a3 = a0;
      }
      v0 = v128.load(w, 64);
      v1 = v128.load(w, 80);
      v2 = v128.load(w, 96);
      v3 = v128.load(w, 112);
      f = v128.load32_splat(factors, 12);
      a0 = i32x4.add(a0, i32x4.dot_i16x8_s(v0, f));
      a1 = i32x4.add(a1, i32x4.dot_i16x8_s(v1, f));
      a2 = i32x4.add(a2, i32x4.dot_i16x8_s(v2, f));
      a3 = i32x4.add(a3, i32x4.dot_i16x8_s(v3, f));
      f = v128.load32_splat(factors, 16);
      v0 = i16x8.shr_s(v0, 6);
      v1 = i16x8.shr_s(v1, 6);
      v2 = i16x8.shr_s(v2, 6);
      v3 = i16x8.shr_s(v3, 6);
      a0 = i32x4.add(a0, i32x4.dot_i16x8_s(v0, f));
      a1 = i32x4.add(a1, i32x4.dot_i16x8_s(v1, f));
      a2 = i32x4.add(a2, i32x4.dot_i16x8_s(v2, f));
      a3 = i32x4.add(a3, i32x4.dot_i16x8_s(v3, f));
      f = v128.load32_splat(factors, 20);
      v0 = i16x8.shr_s(v0, 6);
      v1 = i16x8.shr_s(v1, 6);
      v2 = i16x8.shr_s(v2, 6);
      v3 = i16x8.shr_s(v3, 6);
      a0 = i32x4.add(a0, i32x4.dot_i16x8_s(v0, f));
      a1 = i32x4.add(a1, i32x4.dot_i16x8_s(v1, f));
      a2 = i32x4.add(a2, i32x4.dot_i16x8_s(v2, f));
      a3 = i32x4.add(a3, i32x4.dot_i16x8_s(v3, f));
      f = v128.load32_splat(factors, 24);
      v0 = i16x8.shr_s(v0, 2);
      v1 = i16x8.shr_s(v1, 2);
      v2 = i16x8.shr_s(v2, 2);
      v3 = i16x8.shr_s(v3, 2);
      a0 = i32x4.add(a0, i32x4.dot_i16x8_s(v0, f));
      a1 = i32x4.add(a1, i32x4.dot_i16x8_s(v1, f));
      a2 = i32x4.add(a2, i32x4.dot_i16x8_s(v2, f));
      a3 = i32x4.add(a3, i32x4.dot_i16x8_s(v3, f));
      if (w == 2) {
        a0 = v128.load(w);
        a1 = a2 = a3 = a0;
      }
      v0 = v128.load(w, 128);
      v1 = v128.load(w, 144);
      v2 = v128.load(w, 160);
      v3 = v128.load(w, 176);
      f = v128.load32_splat(factors, 28);
      a0 = i32x4.add(a0, i32x4.dot_i16x8_s(v0, f));
      a1 = i32x4.add(a1, i32x4.dot_i16x8_s(v1, f));
      a2 = i32x4.add(a2, i32x4.dot_i16x8_s(v2, f));
      a3 = i32x4.add(a3, i32x4.dot_i16x8_s(v3, f));
      f = v128.load32_splat(factors, 32);
      v0 = i16x8.shr_s(v0, 6);
      v1 = i16x8.shr_s(v1, 6);
      v2 = i16x8.shr_s(v2, 6);
      v3 = i16x8.shr_s(v3, 6);
      a0 = i32x4.add(a0, i32x4.dot_i16x8_s(v0, f));
      a1 = i32x4.add(a1, i32x4.dot_i16x8_s(v1, f));
      a2 = i32x4.add(a2, i32x4.dot_i16x8_s(v2, f));
      a3 = i32x4.add(a3, i32x4.dot_i16x8_s(v3, f));
      f = v128.load32_splat(factors, 36);
      v0 = i16x8.shr_s(v0, 6);
      v1 = i16x8.shr_s(v1, 6);
      v2 = i16x8.shr_s(v2, 6);
      v3 = i16x8.shr_s(v3, 6);
      a0 = i32x4.add(a0, i32x4.dot_i16x8_s(v0, f));
      a1 = i32x4.add(a1, i32x4.dot_i16x8_s(v1, f));
      a2 = i32x4.add(a2, i32x4.dot_i16x8_s(v2, f));
      a3 = i32x4.add(a3, i32x4.dot_i16x8_s(v3, f));
      if (w == 3) {
        a0 = v128.load(w);
        a1 = a2 = a3 = a0;
      }
      s0 = i32x4.add(s0, i32x4.mul(a0, row_scales(scales, j, 0)));
      s1 = i32x4.add(s1, i32x4.mul(a1, row_scales(scales, j, 1)));
      s2 = i32x4.add(s2, i32x4.mul(a2, row_scales(scales, j, 2)));
      s3 = i32x4.add(s3, i32x4.mul(a3, row_scales(scales, j, 3)));
      w += SUB;
      factors += 40;
    }
    const dx = v128.load32_splat(x);
    y0 = add_scaled(y0, s0, v128.load(group, D), dx);
    y1 = add_scaled(y1, s1, v128.load(group, D + 16), dx);
    y2 = add_scaled(y2, s2, v128.load(group, D + 32), dx);
    y3 = add_scaled(y3, s3, v128.load(group, D + 48), dx);
    group += BLOCK;
    x += step;
  }
  store_results(scratch, y0, y1, y2, y3);
}

/** Products of two pairs, at most 4 · 63 · 127, fit i16; the offset of 32 is taken off with the sums of x. */
function decode_bytes(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  const mask = held(scratch, SIX_MASK);
  const low = held(scratch, 0x03030303);
  const middle = held(scratch, 0x0c0c0c0c);
  const high = held(scratch, 0x30303030);
  store_results(scratch, f32x4.splat(0), f32x4.splat(0), f32x4.splat(0), f32x4.splat(0));
  for (let column = 0; column < width; column += 256) {
    const dx = v128.load32_splat(x, RECORD_SCALES);
    for (let v: usize = 0; v < 4; v += 2) {
      const scales = group + SCALES;
      let s0 = i32x4.splat(0);
      let s1 = i32x4.splat(0);
      let w = group + SUBS + (v << 4);
      let quants = x;
      let sums = x + RECORD_SUMS16;
      for (let j = 0; j < 16; j++) {
        const x0 = v128.load32_splat(quants);
        const x1 = v128.load32_splat(quants, 4);
        const x2 = v128.load32_splat(quants, 8);
        const x3 = v128.load32_splat(quants, 12);
        const sum = i16x8.shl(v128.load16_splat(sums), 4);
        let a = v128.load(w);
        let b = v128.load(w, 64);
        let c = v128.load(w, 128);
        s0 = i32x4.add(
          s0,
          dot_six_bytes(a, b, c, x0, x1, x2, x3, sum, mask, low, middle, high, row_scale_pairs(scales, j, v)),
        );
        a = v128.load(w, 16);
        b = v128.load(w, 80);
        c = v128.load(w, 144);
        s1 = i32x4.add(
          s1,
          dot_six_bytes(a, b, c, x0, x1, x2, x3, sum, mask, low, middle, high, row_scale_pairs(scales, j, v + 1)),
        );
        w += SUB;
        quants += 16;
        sums += 2;
      }
      finish_bytes(scratch, s0, group, v, dx);
      finish_bytes(scratch, s1, group, v + 1, dx);
    }
    group += BLOCK;
    x += step;
  }
}

/** Four rows × 16 columns of six bits less 32, times their scales. `sum` holds 16 times the sum of the x. */
function dot_six_bytes(
  a: v128,
  b: v128,
  c: v128,
  x0: v128,
  x1: v128,
  x2: v128,
  x3: v128,
  sum: v128,
  mask: v128,
  low: v128,
  middle: v128,
  high: v128,
  scale: v128,
): v128 {
  const first = i16x8.add(
    i16x8.relaxed_dot_i8x16_i7x16_s(x0, v128.and(a, mask)),
    i16x8.relaxed_dot_i8x16_i7x16_s(x1, v128.and(b, mask)),
  );
  const second = i16x8.add(
    i16x8.relaxed_dot_i8x16_i7x16_s(x2, v128.and(c, mask)),
    i16x8.relaxed_dot_i8x16_i7x16_s(x3, last_six_bytes(a, b, c, low, middle, high)),
  );
  const products = i32x4.add(i32x4.dot_i16x8_s(first, scale), i32x4.dot_i16x8_s(second, scale));
  return i32x4.sub(products, i32x4.dot_i16x8_s(sum, scale));
}

/** Adds row vector v to the results. */
function finish_bytes(scratch: usize, s: v128, group: usize, v: usize, dx: v128): void {
  const d = v128.load(group + (v << 4), D);
  const results = scratch + (v << 4);
  v128.store(results, add_scaled(v128.load(results, TILE_RESULTS), s, d, dx), TILE_RESULTS);
}

/** One block to a tile: i16 sc · (q − 32) in the plain build, unsigned bytes and scales in the relaxed one. */
export function unpack(tile: usize, block: usize): void {
  copy_scales(tile, TILE_D, block + D);
  if (ASC_FEATURE_RELAXED_SIMD) {
    // Scales of two sub-blocks side by side, as the offset takes them.
    for (let j: usize = 0; j < 16; j += 2) {
      for (let i: usize = 0; i < 16; i += 8) {
        const even = v128.load8x8_s(block + SCALES + (j << 4) + i);
        const odd = v128.load8x8_s(block + SCALES + (j << 4) + i, 16);
        const at = tile + (j << 5) + (i << 2);
        v128.store(at, i16x8.shuffle(even, odd, 0, 8, 1, 9, 2, 10, 3, 11), TILE_PAIRS);
        v128.store(at, i16x8.shuffle(even, odd, 4, 12, 5, 13, 6, 14, 7, 15), TILE_PAIRS + 16);
      }
    }
  }
  const mask = held(tile, SIX_MASK);
  const offset = held(tile, 0x00200020);
  const low = held(tile, 0x03030303);
  const middle = held(tile, 0x0c0c0c0c);
  const high = held(tile, 0x30303030);
  for (let j = 0; j < 16; j++) {
    for (let v: usize = 0; v < 4; v++) {
      const scales = row_scales(block + SCALES, j, v);
      store_scales(tile, j, v, scales);
      const sub = block + SUBS + <usize>j * SUB + (v << 4);
      const a = v128.load(sub);
      const b = v128.load(sub, 64);
      const c = v128.load(sub, 128);
      if (ASC_FEATURE_RELAXED_SIMD) {
        const at = tile + (j << 8) + (v << 4);
        v128.store(at, v128.and(a, mask));
        v128.store(at, v128.and(b, mask), 64);
        v128.store(at, v128.and(c, mask), 128);
        v128.store(at, last_six_bytes(a, b, c, low, middle, high), 192);
      } else {
        const scale = both_lanes(scales);
        const at = tile + (j << 9) + (v << 4);
        store_pair(at, v128.and(a, mask), offset, scale);
        store_pair(at + 64, v128.and(i16x8.shr_u(a, 6), mask), offset, scale);
        store_pair(at + 128, v128.and(b, mask), offset, scale);
        store_pair(at + 192, v128.and(i16x8.shr_u(b, 6), mask), offset, scale);
        store_pair(at + 256, v128.and(c, mask), offset, scale);
        store_pair(at + 320, v128.and(i16x8.shr_u(c, 6), mask), offset, scale);
        store_pair(at + 384, last_six_pair(a, b, 8), offset, scale);
        store_pair(at + 448, last_six_pair(c, b, 10), offset, scale);
      }
    }
  }
}

/** i16 (q − offset) · scale to a tile. */
function store_pair(at: usize, q: v128, offset: v128, scale: v128): void {
  v128.store(at, i16x8.mul(i16x8.sub(q, offset), scale));
}
