/**
 * IQ4_NL: 32 columns, value d · book[q] (iq4-book.ts).
 *
 * Native, 18 bytes:  0 d f16 | 2 codes [16] of 4 bits, as in Q4_0
 * Group, 288 bytes:  0 codes of 4 bits (iq4-book.ts) | 256 d f16[16 rows]
 */

import { add_scaled } from '../simd/accumulate';
import { RECORD_OFFSETS, RECORD_SCALES, RECORD_WIDE, SEGMENT } from '../simd/activations';
import { f32_from_f16, f32x4_load_f16 } from '../simd/half';
import { BYTE_MASK, held, LOW_MASK } from '../simd/octets';
import { store_results, TILE_D, TILE_HALF } from '../simd/tile';
import { dot_iq4, held_iq4, iq4_value, iq4_value_of, OCTET_I16, SHIFT, store_iq4, store_iq4_run } from './iq4-book';
import { unpack_scales, WIDE_OCTET } from './k-tile';

export const NATIVE: usize = 18;
export const BLOCK: usize = 288;
const D: usize = 256;

export function repack(block: usize, native: usize, row: i32): void {
  store_iq4_run(block, row, native + 2);
  store<u16>(block + (row << 1), load<u16>(native), D);
}

export function dequantize(out: usize, block: usize, row: i32): void {
  const d = f32_from_f16(load<u16>(block + (row << 1), D));
  for (let k = 0; k < 32; k++) store<f32>(out + (k << 2), d * <f32>iq4_value_of(block, row, k));
}

export function dequantize_native(out: usize, native: usize): void {
  const d = f32_from_f16(load<u16>(native));
  for (let i = 0; i < 16; i++) {
    const byte: i32 = load<u8>(native + i, 2);
    store<f32>(out + (i << 2), d * <f32>iq4_value(byte & 15));
    store<f32>(out + (i << 2), d * <f32>iq4_value(byte >> 4), 64);
  }
}

/** One token times a group: 16 results at TILE_RESULTS. */
export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  const half = scratch + TILE_HALF;
  const low = held(scratch, LOW_MASK);
  const mask = held(scratch, BYTE_MASK);
  const book = held_iq4(scratch);
  let y0 = f32x4.splat(0);
  let y1 = f32x4.splat(0);
  let y2 = f32x4.splat(0);
  let y3 = f32x4.splat(0);
  for (let column = 0; column < width; column += 32) {
    const at = (column & (SEGMENT - 1)) >> 5;
    const record = x + <usize>(column >> 8) * step;
    let quants = record + (at << 6) + RECORD_WIDE;
    const d = group + D;
    let s0 = i32x4.shl(v128.load32_splat(record + (at << 2), RECORD_OFFSETS), SHIFT - 3);
    let s1 = s0;
    let s2 = s0;
    let s3 = s0;
    for (let octet = 0; octet < 4; octet++) {
      const x0 = v128.load32_splat(quants);
      const x1 = v128.load32_splat(quants, 4);
      const x2 = v128.load32_splat(quants, 8);
      const x3 = v128.load32_splat(quants, 12);
      s0 = dot_iq4(s0, v128.load(group), low, book, mask, x0, x1, x2, x3);
      s1 = dot_iq4(s1, v128.load(group, 16), low, book, mask, x0, x1, x2, x3);
      s2 = dot_iq4(s2, v128.load(group, 32), low, book, mask, x0, x1, x2, x3);
      s3 = dot_iq4(s3, v128.load(group, 48), low, book, mask, x0, x1, x2, x3);
      group += 64;
      quants += OCTET_I16;
    }
    const dx = v128.load32_splat(record + (at << 2), RECORD_SCALES);
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
  const low = held(tile, LOW_MASK);
  const mask = held(tile, BYTE_MASK);
  const book = held_iq4(tile);
  const offset = i16x8.splat(128);
  const one = i16x8.splat(1);
  for (let b = 0; b < blocks; b++) {
    unpack_scales(tile, TILE_D + (b << 6), block + D);
    for (let i: usize = 0; i < 256; i += 16) {
      const at = tile + (<usize>(b << 2) + (i >> 6)) * WIDE_OCTET + (i & 63);
      store_iq4(at, v128.load(block + i), low, book, mask, offset, one);
    }
    block += BLOCK;
  }
}
