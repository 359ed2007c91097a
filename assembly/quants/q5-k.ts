/**
 * Q5_K: 256 columns in 8 sub-blocks of 32, value d · sc · q − dmin · m.
 *
 * Native, 176 bytes:  0 d f16 | 2 dmin f16 | 4 scales and minima [12] (k-scales.ts) | 16 fifth bits [32]: bit j of byte
 *                     i is for column i of sub-block j | 48 nibbles [128], as in Q4_K
 * Group, 2944 bytes:    0  scales u8 [4 pairs][16 rows][2]
 *                     128  minima u8 [4 pairs][16 rows][2]
 *                     256  d f32[16 rows] | 320 dmin f32[16 rows]
 *                     384  8 sub-blocks of 320 bytes:
 *                            0  fifth bits [16 rows] u32: planes of four octets
 *                           64  octets [4 of 8 columns][16 rows] u32 (simd/octets.ts)
 */

import { add_scaled_less_minimum } from '../simd/accumulate';
import { OCTET, RECORD_SCALES, RECORD_SUMS32 } from '../simd/activations';
import { f32_from_f16 } from '../simd/half';
import {
  BYTE_MASK,
  dot_planes,
  FOURTH,
  held,
  high_nibbles,
  LOW_MASK,
  low_nibbles,
  pack_octet,
  THIRD,
  unpack_octet,
} from '../simd/octets';
import { store_results } from '../simd/tile';
import {
  both_lanes,
  dot_scales,
  native_minimum,
  native_scale,
  scale_place,
  scales_of,
  spread_scales,
} from './k-scales';
import { store_octet, store_scales, TILE_OCTET, unpack_minima } from './k-tile';

export const NATIVE: usize = 176;
export const BLOCK: usize = 2944;
const SCALES: usize = 0;
const MINIMA: usize = 128;
const D: usize = 256;
const DMIN: usize = 320;
const SUBS: usize = 384;
const SUB: usize = 320;

export function repack(block: usize, native: usize, row: i32): void {
  const low: u64 = 0x0f0f0f0f0f0f0f0f;
  for (let i: usize = 0; i < 16; i++) {
    const bytes = load<u64>(native + (i << 3), 48);
    const at = block + SUBS + (i >> 2) * (2 * SUB) + ((i & 3) << 6) + (row << 2);
    store<u32>(at, pack_octet(bytes & low, 4), 64);
    store<u32>(at, pack_octet((bytes >> 4) & low, 4), 64 + SUB);
  }
  for (let j: usize = 0; j < 8; j++) {
    let word: u32 = 0;
    for (let octet: usize = 0; octet < 4; octet++) {
      const bits = (load<u64>(native + (octet << 3), 16) >> j) & 0x0101010101010101;
      word |= pack_octet(bits, 1) << (<u32>(octet << 1));
    }
    store<u32>(block + j * SUB + (row << 2), word, SUBS);
  }
  spread_scales(block + SCALES, block + MINIMA, native + 4, row);
  store<f32>(block + (row << 2), f32_from_f16(load<u16>(native)), D);
  store<f32>(block + (row << 2), f32_from_f16(load<u16>(native, 2)), DMIN);
}

export function dequantize(out: usize, block: usize, row: i32): void {
  const d = load<f32>(block + (row << 2), D);
  const dmin = load<f32>(block + (row << 2), DMIN);
  for (let k = 0; k < 256; k++) {
    const j = k >> 5;
    const scale = d * <f32>load<u8>(scale_place(block + SCALES, j, row));
    const minimum = dmin * <f32>load<u8>(scale_place(block + MINIMA, j, row));
    const octet = (k >> 3) & 3;
    const sub = block + SUBS + <usize>j * SUB + (row << 2);
    const low = unpack_octet(load<u32>(sub + (octet << 6), 64), k & 7, 4, 0);
    const high = unpack_octet(load<u32>(sub), k & 7, 1, octet);
    store<f32>(out + (k << 2), scale * <f32>(low | (high << 4)) - minimum);
  }
}

export function dequantize_native(out: usize, native: usize): void {
  const d = f32_from_f16(load<u16>(native));
  const dmin = f32_from_f16(load<u16>(native, 2));
  for (let j = 0; j < 8; j++) {
    const scale = d * <f32>native_scale(native + 4, j);
    const minimum = dmin * <f32>native_minimum(native + 4, j);
    for (let i = 0; i < 32; i++) {
      const byte: i32 = load<u8>(native + ((j >> 1) << 5) + i, 48);
      const bit: i32 = (load<u8>(native + i, 16) >> j) & 1;
      store<f32>(out + (((j << 5) + i) << 2), scale * <f32>(((byte >> ((j & 1) << 2)) & 15) | (bit << 4)) - minimum);
    }
  }
}

/** Place of the fifth bits above the nibbles. */
const UPPER_MASK: i32 = 0x10101010;

/** One token times a group: 16 results at TILE_RESULTS. */
export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  const low = held(scratch, LOW_MASK);
  const mask = held(scratch, BYTE_MASK);
  const upper = held(scratch, UPPER_MASK);
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
    let quants = x;
    for (let j = 0; j < 8; j++) {
      let a0 = i32x4.splat(0);
      let a1 = i32x4.splat(0);
      let a2 = i32x4.splat(0);
      let a3 = i32x4.splat(0);
      let p0 = v128.load(w);
      let p1 = v128.load(w, 16);
      let p2 = v128.load(w, 32);
      let p3 = v128.load(w, 48);
      w += 64;
      for (let octet = 0; octet < 4; octet++) {
        const x0 = v128.load32_splat(quants);
        const x1 = v128.load32_splat(quants, 4);
        const x2 = v128.load32_splat(quants, THIRD);
        const x3 = v128.load32_splat(quants, FOURTH);
        a0 = dot_planes(a0, v128.load(w), p0, 3, low, upper, mask, x0, x1, x2, x3);
        a1 = dot_planes(a1, v128.load(w, 16), p1, 3, low, upper, mask, x0, x1, x2, x3);
        a2 = dot_planes(a2, v128.load(w, 32), p2, 3, low, upper, mask, x0, x1, x2, x3);
        a3 = dot_planes(a3, v128.load(w, 48), p3, 3, low, upper, mask, x0, x1, x2, x3);
        p0 = i16x8.shr_u(p0, 2);
        p1 = i16x8.shr_u(p1, 2);
        p2 = i16x8.shr_u(p2, 2);
        p3 = i16x8.shr_u(p3, 2);
        w += 64;
        quants += OCTET;
      }
      s0 = i32x4.add(s0, i32x4.mul(a0, scales_of(scales, j)));
      s1 = i32x4.add(s1, i32x4.mul(a1, scales_of(scales + 8, j)));
      s2 = i32x4.add(s2, i32x4.mul(a2, scales_of(scales + 16, j)));
      s3 = i32x4.add(s3, i32x4.mul(a3, scales_of(scales + 24, j)));
    }
    const dx = v128.load32_splat(x, RECORD_SCALES);
    y0 = finish(y0, s0, group, 0, x, dx);
    y1 = finish(y1, s1, group, 16, x, dx);
    y2 = finish(y2, s2, group, 32, x, dx);
    y3 = finish(y3, s3, group, 48, x, dx);
    group += BLOCK;
    x += step;
  }
  store_results(scratch, y0, y1, y2, y3);
}

/** `rows` is the place of the four rows' d among those of the group: 16 bytes a row vector. */
function finish(y: v128, s: v128, group: usize, rows: usize, x: usize, dx: v128): v128 {
  const m = dot_scales(group + (rows >> 1) + MINIMA, x + RECORD_SUMS32, 4);
  const d = v128.load(group + rows, D);
  return add_scaled_less_minimum(y, s, d, m, v128.load(group + rows, DMIN), dx);
}

/** One block to a tile: i16 sc · q in the plain build, unsigned bytes and scales in the relaxed one. */
export function unpack(tile: usize, block: usize): void {
  unpack_minima(tile, block + MINIMA, block + D, block + DMIN);
  const low = held(tile, LOW_MASK);
  const upper = held(tile, UPPER_MASK);
  const mask = held(tile, BYTE_MASK);
  const zero = i16x8.splat(0);
  for (let j = 0; j < 8; j++) {
    for (let v: usize = 0; v < 4; v++) {
      const scales = scales_of(block + SCALES + (v << 3), j);
      store_scales(tile, j, v, scales);
      const scale = both_lanes(scales);
      const sub = block + SUBS + <usize>j * SUB + (v << 4);
      let plane = v128.load(sub);
      for (let octet = 0; octet < 4; octet++) {
        const packed = v128.load(sub + (octet << 6), 64);
        const a = v128.or(low_nibbles(packed, low), v128.and(i16x8.shl(plane, 4), upper));
        const b = v128.or(high_nibbles(packed, low), v128.and(i16x8.shl(plane, 3), upper));
        store_octet(tile + <usize>((j << 2) + octet) * TILE_OCTET + (v << 4), a, b, mask, zero, scale);
        plane = i16x8.shr_u(plane, 2);
      }
    }
  }
}
