/**
 * Q6_K: 256 columns in 16 sub-blocks of 16, value d · sc · (q − 32).
 *
 * Native, 210 bytes:  0 low nibbles [128] | 128 upper bit pairs [64] | 192 scales i8[16] | 208 d f16
 *                     Each half of 128 columns: 64 bytes of nibbles, 32 of bit pairs. Column c = 32 run + i of a half has
 *                     nibble byte 32 (run & 1) + i, high nibble from run 2 on, and bit pair `run` of byte i.
 * Group, 3360 bytes:    0  scales i8 [8 pairs][16 rows][2]
 *                     256  d f16[16 rows]
 *                     288  16 sub-blocks of 192 bytes:
 *                            0  upper bits [16 rows] u32: planes of two octets
 *                           64  octets [2 of 8 columns][16 rows] u32 (simd/octets.ts)
 */

import { add_scaled } from '../simd/accumulate';
import { OCTET, RECORD_SCALES, RECORD_SUMS16 } from '../simd/activations';
import { f32_from_f16, f32x4_load_f16 } from '../simd/half';
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
import { store_results, TILE_D, TILE_HALF, TILE_PAIRS } from '../simd/tile';
import { both_lanes, dot_scales, scale_place, scales_of } from './k-scales';
import { store_octet, store_scales, TILE_OCTET, unpack_scales } from './k-tile';

export const NATIVE: usize = 210;
export const BLOCK: usize = 3360;
const SCALES: usize = 0;
const D: usize = 256;
const SUBS: usize = 288;
const SUB: usize = 192;

export function repack(block: usize, native: usize, row: i32): void {
  for (let octet = 0; octet < 32; octet += 2) {
    const at = block + SUBS + <usize>(octet >> 1) * SUB + (row << 2);
    const part: usize = octet >> 4;
    const run = (octet >> 2) & 3;
    const i: usize = (octet & 3) << 3;
    const nibbles = native + (part << 6) + ((run & 1) << 5) + i;
    const pairs = native + 128 + (part << 5) + i;
    const nibbleShift: u64 = (run >> 1) << 2;
    const pairShift: u64 = run << 1;
    const low: u64 = 0x0f0f0f0f0f0f0f0f;
    const high: u64 = 0x0303030303030303;
    store<u32>(at, pack_octet((load<u64>(nibbles) >> nibbleShift) & low, 4), 64);
    store<u32>(at, pack_octet((load<u64>(nibbles, 8) >> nibbleShift) & low, 4), 128);
    const first = pack_octet((load<u64>(pairs) >> pairShift) & high, 2);
    const second = pack_octet((load<u64>(pairs, 8) >> pairShift) & high, 2);
    store<u32>(at, first | (second << 4));
  }
  for (let j = 0; j < 16; j++) store<u8>(scale_place(block + SCALES, j, row), load<u8>(native + j, 192));
  store<u16>(block + (row << 1), load<u16>(native, 208), D);
}

export function dequantize(out: usize, block: usize, row: i32): void {
  const d = f32_from_f16(load<u16>(block + (row << 1), D));
  for (let k = 0; k < 256; k++) {
    const scale = d * <f32>load<i8>(scale_place(block + SCALES, k >> 4, row));
    const octet = (k >> 3) & 1;
    const sub = block + SUBS + <usize>(k >> 4) * SUB + (row << 2);
    const low = unpack_octet(load<u32>(sub + (octet << 6), 64), k & 7, 4, 0);
    const high = unpack_octet(load<u32>(sub), k & 7, 2, octet);
    store<f32>(out + (k << 2), scale * <f32>((low | (high << 4)) - 32));
  }
}

export function dequantize_native(out: usize, native: usize): void {
  const d = f32_from_f16(load<u16>(native, 208));
  for (let k = 0; k < 256; k++) {
    const part = k >> 7;
    const run = (k >> 5) & 3;
    const i = k & 31;
    const nibble: i32 = (load<u8>(native + (part << 6) + ((run & 1) << 5) + i) >> ((run >> 1) << 2)) & 15;
    const pair: i32 = (load<u8>(native + (part << 5) + i, 128) >> (run << 1)) & 3;
    const scale = d * <f32>load<i8>(native + (k >> 4), 192);
    store<f32>(out + (k << 2), scale * <f32>((nibble | (pair << 4)) - 32));
  }
}

/** Place of the upper bits above the nibbles. */
const UPPER_MASK: i32 = 0x30303030;

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
  for (let column = 0; column < width; column += 256) {
    let s0 = i32x4.splat(0);
    let s1 = i32x4.splat(0);
    let s2 = i32x4.splat(0);
    let s3 = i32x4.splat(0);
    const scales = group + SCALES;
    let w = group + SUBS;
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
        a0 = dot_planes(a0, v128.load(w), p0, 2, low, upper, mask, x0, x1, x2, x3);
        a1 = dot_planes(a1, v128.load(w, 16), p1, 2, low, upper, mask, x0, x1, x2, x3);
        a2 = dot_planes(a2, v128.load(w, 32), p2, 2, low, upper, mask, x0, x1, x2, x3);
        a3 = dot_planes(a3, v128.load(w, 48), p3, 2, low, upper, mask, x0, x1, x2, x3);
        p0 = i16x8.shr_u(p0, 4);
        p1 = i16x8.shr_u(p1, 4);
        p2 = i16x8.shr_u(p2, 4);
        p3 = i16x8.shr_u(p3, 4);
        w += 64;
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

/** Takes the weights' offset of 32 away. `block` is shifted to the four rows, by 8 bytes a row vector. */
function finish(y: v128, s: v128, block: usize, x: usize, dx: v128, half: usize): v128 {
  const m = dot_scales(block + SCALES, x + RECORD_SUMS16, 8);
  return add_scaled(y, i32x4.sub(s, i32x4.shl(m, 5)), f32x4_load_f16(block + D, half), dx);
}

/** One block to a tile: i16 sc · (q − 32) in the plain build, unsigned bytes and scales in the relaxed one. */
export function unpack(tile: usize, block: usize): void {
  unpack_scales(tile, TILE_D, block + D);
  if (ASC_FEATURE_RELAXED_SIMD) {
    for (let i: usize = 0; i < 256; i += 8) v128.store(tile + (i << 1), v128.load8x8_s(block + SCALES + i), TILE_PAIRS);
  }
  const low = held(tile, LOW_MASK);
  const upper = held(tile, UPPER_MASK);
  const mask = held(tile, BYTE_MASK);
  const offset = held(tile, 0x00200020);
  for (let j = 0; j < 16; j++) {
    for (let v: usize = 0; v < 4; v++) {
      const scales = scales_of(block + SCALES + (v << 3), j);
      store_scales(tile, j, v, scales);
      const scale = both_lanes(scales);
      const sub = block + SUBS + <usize>j * SUB + (v << 4);
      let plane = v128.load(sub);
      for (let octet = 0; octet < 2; octet++) {
        const packed = v128.load(sub + (octet << 6), 64);
        const a = v128.or(low_nibbles(packed, low), v128.and(i16x8.shl(plane, 4), upper));
        const b = v128.or(high_nibbles(packed, low), v128.and(i16x8.shl(plane, 2), upper));
        store_octet(tile + <usize>((j << 1) + octet) * TILE_OCTET + (v << 4), a, b, mask, offset, scale);
        plane = i16x8.shr_u(plane, 4);
      }
    }
  }
}
