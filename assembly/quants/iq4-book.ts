/**
 * The code book of IQ4_NL and IQ4_XS (`kvalues_iq4nl` of ggml-common.h):
 *
 *   −127 −104 −83 −65 −49 −35 −22 −10 1 13 25 38 53 69 89 113
 *
 * Signed bytes are no operand of the relaxed dot product, and the values span more than 7 bits. The plain build adds 128,
 * which the sums of activations take away again; the relaxed one multiplies positive values
 * with x, magnitudes of negative ones with −x. Tiles hold i16 in both.
 */

import { dot_bytes, FOURTH, high_nibbles, low_nibbles, THIRD } from '../simd/octets';
import { book_value, held_book, look_up } from './codes';
import { store_octet, store_signed_octet } from './k-tile';

/** The plain build's offset is 2^7. */
export const SHIFT: i32 = 7;

export function iq4_value(code: i32): i32 {
  return book_value(0x766a5d4f3f2d1801, 0xf1d9c5b5a6998d81, code) - 128;
}

/** Plain: values + 128. Relaxed: the positive values. */
export function held_iq4(at: usize): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return held_book(at, 0x0000000000000000, 0x7159453526190d01);
  return held_book(at, 0x766a5d4f3f2d1801, 0xf1d9c5b5a6998d81);
}

/** The negative values' magnitudes, for the relaxed build. */
export function held_iq4_negative(at: usize): v128 {
  return held_book(at, 0x0a1623314153687f, 0x0000000000000000);
}

/** What tiles are made of. Plain: values + 128. Relaxed: values as signed bytes. */
export function held_iq4_tile(at: usize): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return held_book(at, 0xf6eaddcfbfad9881, 0x7159453526190d01);
  return held_book(at, 0x766a5d4f3f2d1801, 0xf1d9c5b5a6998d81);
}

/** acc + four rows' dot products of an octet of codes; arguments as of `dot_bytes`, `low` is LOW_MASK. */
export function dot_book(
  acc: v128,
  v: v128,
  low: v128,
  book: v128,
  mask: v128,
  x0: v128,
  x1: v128,
  x2: v128,
  x3: v128,
): v128 {
  const a = look_up(book, low_nibbles(v, low));
  const b = look_up(book, high_nibbles(v, low));
  return dot_bytes(acc, a, b, mask, x0, x1, x2, x3);
}

/**
 * The same for this book. In the relaxed build `book` holds positive values, `negative` the magnitudes of the others, and
 * x2 and x3 are −x0 and −x1 ({@link third} and {@link fourth}).
 */
export function dot_iq4(
  acc: v128,
  v: v128,
  low: v128,
  book: v128,
  negative: v128,
  mask: v128,
  x0: v128,
  x1: v128,
  x2: v128,
  x3: v128,
): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) {
    const a = low_nibbles(v, low);
    const b = high_nibbles(v, low);
    acc = i32x4.relaxed_dot_i8x16_i7x16_add_s(x0, look_up(book, a), acc);
    acc = i32x4.relaxed_dot_i8x16_i7x16_add_s(x1, look_up(book, b), acc);
    const other = i32x4.relaxed_dot_i8x16_i7x16_add_s(x2, look_up(negative, a), i32x4.splat(0));
    return i32x4.add(acc, i32x4.relaxed_dot_i8x16_i7x16_add_s(x3, look_up(negative, b), other));
  }
  return dot_book(acc, v, low, book, mask, x0, x1, x2, x3);
}

/** Third operand of {@link dot_iq4}. */
export function third(quants: usize, x0: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return i8x16.neg(x0);
  return v128.load32_splat(quants, THIRD);
}

/** Fourth operand of {@link dot_iq4}. */
export function fourth(quants: usize, x1: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return i8x16.neg(x1);
  return v128.load32_splat(quants, FOURTH);
}

/** An octet of codes to an i16 tile, times `scale`; `book` from {@link held_iq4_tile}, `offset` 128 in i16 lanes. */
export function store_iq4(at: usize, v: v128, low: v128, book: v128, mask: v128, offset: v128, scale: v128): void {
  const a = look_up(book, low_nibbles(v, low));
  const b = look_up(book, high_nibbles(v, low));
  if (ASC_FEATURE_RELAXED_SIMD) store_signed_octet(at, a, b, scale);
  else store_octet(at, a, b, mask, offset, scale);
}
