/**
 * Q4_K: 256 columns in 8 sub-blocks of 32, value d · sc · q − dmin · m.
 *
 * Native, 144 bytes:  0 d f16 | 2 dmin f16 | 4 scales and minima [12] (k-scales.ts) | 16 nibbles [128]: 32 bytes for
 *                     two sub-blocks, the even one in the low nibbles
 * Group, 2432 bytes:    0  scales u8 [8][16 rows]
 *                     128  minima u8 [4 pairs][16 rows][2]
 *                     256  d f32[16 rows] | 320 dmin f32[16 rows]
 *                     384  octets [32 of 8 columns][16 rows] u32 (simd/octets.ts); in the plain build less
 *                          TOP_NIBBLES (simd/stairs.ts)
 *
 * Everything lies in the order of use: a stream that jumps back and forth defeats the processor's prefetching.
 */

import { add_scaled_less_minimum } from '../simd/accumulate';
import {
  OCTET,
  RECORD_SCALES,
  RECORD_SUMS32,
  STAIRS_NIBBLE_OFFSETS,
  STAIRS_NIBBLES,
  STAIRS_SUMS32,
} from '../simd/activations';
import { f32_from_f16 } from '../simd/half';
import {
  dot_nibble_bytes,
  held,
  high_nibbles,
  low_nibbles,
  NIBBLE_MASK,
  pack_octet,
  unpack_octet,
} from '../simd/octets';
import { dot_stairs, TOP_NIBBLES } from '../simd/stairs';
import { store_results } from '../simd/tile';
import {
  both_lanes,
  dot_scales,
  native_minimum,
  native_scale,
  row_scale_pairs,
  row_scale_place,
  row_scales,
  scale_place,
} from './k-scales';
import { store_scales, unpack_minima } from './k-tile';

export const NATIVE: usize = 144;
export const BLOCK: usize = 2432;
const SCALES: usize = 0;
const MINIMA: usize = 128;
const D: usize = 256;
const DMIN: usize = 320;
const OCTETS: usize = 384;

export function repack(block: usize, native: usize, row: i32): void {
  const low: u64 = 0x0f0f0f0f0f0f0f0f;
  for (let i: usize = 0; i < 16; i++) {
    const bytes = load<u64>(native + (i << 3), 16);
    const at = block + OCTETS + ((i >> 2) << 9) + ((i & 3) << 6) + (row << 2);
    store<u32>(at, pack_octet(bytes & low, 4) ^ TOP_NIBBLES);
    store<u32>(at, pack_octet((bytes >> 4) & low, 4) ^ TOP_NIBBLES, 256);
  }
  for (let j = 0; j < 8; j++) {
    store<u8>(row_scale_place(block + SCALES, j, row), native_scale(native + 4, j));
    store<u8>(scale_place(block + MINIMA, j, row), native_minimum(native + 4, j));
  }
  store<f32>(block + (row << 2), f32_from_f16(load<u16>(native)), D);
  store<f32>(block + (row << 2), f32_from_f16(load<u16>(native, 2)), DMIN);
}

export function dequantize(out: usize, block: usize, row: i32): void {
  const d = load<f32>(block + (row << 2), D);
  const dmin = load<f32>(block + (row << 2), DMIN);
  for (let k = 0; k < 256; k++) {
    const scale = d * <f32>load<u8>(row_scale_place(block + SCALES, k >> 5, row));
    const minimum = dmin * <f32>load<u8>(scale_place(block + MINIMA, k >> 5, row));
    const q = unpack_octet(load<u32>(block + ((k >> 3) << 6) + (row << 2), OCTETS) ^ TOP_NIBBLES, k & 7, 4, 0);
    store<f32>(out + (k << 2), scale * <f32>q - minimum);
  }
}

export function dequantize_native(out: usize, native: usize): void {
  const d = f32_from_f16(load<u16>(native));
  const dmin = f32_from_f16(load<u16>(native, 2));
  for (let j = 0; j < 8; j++) {
    const scale = d * <f32>native_scale(native + 4, j);
    const minimum = dmin * <f32>native_minimum(native + 4, j);
    for (let i = 0; i < 32; i++) {
      const byte: i32 = load<u8>(native + ((j >> 1) << 5) + i, 16);
      store<f32>(out + (((j << 5) + i) << 2), scale * <f32>((byte >> ((j & 1) << 2)) & 15) - minimum);
    }
  }
}

/** One token times a group: 16 results at TILE_RESULTS. In the plain build `x` points at stair records. */
export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  if (ASC_FEATURE_RELAXED_SIMD) decode_bytes(scratch, group, x, step, width);
  else decode_stairs(scratch, group, x, step, width);
}

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
    let w = group + OCTETS;
    let factors = x + STAIRS_NIBBLES;
    for (let j = 0; j < 8; j++) {
      let a0 = v128.load32_splat(x + (j << 2), STAIRS_NIBBLE_OFFSETS);
      let a1 = a0;
      let a2 = a0;
      let a3 = a0;
      for (let octet = 0; octet < 4; octet++) {
        const f0 = v128.load32_splat(factors);
        const f1 = v128.load32_splat(factors, 4);
        const f2 = v128.load32_splat(factors, 8);
        const f3 = v128.load32_splat(factors, 12);
        a0 = dot_stairs(a0, v128.load(w), f0, f1, f2, f3);
        a1 = dot_stairs(a1, v128.load(w, 16), f0, f1, f2, f3);
        a2 = dot_stairs(a2, v128.load(w, 32), f0, f1, f2, f3);
        a3 = dot_stairs(a3, v128.load(w, 48), f0, f1, f2, f3);
        w += 64;
        factors += 16;
      }
      s0 = i32x4.add(s0, i32x4.mul(a0, row_scales(scales, j, 0)));
      s1 = i32x4.add(s1, i32x4.mul(a1, row_scales(scales, j, 1)));
      s2 = i32x4.add(s2, i32x4.mul(a2, row_scales(scales, j, 2)));
      s3 = i32x4.add(s3, i32x4.mul(a3, row_scales(scales, j, 3)));
    }
    const dx = v128.load32_splat(x);
    const sums = x + STAIRS_SUMS32;
    y0 = finish(y0, s0, group, 0, sums, dx);
    y1 = finish(y1, s1, group, 16, sums, dx);
    y2 = finish(y2, s2, group, 32, sums, dx);
    y3 = finish(y3, s3, group, 48, sums, dx);
    group += BLOCK;
    x += step;
  }
  store_results(scratch, y0, y1, y2, y3);
}

/** i16 sums of a sub-block: 16 pairs of products of at most 15 · 127 each. */
function decode_bytes(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  const mask = held(scratch, NIBBLE_MASK);
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
    let w = group + OCTETS;
    let quants = x;
    for (let j = 0; j < 8; j++) {
      let a0 = i16x8.splat(0);
      let a1 = i16x8.splat(0);
      let a2 = i16x8.splat(0);
      let a3 = i16x8.splat(0);
      for (let octet = 0; octet < 4; octet++) {
        const x0 = v128.load32_splat(quants);
        const x1 = v128.load32_splat(quants, 4);
        a0 = dot_nibble_bytes(a0, v128.load(w), mask, x0, x1);
        a1 = dot_nibble_bytes(a1, v128.load(w, 16), mask, x0, x1);
        a2 = dot_nibble_bytes(a2, v128.load(w, 32), mask, x0, x1);
        a3 = dot_nibble_bytes(a3, v128.load(w, 48), mask, x0, x1);
        w += 64;
        quants += OCTET;
      }
      s0 = i32x4.add(s0, i32x4.dot_i16x8_s(a0, row_scale_pairs(scales, j, 0)));
      s1 = i32x4.add(s1, i32x4.dot_i16x8_s(a1, row_scale_pairs(scales, j, 1)));
      s2 = i32x4.add(s2, i32x4.dot_i16x8_s(a2, row_scale_pairs(scales, j, 2)));
      s3 = i32x4.add(s3, i32x4.dot_i16x8_s(a3, row_scale_pairs(scales, j, 3)));
    }
    const dx = v128.load32_splat(x, RECORD_SCALES);
    const sums = x + RECORD_SUMS32;
    y0 = finish(y0, s0, group, 0, sums, dx);
    y1 = finish(y1, s1, group, 16, sums, dx);
    y2 = finish(y2, s2, group, 32, sums, dx);
    y3 = finish(y3, s3, group, 48, sums, dx);
    group += BLOCK;
    x += step;
  }
  store_results(scratch, y0, y1, y2, y3);
}

/** `rows` is the place of the four rows' d among those of the group: 16 bytes a row vector. */
function finish(y: v128, s: v128, group: usize, rows: usize, sums: usize, dx: v128): v128 {
  const m = dot_scales(group + (rows >> 1) + MINIMA, sums, 4);
  const d = v128.load(group + rows, D);
  return add_scaled_less_minimum(y, s, d, m, v128.load(group + rows, DMIN), dx);
}

/** One block to a tile: i16 sc · q in the plain build, unsigned bytes and scales in the relaxed one. */
export function unpack(tile: usize, block: usize): void {
  unpack_minima(tile, block + MINIMA, block + D, block + DMIN);
  const mask = held(tile, NIBBLE_MASK);
  for (let j = 0; j < 8; j++) {
    for (let v: usize = 0; v < 4; v++) {
      const scales = row_scales(block + SCALES, j, v);
      const w = block + OCTETS + (j << 8) + (v << 4);
      if (ASC_FEATURE_RELAXED_SIMD) {
        store_scales(tile, j, v, scales);
        for (let octet: usize = 0; octet < 4; octet++) {
          const packed = v128.load(w + (octet << 6));
          const at = tile + (j << 9) + (octet << 7) + (v << 4);
          v128.store(at, low_nibbles(packed, mask));
          v128.store(at, high_nibbles(packed, mask), 64);
        }
      } else {
        const scale = both_lanes(scales);
        const top = i32x4.splat(TOP_NIBBLES);
        for (let octet: usize = 0; octet < 4; octet++) {
          const packed = v128.xor(v128.load(w + (octet << 6)), top);
          const at = tile + (j << 10) + (octet << 8) + (v << 4);
          v128.store(at, i16x8.mul(v128.and(packed, mask), scale));
          v128.store(at, i16x8.mul(v128.and(i16x8.shr_u(packed, 4), mask), scale), 64);
          v128.store(at, i16x8.mul(v128.and(i16x8.shr_u(packed, 8), mask), scale), 128);
          v128.store(at, i16x8.mul(i16x8.shr_u(packed, 12), scale), 192);
        }
      }
    }
  }
}
