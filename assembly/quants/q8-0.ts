/**
 * Q8_0: 32 columns, value d · q.
 *
 * Native, 34 bytes:  0 d f16 | 2 q i8[32]
 * Group, 544 bytes:  0 q i8 [16 pairs of columns][16 rows][2] | 512 d f16[16 rows]
 *
 * Signed bytes are no operand of the relaxed dot product, so that both builds use i16 here.
 */

import { add_scaled } from '../simd/accumulate';
import { RECORD_SCALES, RECORD_WIDE, SEGMENT } from '../simd/activations';
import { f32_from_f16, f32x4_load_f16 } from '../simd/half';
import { store_results, TILE_D, TILE_HALF } from '../simd/tile';

export const NATIVE: usize = 34;
export const BLOCK: usize = 544;
const D: usize = 512;

export function repack(block: usize, native: usize, row: i32): void {
  for (let pair: usize = 0; pair < 16; pair++) {
    store<u16>(block + (pair << 5) + (row << 1), load<u16>(native + (pair << 1), 2));
  }
  store<u16>(block + (row << 1), load<u16>(native), D);
}

export function dequantize(out: usize, block: usize, row: i32): void {
  const d = f32_from_f16(load<u16>(block + (row << 1), D));
  for (let k = 0; k < 32; k++) {
    store<f32>(out + (k << 2), d * <f32>load<i8>(block + ((k >> 1) << 5) + (row << 1) + (k & 1)));
  }
}

export function dequantize_native(out: usize, native: usize): void {
  const d = f32_from_f16(load<u16>(native));
  for (let i = 0; i < 32; i++) store<f32>(out + (i << 2), d * <f32>load<i8>(native + i, 2));
}

/** One token times a group: 16 results at TILE_RESULTS. */
export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  const half = scratch + TILE_HALF;
  let y0 = f32x4.splat(0);
  let y1 = f32x4.splat(0);
  let y2 = f32x4.splat(0);
  let y3 = f32x4.splat(0);
  for (let column = 0; column < width; column += 32) {
    const at = (column & (SEGMENT - 1)) >> 5;
    const record = x + <usize>(column >> 8) * step;
    const quants = record + (at << 6);
    let s0 = i32x4.splat(0);
    let s1 = i32x4.splat(0);
    let s2 = i32x4.splat(0);
    let s3 = i32x4.splat(0);
    for (let pair: usize = 0; pair < 16; pair += 2) {
      const w = group + (pair << 5);
      const xa = v128.load32_splat(quants + (pair << 2), RECORD_WIDE);
      s0 = i32x4.add(s0, i32x4.dot_i16x8_s(v128.load8x8_s(w), xa));
      s1 = i32x4.add(s1, i32x4.dot_i16x8_s(v128.load8x8_s(w, 8), xa));
      s2 = i32x4.add(s2, i32x4.dot_i16x8_s(v128.load8x8_s(w, 16), xa));
      s3 = i32x4.add(s3, i32x4.dot_i16x8_s(v128.load8x8_s(w, 24), xa));
      const xb = v128.load32_splat(quants + (pair << 2), RECORD_WIDE + 4);
      s0 = i32x4.add(s0, i32x4.dot_i16x8_s(v128.load8x8_s(w, 32), xb));
      s1 = i32x4.add(s1, i32x4.dot_i16x8_s(v128.load8x8_s(w, 40), xb));
      s2 = i32x4.add(s2, i32x4.dot_i16x8_s(v128.load8x8_s(w, 48), xb));
      s3 = i32x4.add(s3, i32x4.dot_i16x8_s(v128.load8x8_s(w, 56), xb));
    }
    const dx = v128.load32_splat(record + (at << 2), RECORD_SCALES);
    y0 = add_scaled(y0, s0, f32x4_load_f16(group + D, half), dx);
    y1 = add_scaled(y1, s1, f32x4_load_f16(group + (D + 8), half), dx);
    y2 = add_scaled(y2, s2, f32x4_load_f16(group + (D + 16), half), dx);
    y3 = add_scaled(y3, s3, f32x4_load_f16(group + (D + 24), half), dx);
    group += BLOCK;
  }
  store_results(scratch, y0, y1, y2, y3);
}

/** Up to eight blocks to an i16 tile. */
export function unpack(tile: usize, block: usize, blocks: i32): void {
  for (let b = 0; b < blocks; b++) {
    for (let v: usize = 0; v < 4; v++) {
      v128.store(tile + (b << 6) + (v << 4), f32x4_load_f16(block + D + (v << 3), tile + TILE_HALF), TILE_D);
    }
    for (let i: usize = 0; i < 512; i += 8) v128.store(tile + (b << 10) + (i << 1), v128.load8x8_s(block + i));
    block += BLOCK;
  }
}
