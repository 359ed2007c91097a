/**
 * Q3_K: 256 columns in 16 sub-blocks of 16, value d · (sc − 32) · (q − 4).
 *
 * Native, 110 bytes:  0 third bits [32]: bit j of byte i is for column 32 j + i
 *                    32 bit pairs [64]: pair j of byte 32 p + i is for column 128 p + 32 j + i
 *                    96 scales [12]: low nibbles of 0–7, high nibbles 8–15 in bytes 0–7; the upper pairs of j, j + 4,
 *                       j + 8 and j + 12 in byte 8 + j | 108 d f16
 * Group, 1824 bytes: codes-3.ts, scales less 32
 */

import { add_scaled } from '../simd/accumulate';
import { OCTET, RECORD_SCALES, RECORD_SUMS16 } from '../simd/activations';
import { f32_from_f16, f32x4_load_f16 } from '../simd/half';
import { BYTE_MASK, dot_bytes, FOURTH, held, THIRD } from '../simd/octets';
import { store_results, TILE_HALF } from '../simd/tile';
import { first_code_of_3, second_code_of_3, THIRD_MASK, TWO_MASK } from './codes';
import { BLOCK, D, dequantize_3, RUNS, SCALES, store_codes_3, store_d_3, store_scale_3, unpack_3 } from './codes-3';
import { dot_scales, scales_of } from './k-scales';

export const NATIVE: usize = 110;
export { BLOCK };

/** q − 4 + 64. */
const BOOK: u64 = 0x434241403f3e3d3c;

function native_scale(native: usize, j: i32): i32 {
  const low: i32 = (load<u8>(native + (j & 7), 96) >> ((j >> 3) << 2)) & 15;
  const high: i32 = (load<u8>(native + (j & 3), 104) >> ((j >> 2) << 1)) & 3;
  return (low | (high << 4)) - 32;
}

/** Codes of octet `octet` (0 … 3) of run `run`. */
function codes(native: usize, run: i32, octet: i32): u64 {
  const pairs = load<u64>(native + ((run >> 2) << 5) + (octet << 3), 32) >> <u64>((run & 3) << 1);
  const thirds = load<u64>(native + (octet << 3)) >> <u64>run;
  return (pairs & 0x0303030303030303) | ((thirds & 0x0101010101010101) << 2);
}

export function repack(block: usize, native: usize, row: i32): void {
  for (let run = 0; run < 8; run++) {
    store_codes_3(
      block,
      row,
      run,
      codes(native, run, 0),
      codes(native, run, 1),
      codes(native, run, 2),
      codes(native, run, 3),
    );
  }
  for (let j = 0; j < 16; j++) store_scale_3(block, row, j, native_scale(native, j));
  store_d_3(block, row, load<u16>(native, 108));
}

export function dequantize(out: usize, block: usize, row: i32): void {
  dequantize_3(out, block, row, BOOK, 1);
}

export function dequantize_native(out: usize, native: usize): void {
  const d = f32_from_f16(load<u16>(native, 108));
  for (let k = 0; k < 256; k++) {
    const low: i32 = (load<u8>(native + ((k >> 7) << 5) + (k & 31), 32) >> (((k >> 5) & 3) << 1)) & 3;
    const third: i32 = (load<u8>(native + (k & 31)) >> (k >> 5)) & 1;
    store<f32>(out + (k << 2), d * <f32>native_scale(native, k >> 4) * <f32>((low | (third << 2)) - 4));
  }
}

/** One token times a group: 16 results at TILE_RESULTS. As decode_3, but the codes are the values: no book. */
export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  const half = scratch + TILE_HALF;
  const two = held(scratch, TWO_MASK);
  const four = held(scratch, THIRD_MASK);
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
          a0 = dot_codes(a0, p0, t0, two, four, mask, x0, x1, x2, x3);
          a1 = dot_codes(a1, p1, t1, two, four, mask, x0, x1, x2, x3);
          a2 = dot_codes(a2, p2, t2, two, four, mask, x0, x1, x2, x3);
          a3 = dot_codes(a3, p3, t3, two, four, mask, x0, x1, x2, x3);
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
    y0 = finish(y0, s0, group, x, dx, half);
    y1 = finish(y1, s1, group + 8, x, dx, half);
    y2 = finish(y2, s2, group + 16, x, dx, half);
    y3 = finish(y3, s3, group + 24, x, dx, half);
    group += BLOCK;
    x += step;
  }
  store_results(scratch, y0, y1, y2, y3);
}

function dot_codes(
  acc: v128,
  plane: v128,
  third: v128,
  two: v128,
  four: v128,
  mask: v128,
  x0: v128,
  x1: v128,
  x2: v128,
  x3: v128,
): v128 {
  const a = first_code_of_3(plane, third, two, four);
  return dot_bytes(acc, a, second_code_of_3(plane, third, two, four), mask, x0, x1, x2, x3);
}

/** Takes the offset of 4 away. `block` is shifted to the four rows, by 8 bytes a row vector. */
function finish(y: v128, s: v128, block: usize, x: usize, dx: v128, half: usize): v128 {
  const m = dot_scales(block + SCALES, x + RECORD_SUMS16, 8);
  return add_scaled(y, i32x4.sub(s, i32x4.shl(m, 2)), f32x4_load_f16(block + D, half), dx);
}

export function unpack(tile: usize, block: usize): void {
  unpack_3(tile, block, BOOK, 1);
}
