/**
 * Q8_0: 32 columns, value d · q.
 *
 * Native, 34 bytes:  0 d f16 | 2 q i8[32]
 * Group, 544 bytes:  0 q [8 quads of columns][16 rows] u32: bytes k0 + 128, k2, k1 + 128, k3 (simd/stairs.ts)
 *                    512 d f16[16 rows]
 *
 * Signed bytes are no operand of the relaxed dot product, so that both builds use i16 here.
 */

import { add_scaled } from '../simd/accumulate';
import { SEGMENT, STAIRS_BYTE_OFFSETS, STAIRS_BYTES } from '../simd/activations';
import { f32_from_f16, f32x4_load_f16 } from '../simd/half';
import { dot_byte_stairs } from '../simd/stairs';
import { store_results, TILE_D, TILE_HALF } from '../simd/tile';

export const NATIVE: usize = 34;
export const BLOCK: usize = 544;
const D: usize = 512;

/** Adds 128 to the lower bytes of both lanes, or takes it away. */
const LOW_SIGNS: u32 = 0x00800080;

/** Column k (0 … 3) of a word. */
function quant(word: u32, k: i32): i32 {
  return <i8>((word ^ LOW_SIGNS) >> (((k & 1) << 4) + ((k >> 1) << 3)));
}

export function repack(block: usize, native: usize, row: i32): void {
  for (let quad: usize = 0; quad < 8; quad++) {
    const q = load<u32>(native + (quad << 2), 2);
    const word = (q & 0xff0000ff) | ((q & 0xff00) << 8) | ((q & 0xff0000) >> 8);
    store<u32>(block + (quad << 6) + (row << 2), word ^ LOW_SIGNS);
  }
  store<u16>(block + (row << 1), load<u16>(native), D);
}

export function dequantize(out: usize, block: usize, row: i32): void {
  const d = f32_from_f16(load<u16>(block + (row << 1), D));
  for (let k = 0; k < 32; k++) {
    store<f32>(out + (k << 2), d * <f32>quant(load<u32>(block + ((k >> 2) << 6) + (row << 2)), k & 3));
  }
}

export function dequantize_native(out: usize, native: usize): void {
  const d = f32_from_f16(load<u16>(native));
  for (let i = 0; i < 32; i++) store<f32>(out + (i << 2), d * <f32>load<i8>(native + i, 2));
}

/** One token times a group: 16 results at TILE_RESULTS. `x` points at stair records. */
export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  const half = scratch + TILE_HALF;
  let y0 = f32x4.splat(0);
  let y1 = f32x4.splat(0);
  let y2 = f32x4.splat(0);
  let y3 = f32x4.splat(0);
  for (let column = 0; column < width; column += 32) {
    const at = (column & (SEGMENT - 1)) >> 5;
    const record = x + <usize>(column >> 8) * step + (at << 2);
    let factors = record + (at << 6) - (at << 2);
    const d = group + D;
    let s0 = v128.load32_splat(record, STAIRS_BYTE_OFFSETS);
    let s1 = s0;
    let s2 = s0;
    let s3 = s0;
    for (let quad = 0; quad < 8; quad += 2) {
      const f0 = v128.load32_splat(factors, STAIRS_BYTES);
      const f1 = v128.load32_splat(factors, STAIRS_BYTES + 4);
      s0 = dot_byte_stairs(s0, v128.load(group), f0, f1);
      s1 = dot_byte_stairs(s1, v128.load(group, 16), f0, f1);
      s2 = dot_byte_stairs(s2, v128.load(group, 32), f0, f1);
      s3 = dot_byte_stairs(s3, v128.load(group, 48), f0, f1);
      const g0 = v128.load32_splat(factors, STAIRS_BYTES + 8);
      const g1 = v128.load32_splat(factors, STAIRS_BYTES + 12);
      s0 = dot_byte_stairs(s0, v128.load(group, 64), g0, g1);
      s1 = dot_byte_stairs(s1, v128.load(group, 80), g0, g1);
      s2 = dot_byte_stairs(s2, v128.load(group, 96), g0, g1);
      s3 = dot_byte_stairs(s3, v128.load(group, 112), g0, g1);
      group += 128;
      factors += 16;
    }
    const dx = v128.load32_splat(record);
    y0 = add_scaled(y0, s0, f32x4_load_f16(d, half), dx);
    y1 = add_scaled(y1, s1, f32x4_load_f16(d + 8, half), dx);
    y2 = add_scaled(y2, s2, f32x4_load_f16(d + 16, half), dx);
    y3 = add_scaled(y3, s3, f32x4_load_f16(d + 24, half), dx);
    group = d + 32;
  }
  store_results(scratch, y0, y1, y2, y3);
}

/** Up to eight blocks to an i16 tile. */
export function unpack(tile: usize, block: usize, blocks: i32): void {
  for (let b = 0; b < blocks; b++) {
    for (let v: usize = 0; v < 4; v++) {
      v128.store(tile + (b << 6) + (v << 4), f32x4_load_f16(block + D + (v << 3), tile + TILE_HALF), TILE_D);
    }
    for (let i: usize = 0; i < 512; i += 16) {
      const q = v128.xor(v128.load(block + i), i32x4.splat(LOW_SIGNS));
      const at = tile + (b << 10) + ((i >> 6) << 7) + (i & 63);
      v128.store(at, i16x8.shr_s(i16x8.shl(q, 8), 8));
      v128.store(at, i16x8.shr_s(q, 8), 64);
    }
    block += BLOCK;
  }
}
