/**
 * MXFP4 of the OCP microscaling formats: 32 columns, value 2^(e − 128) · book[q], the book twice the values of E2M1:
 * 0 1 2 3 4 6 8 12, then the same negative (`kvalues_mxfp4` of ggml-common.h).
 *
 * Native, 17 bytes:  0 e u8 | 1 codes [16] of 4 bits, as in Q4_0
 * Group, 272 bytes:  0 codes of 4 bits (codes.ts) | 256 e u8[16 rows]
 */

import { add_scaled } from '../simd/accumulate';
import { OCTET, RECORD_OFFSETS, RECORD_SCALES, SEGMENT } from '../simd/activations';
import { BYTE_MASK, FOURTH, held, high_nibbles, LOW_MASK, low_nibbles, THIRD } from '../simd/octets';
import { store_results, TILE_D } from '../simd/tile';
import { book_value, code_of, held_book, look_up, store_halves } from './codes';
import { dot_book } from './iq4-book';
import { store_octet, TILE_OCTET } from './k-tile';

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

/** The same of four rows. */
function load_scales(at: usize): v128 {
  const e = i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(v128.load32_zero(at)));
  const normal = i32x4.max_s(i32x4.shl(i32x4.sub(e, i32x4.splat(1)), 23), i32x4.splat(0));
  const zero = v128.and(i32x4.eq(e, i32x4.splat(0)), i32x4.splat(0x00200000));
  const one = v128.and(i32x4.eq(e, i32x4.splat(1)), i32x4.splat(0x00400000));
  return v128.or(normal, v128.or(zero, one));
}

export function repack(block: usize, native: usize, row: i32): void {
  store_halves(block, row, native + 1);
  store<u8>(block + row, load<u8>(native), E);
}

function value(code: i32): f32 {
  return <f32>(book_value(BOOK_LOW, BOOK_HIGH, code) - 16);
}

export function dequantize(out: usize, block: usize, row: i32): void {
  const d = scale_of(load<u8>(block + row, E));
  for (let k = 0; k < 32; k++) store<f32>(out + (k << 2), d * value(code_of(block, row, 4, k)));
}

export function dequantize_native(out: usize, native: usize): void {
  const d = scale_of(load<u8>(native));
  for (let i = 0; i < 16; i++) {
    const byte: i32 = load<u8>(native + i, 1);
    store<f32>(out + (i << 2), d * value(byte & 15));
    store<f32>(out + (i << 2), d * value(byte >> 4), 64);
  }
}

/** One token times a group: 16 results at TILE_RESULTS. */
export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  const low = held(scratch, LOW_MASK);
  const mask = held(scratch, BYTE_MASK);
  const book = held_book(scratch, BOOK_LOW, BOOK_HIGH);
  let y0 = f32x4.splat(0);
  let y1 = f32x4.splat(0);
  let y2 = f32x4.splat(0);
  let y3 = f32x4.splat(0);
  for (let column = 0; column < width; column += 32) {
    const at = (column & (SEGMENT - 1)) >> 5;
    const record = x + <usize>(column >> 8) * step;
    let quants = record + <usize>(at << 2) * OCTET;
    const e = group + E;
    let s0 = i32x4.shl(v128.load32_splat(record + (at << 2), RECORD_OFFSETS), SHIFT);
    let s1 = s0;
    let s2 = s0;
    let s3 = s0;
    for (let octet = 0; octet < 4; octet++) {
      const x0 = v128.load32_splat(quants);
      const x1 = v128.load32_splat(quants, 4);
      const x2 = v128.load32_splat(quants, THIRD);
      const x3 = v128.load32_splat(quants, FOURTH);
      s0 = dot_book(s0, v128.load(group), low, book, mask, x0, x1, x2, x3);
      s1 = dot_book(s1, v128.load(group, 16), low, book, mask, x0, x1, x2, x3);
      s2 = dot_book(s2, v128.load(group, 32), low, book, mask, x0, x1, x2, x3);
      s3 = dot_book(s3, v128.load(group, 48), low, book, mask, x0, x1, x2, x3);
      group += 64;
      quants += OCTET;
    }
    const dx = v128.load32_splat(record + (at << 2), RECORD_SCALES);
    y0 = add_scaled(y0, s0, load_scales(e), dx);
    y1 = add_scaled(y1, s1, load_scales(e + 4), dx);
    y2 = add_scaled(y2, s2, load_scales(e + 8), dx);
    y3 = add_scaled(y3, s3, load_scales(e + 12), dx);
    group = e + 16;
  }
  store_results(scratch, y0, y1, y2, y3);
}

/** Up to eight blocks to a tile: i16 in the plain build, unsigned bytes in the relaxed one. */
export function unpack(tile: usize, block: usize, blocks: i32): void {
  const low = held(tile, LOW_MASK);
  const mask = held(tile, BYTE_MASK);
  const book = held_book(tile, BOOK_LOW, BOOK_HIGH);
  const offset = i16x8.splat(16);
  const one = i16x8.splat(1);
  for (let b = 0; b < blocks; b++) {
    for (let v: usize = 0; v < 4; v++) {
      v128.store(tile + (b << 6) + (v << 4), load_scales(block + E + (v << 2)), TILE_D);
    }
    for (let i: usize = 0; i < 256; i += 16) {
      const packed = v128.load(block + i);
      const first = look_up(book, low_nibbles(packed, low));
      const second = look_up(book, high_nibbles(packed, low));
      store_octet(tile + (<usize>(b << 2) + (i >> 6)) * TILE_OCTET + (i & 63), first, second, mask, offset, one);
    }
    block += BLOCK;
  }
}
