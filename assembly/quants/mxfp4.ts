/**
 * MXFP4 of the OCP microscaling formats: 32 columns, value 2^(e − 128) · book[q], the book twice the values of E2M1:
 * 0 1 2 3 4 6 8 12, then the same negative (`kvalues_mxfp4` of ggml-common.h).
 *
 * Native, 17 bytes:  0 e u8 | 1 codes [16] of 4 bits, as in Q4_0
 * Group, 272 bytes:  0 codes of 4 bits (codes.ts) | 256 e u8[16 rows]
 *
 * Products take the two smallest scales, 2^-128 and 2^-127, for 0: what that takes away is below 2^-110 · |x|.
 *
 * In the plain build the second and the third pair of an octet's columns change places, so that a looked-up vector holds
 * bytes as simd/stairs.ts takes them: columns 0 2 1 3 out of the low nibbles, 4 6 5 7 out of the high ones.
 */

import { add_scaled } from '../simd/accumulate';
import { OCTET, RECORD_OFFSETS, RECORD_SCALES, SEGMENT, STAIRS_BYTES, STAIRS_OFFSETS } from '../simd/activations';
import { BYTE_MASK, held, high_nibbles, LOW_MASK, low_nibbles } from '../simd/octets';
import { dot_byte_stairs } from '../simd/stairs';
import { store_results, TILE_D, TILE_DMIN } from '../simd/tile';
import { book_value, code_of, dot_book, held_book, look_up, store_run } from './codes';
import { TILE_OCTET } from './k-tile';

export const NATIVE: usize = 17;
export const BLOCK: usize = 272;
const E: usize = 256;

/** The books' values have 16 = 8 · 2^SHIFT added. */
export const SHIFT: i32 = 1;
const BOOK_LOW: u64 = 0x1c18161413121110;
const BOOK_HIGH: u64 = 0x04080a0c0d0e0f10;

/** 2^(e − 128); the two smallest are subnormal. */
function scale_of(e: u32): f32 {
  return reinterpret<f32>(e < 2 ? 0x00200000 << e : (e - 1) << 23);
}

/** Where look-ups find the scales of row vector v, as the topmost bytes of lanes; an index of 128 gives 0. */
function hold_scale_places(scratch: usize): void {
  for (let row: u32 = 0; row < 16; row++) store<u32>(scratch + (row << 2), (row << 24) | 0x808080);
}

/** Exponents of all rows as f32 has them. */
function load_exponents(e: usize): v128 {
  return i8x16.sub_sat_u(v128.load(e), i8x16.splat(1));
}

/** Scales of row vector v. */
function scales_of(exponents: v128, places: usize, v: usize): v128 {
  return i32x4.shr_u(look_up(exponents, v128.load(places + (v << 4))), 1);
}

/** Changes places of columns 2, 3 and 4, 5, a byte each, in the plain build. */
function in_order(codes: u64): u64 {
  if (ASC_FEATURE_RELAXED_SIMD) return codes;
  return (codes & 0xffff00000000ffff) | ((codes & 0xffff0000) << 16) | ((codes >> 16) & 0xffff0000);
}

export function repack(block: usize, native: usize, row: i32): void {
  const low: u64 = 0x0f0f0f0f0f0f0f0f;
  const a = load<u64>(native, 1);
  const b = load<u64>(native, 9);
  store_run(block, row, 4, in_order(a & low), in_order(b & low), in_order((a >> 4) & low), in_order((b >> 4) & low));
  store<u8>(block + row, load<u8>(native), E);
}

function value(code: i32): f32 {
  return <f32>(book_value(BOOK_LOW, BOOK_HIGH, code) - 16);
}

export function dequantize(out: usize, block: usize, row: i32): void {
  const d = scale_of(load<u8>(block + row, E));
  for (let k = 0; k < 32; k++) {
    const pair = (k >> 1) & 3;
    const swapped = !ASC_FEATURE_RELAXED_SIMD && (pair == 1 || pair == 2);
    store<f32>(out + (k << 2), d * value(code_of(block, row, 4, swapped ? k ^ 6 : k)));
  }
}

export function dequantize_native(out: usize, native: usize): void {
  const d = scale_of(load<u8>(native));
  for (let i = 0; i < 16; i++) {
    const byte: i32 = load<u8>(native + i, 1);
    store<f32>(out + (i << 2), d * value(byte & 15));
    store<f32>(out + (i << 2), d * value(byte >> 4), 64);
  }
}

/** One token times a group: 16 results at TILE_RESULTS. In the plain build `x` points at stair records. */
export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  const low = held(scratch, LOW_MASK);
  const book = held_book(scratch, BOOK_LOW, BOOK_HIGH);
  hold_scale_places(scratch);
  let y0 = f32x4.splat(0);
  let y1 = f32x4.splat(0);
  let y2 = f32x4.splat(0);
  let y3 = f32x4.splat(0);
  for (let column = 0; column < width; column += 32) {
    const at = (column & (SEGMENT - 1)) >> 5;
    const record = x + <usize>(column >> 8) * step + (at << 2);
    const e = group + E;
    let s0 = i32x4.shl(v128.load32_splat(record, ASC_FEATURE_RELAXED_SIMD ? RECORD_OFFSETS : STAIRS_OFFSETS), SHIFT);
    let s1 = s0;
    let s2 = s0;
    let s3 = s0;
    if (ASC_FEATURE_RELAXED_SIMD) {
      let quants = x + <usize>(column >> 8) * step + <usize>(at << 2) * OCTET;
      for (let octet = 0; octet < 4; octet++) {
        const x0 = v128.load32_splat(quants);
        const x1 = v128.load32_splat(quants, 4);
        s0 = dot_book(s0, v128.load(group), low, book, low, x0, x1, x0, x1);
        s1 = dot_book(s1, v128.load(group, 16), low, book, low, x0, x1, x0, x1);
        s2 = dot_book(s2, v128.load(group, 32), low, book, low, x0, x1, x0, x1);
        s3 = dot_book(s3, v128.load(group, 48), low, book, low, x0, x1, x0, x1);
        group += 64;
        quants += OCTET;
      }
    } else {
      let factors = record - (at << 2) + (at << 6);
      for (let octet = 0; octet < 4; octet++) {
        const f0 = v128.load32_splat(factors, STAIRS_BYTES);
        const f1 = v128.load32_splat(factors, STAIRS_BYTES + 4);
        const f2 = v128.load32_splat(factors, STAIRS_BYTES + 8);
        const f3 = v128.load32_splat(factors, STAIRS_BYTES + 12);
        s0 = dot_book_stairs(s0, v128.load(group), low, book, f0, f1, f2, f3);
        s1 = dot_book_stairs(s1, v128.load(group, 16), low, book, f0, f1, f2, f3);
        s2 = dot_book_stairs(s2, v128.load(group, 32), low, book, f0, f1, f2, f3);
        s3 = dot_book_stairs(s3, v128.load(group, 48), low, book, f0, f1, f2, f3);
        group += 64;
        factors += 16;
      }
    }
    const dx = v128.load32_splat(record, ASC_FEATURE_RELAXED_SIMD ? RECORD_SCALES : 0);
    const exponents = load_exponents(e);
    y0 = add_scaled(y0, s0, scales_of(exponents, scratch, 0), dx);
    y1 = add_scaled(y1, s1, scales_of(exponents, scratch, 1), dx);
    y2 = add_scaled(y2, s2, scales_of(exponents, scratch, 2), dx);
    y3 = add_scaled(y3, s3, scales_of(exponents, scratch, 3), dx);
    group = e + 16;
  }
  store_results(scratch, y0, y1, y2, y3);
}

/** acc + four rows × 8 columns of codes, times their factors. No value of the book has bit 7. */
function dot_book_stairs(acc: v128, v: v128, low: v128, book: v128, f0: v128, f1: v128, f2: v128, f3: v128): v128 {
  acc = dot_byte_stairs(acc, look_up(book, low_nibbles(v, low)), f0, f1);
  return dot_byte_stairs(acc, look_up(book, high_nibbles(v, low)), f2, f3);
}

/** Up to eight blocks to a tile: i16 in the plain build, unsigned bytes in the relaxed one. */
export function unpack(tile: usize, block: usize, blocks: i32): void {
  const low = held(tile, LOW_MASK);
  const mask = held(tile, BYTE_MASK);
  const book = held_book(tile, BOOK_LOW, BOOK_HIGH);
  // Nothing is subtracted from this type: the place of the minima's scales is free.
  hold_scale_places(tile + TILE_DMIN);
  const offset = i16x8.splat(16);
  for (let b = 0; b < blocks; b++) {
    const exponents = load_exponents(block + E);
    for (let v: usize = 0; v < 4; v++) {
      v128.store(tile + (b << 6) + (v << 4), scales_of(exponents, tile + TILE_DMIN, v), TILE_D);
    }
    for (let i: usize = 0; i < 256; i += 16) {
      const packed = v128.load(block + i);
      const first = look_up(book, low_nibbles(packed, low));
      const second = look_up(book, high_nibbles(packed, low));
      const at = tile + (<usize>(b << 2) + (i >> 6)) * TILE_OCTET + (i & 63);
      if (ASC_FEATURE_RELAXED_SIMD) {
        v128.store(at, first);
        v128.store(at, second, 64);
      } else {
        v128.store(at, i16x8.sub(v128.and(first, mask), offset));
        v128.store(at, i16x8.sub(i16x8.shr_u(first, 8), offset), 64);
        v128.store(at, i16x8.sub(v128.and(second, mask), offset), 128);
        v128.store(at, i16x8.sub(i16x8.shr_u(second, 8), offset), 192);
      }
    }
    block += BLOCK;
  }
}
