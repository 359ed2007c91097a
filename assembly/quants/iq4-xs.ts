/**
 * IQ4_XS: 256 columns in 8 sub-blocks of 32, value d · (sc − 32) · book[q] (iq4-book.ts).
 *
 * Native, 136 bytes:  0 d f16 | 2 upper bit pairs of the scales u16 | 4 lower nibbles of the scales [4]
 *                     8 codes [128] of 4 bits: 16 bytes a sub-block, as in Q4_0
 * Group, 2240 bytes: codes-4.ts, scales less 32
 */

import { RECORD_SCALES, RECORD_WIDE } from '../simd/activations';
import { f32_from_f16 } from '../simd/half';
import { BYTE_MASK, held, LOW_MASK } from '../simd/octets';
import { store_results, TILE_D } from '../simd/tile';
import { BLOCK, D, finish_4, RUN, RUNS, SCALES, store_d_4, store_scale_4 } from './codes-4';
import { dot_iq4, held_iq4, iq4_value, iq4_value_of, OCTET_I16, SHIFT, store_iq4, store_iq4_run } from './iq4-book';
import { both_lanes, scale_place, scales_of } from './k-scales';
import { copy_scales, WIDE_OCTET } from './k-tile';

export const NATIVE: usize = 136;
export { BLOCK };

function native_scale(native: usize, j: i32): i32 {
  const low: i32 = (load<u8>(native + (j >> 1), 4) >> ((j & 1) << 2)) & 15;
  const high: i32 = (load<u16>(native, 2) >> (j << 1)) & 3;
  return (low | (high << 4)) - 32;
}

export function repack(block: usize, native: usize, row: i32): void {
  for (let j = 0; j < 8; j++) {
    store_iq4_run(block + RUNS + <usize>j * RUN, row, native + 8 + (j << 4));
    store_scale_4(block, row, j, native_scale(native, j));
  }
  store_d_4(block, row, f32_from_f16(load<u16>(native)));
}

export function dequantize(out: usize, block: usize, row: i32): void {
  const d = load<f32>(block + (row << 2), D);
  for (let k = 0; k < 256; k++) {
    const scale = d * <f32>load<i8>(scale_place(block + SCALES, k >> 5, row));
    store<f32>(out + (k << 2), scale * <f32>iq4_value_of(block + RUNS + <usize>(k >> 5) * RUN, row, k & 31));
  }
}

export function dequantize_native(out: usize, native: usize): void {
  const d = f32_from_f16(load<u16>(native));
  for (let k = 0; k < 256; k++) {
    const byte: i32 = load<u8>(native + ((k >> 5) << 4) + (k & 15), 8);
    const scale = d * <f32>native_scale(native, k >> 5);
    store<f32>(out + (k << 2), scale * <f32>iq4_value((byte >> ((k & 16) >> 2)) & 15));
  }
}

/** One token times a group: 16 results at TILE_RESULTS. */
export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  const low = held(scratch, LOW_MASK);
  const mask = held(scratch, BYTE_MASK);
  const book = held_iq4(scratch);
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
    let quants = x + RECORD_WIDE;
    for (let j = 0; j < 8; j++) {
      let a0 = i32x4.splat(0);
      let a1 = i32x4.splat(0);
      let a2 = i32x4.splat(0);
      let a3 = i32x4.splat(0);
      for (let octet = 0; octet < 4; octet++) {
        const x0 = v128.load32_splat(quants);
        const x1 = v128.load32_splat(quants, 4);
        const x2 = v128.load32_splat(quants, 8);
        const x3 = v128.load32_splat(quants, 12);
        a0 = dot_iq4(a0, v128.load(w), low, book, mask, x0, x1, x2, x3);
        a1 = dot_iq4(a1, v128.load(w, 16), low, book, mask, x0, x1, x2, x3);
        a2 = dot_iq4(a2, v128.load(w, 32), low, book, mask, x0, x1, x2, x3);
        a3 = dot_iq4(a3, v128.load(w, 48), low, book, mask, x0, x1, x2, x3);
        w += 64;
        quants += OCTET_I16;
      }
      s0 = i32x4.add(s0, i32x4.mul(a0, scales_of(scales, j)));
      s1 = i32x4.add(s1, i32x4.mul(a1, scales_of(scales + 8, j)));
      s2 = i32x4.add(s2, i32x4.mul(a2, scales_of(scales + 16, j)));
      s3 = i32x4.add(s3, i32x4.mul(a3, scales_of(scales + 24, j)));
    }
    const dx = v128.load32_splat(x, RECORD_SCALES);
    y0 = finish_4(y0, s0, group, 0, x, dx, SHIFT);
    y1 = finish_4(y1, s1, group, 16, x, dx, SHIFT);
    y2 = finish_4(y2, s2, group, 32, x, dx, SHIFT);
    y3 = finish_4(y3, s3, group, 48, x, dx, SHIFT);
    group += BLOCK;
    x += step;
  }
  store_results(scratch, y0, y1, y2, y3);
}

/** One block to an i16 tile. */
export function unpack(tile: usize, block: usize): void {
  copy_scales(tile, TILE_D, block + D);
  const low = held(tile, LOW_MASK);
  const mask = held(tile, BYTE_MASK);
  const book = held_iq4(tile);
  const offset = i16x8.splat(128);
  for (let j = 0; j < 8; j++) {
    for (let v: usize = 0; v < 4; v++) {
      const scale = both_lanes(scales_of(block + SCALES + (v << 3), j));
      for (let octet = 0; octet < 4; octet++) {
        const packed = v128.load(block + RUNS + <usize>j * RUN + (octet << 6) + (v << 4));
        store_iq4(tile + <usize>((j << 2) + octet) * WIDE_OCTET + (v << 4), packed, low, book, mask, offset, scale);
      }
    }
  }
}
