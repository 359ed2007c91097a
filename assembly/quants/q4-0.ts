/**
 * Q4_0: 32 columns, value d · (q − 8).
 *
 * Native, 18 bytes:  0 d f16 | 2 nibbles [16]: low nibble of byte i is column i, high nibble column 16 + i
 * Group, 288 bytes:  0 octets [4 of 8 columns][16 rows] u32 (simd/octets.ts), in the plain build less
 *                      TOP_NIBBLES (simd/stairs.ts)
 *                    256 d f16[16 rows]
 */

import { add_scaled } from '../simd/accumulate';
import {
  OCTET,
  RECORD_OFFSETS,
  RECORD_SCALES,
  SEGMENT,
  STAIRS_NIBBLE_OFFSETS,
  STAIRS_NIBBLES,
} from '../simd/activations';
import { f32_from_f16, f32x4_load_f16 } from '../simd/half';
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
import { store_results, TILE_D, TILE_HALF } from '../simd/tile';

export const NATIVE: usize = 18;
export const BLOCK: usize = 288;
const D: usize = 256;

export function repack(block: usize, native: usize, row: i32): void {
  const bytes = load<u64>(native + 2);
  const more = load<u64>(native + 10);
  const low: u64 = 0x0f0f0f0f0f0f0f0f;
  const at = block + (row << 2);
  store<u32>(at, pack_octet(bytes & low, 4) ^ TOP_NIBBLES);
  store<u32>(at, pack_octet(more & low, 4) ^ TOP_NIBBLES, 64);
  store<u32>(at, pack_octet((bytes >> 4) & low, 4) ^ TOP_NIBBLES, 128);
  store<u32>(at, pack_octet((more >> 4) & low, 4) ^ TOP_NIBBLES, 192);
  store<u16>(block + (row << 1), load<u16>(native), D);
}

export function dequantize(out: usize, block: usize, row: i32): void {
  const d = f32_from_f16(load<u16>(block + (row << 1), D));
  for (let k = 0; k < 32; k++) {
    const q = unpack_octet(load<u32>(block + ((k >> 3) << 6) + (row << 2)) ^ TOP_NIBBLES, k & 7, 4, 0);
    store<f32>(out + (k << 2), d * <f32>(q - 8));
  }
}

export function dequantize_native(out: usize, native: usize): void {
  const d = f32_from_f16(load<u16>(native));
  for (let i = 0; i < 16; i++) {
    const byte: i32 = load<u8>(native + i, 2);
    store<f32>(out + (i << 2), d * <f32>((byte & 15) - 8));
    store<f32>(out + (i << 2), d * <f32>((byte >> 4) - 8), 64);
  }
}

/** One token times a group: 16 results at TILE_RESULTS. In the plain build `x` points at stair records. */
export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  if (ASC_FEATURE_RELAXED_SIMD) decode_bytes(scratch, group, x, step, width);
  else decode_stairs(scratch, group, x, step, width);
}

function decode_stairs(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  const half = scratch + TILE_HALF;
  let y0 = f32x4.splat(0);
  let y1 = f32x4.splat(0);
  let y2 = f32x4.splat(0);
  let y3 = f32x4.splat(0);
  for (let column = 0; column < width; column += 32) {
    const at = (column & (SEGMENT - 1)) >> 5;
    const record = x + <usize>(column >> 8) * step;
    let factors = record + (at << 6) + STAIRS_NIBBLES;
    const d = group + D;
    let s0 = v128.load32_splat(record + (at << 2), STAIRS_NIBBLE_OFFSETS);
    let s1 = s0;
    let s2 = s0;
    let s3 = s0;
    for (let octet = 0; octet < 4; octet++) {
      const f0 = v128.load32_splat(factors);
      const f1 = v128.load32_splat(factors, 4);
      const f2 = v128.load32_splat(factors, 8);
      const f3 = v128.load32_splat(factors, 12);
      s0 = dot_stairs(s0, v128.load(group), f0, f1, f2, f3);
      s1 = dot_stairs(s1, v128.load(group, 16), f0, f1, f2, f3);
      s2 = dot_stairs(s2, v128.load(group, 32), f0, f1, f2, f3);
      s3 = dot_stairs(s3, v128.load(group, 48), f0, f1, f2, f3);
      group += 64;
      factors += 16;
    }
    const dx = v128.load32_splat(record + (at << 2));
    y0 = add_scaled(y0, s0, f32x4_load_f16(d, half), dx);
    y1 = add_scaled(y1, s1, f32x4_load_f16(d + 8, half), dx);
    y2 = add_scaled(y2, s2, f32x4_load_f16(d + 16, half), dx);
    y3 = add_scaled(y3, s3, f32x4_load_f16(d + 24, half), dx);
    group = d + 32;
  }
  store_results(scratch, y0, y1, y2, y3);
}

/** i16 sums of a block: 16 pairs of products of at most 15 · 127 each. */
function decode_bytes(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  const half = scratch + TILE_HALF;
  const mask = held(scratch, NIBBLE_MASK);
  const ones = held(scratch, 0x00010001);
  let y0 = f32x4.splat(0);
  let y1 = f32x4.splat(0);
  let y2 = f32x4.splat(0);
  let y3 = f32x4.splat(0);
  for (let column = 0; column < width; column += 32) {
    const at = (column & (SEGMENT - 1)) >> 5;
    const record = x + <usize>(column >> 8) * step + (at << 2);
    let quants = x + <usize>(column >> 8) * step + <usize>(at << 2) * OCTET;
    const d = group + D;
    let a0 = i16x8.splat(0);
    let a1 = i16x8.splat(0);
    let a2 = i16x8.splat(0);
    let a3 = i16x8.splat(0);
    for (let octet = 0; octet < 4; octet++) {
      const x0 = v128.load32_splat(quants);
      const x1 = v128.load32_splat(quants, 4);
      a0 = dot_nibble_bytes(a0, v128.load(group), mask, x0, x1);
      a1 = dot_nibble_bytes(a1, v128.load(group, 16), mask, x0, x1);
      a2 = dot_nibble_bytes(a2, v128.load(group, 32), mask, x0, x1);
      a3 = dot_nibble_bytes(a3, v128.load(group, 48), mask, x0, x1);
      group += 64;
      quants += OCTET;
    }
    const offset = v128.load32_splat(record, RECORD_OFFSETS);
    const s0 = i32x4.add(offset, i32x4.dot_i16x8_s(a0, ones));
    const s1 = i32x4.add(offset, i32x4.dot_i16x8_s(a1, ones));
    const s2 = i32x4.add(offset, i32x4.dot_i16x8_s(a2, ones));
    const s3 = i32x4.add(offset, i32x4.dot_i16x8_s(a3, ones));
    const dx = v128.load32_splat(record, RECORD_SCALES);
    y0 = add_scaled(y0, s0, f32x4_load_f16(d, half), dx);
    y1 = add_scaled(y1, s1, f32x4_load_f16(d + 8, half), dx);
    y2 = add_scaled(y2, s2, f32x4_load_f16(d + 16, half), dx);
    y3 = add_scaled(y3, s3, f32x4_load_f16(d + 24, half), dx);
    group = d + 32;
  }
  store_results(scratch, y0, y1, y2, y3);
}

/** Up to eight blocks to a tile: i16 (q − 8) in the plain build, unsigned bytes in the relaxed one. */
export function unpack(tile: usize, block: usize, blocks: i32): void {
  const mask = held(tile, NIBBLE_MASK);
  const top = i32x4.splat(TOP_NIBBLES);
  for (let b = 0; b < blocks; b++) {
    for (let v: usize = 0; v < 4; v++) {
      v128.store(tile + (b << 6) + (v << 4), f32x4_load_f16(block + D + (v << 3), tile + TILE_HALF), TILE_D);
    }
    for (let i: usize = 0; i < 256; i += 16) {
      const packed = v128.xor(v128.load(block + i), top);
      if (ASC_FEATURE_RELAXED_SIMD) {
        // An octet of four row vectors is two quads.
        const at = tile + (b << 9) + ((i >> 6) << 7) + (i & 63);
        v128.store(at, low_nibbles(packed, mask));
        v128.store(at, high_nibbles(packed, mask), 64);
      } else {
        const at = tile + (b << 10) + ((i >> 6) << 8) + (i & 63);
        const offset = i16x8.splat(8);
        v128.store(at, i16x8.sub(v128.and(packed, mask), offset));
        v128.store(at, i16x8.sub(v128.and(i16x8.shr_u(packed, 4), mask), offset), 64);
        v128.store(at, i16x8.sub(v128.and(i16x8.shr_u(packed, 8), mask), offset), 128);
        v128.store(at, i16x8.sub(i16x8.shr_u(packed, 12), offset), 192);
      }
    }
    block += BLOCK;
  }
}
