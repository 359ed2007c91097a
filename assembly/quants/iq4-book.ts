/**
 * The code book of IQ4_NL and IQ4_XS (`kvalues_iq4nl` of ggml-common.h):
 *
 *   −127 −104 −83 −65 −49 −35 −22 −10 1 13 25 38 53 69 89 113
 *
 * Signed bytes are no operand of the relaxed dot product, and the values span more than 7 bits: both builds add 128, which
 * the sums of activations take away again, and multiply in i16. Positive and negative values apart, in two products of
 * bytes, were slower.
 */

import { dot_wide_bytes, high_nibbles, low_nibbles, pack_wide_octet, unpack_wide_octet } from '../simd/octets';
import { book_value, held_book, look_up } from './codes';
import { store_wide_octet } from './k-tile';

/** The offset is 2^7. */
export const SHIFT: i32 = 7;
/** Bytes of the activations, i16, of an octet. */
export const OCTET_I16: usize = 16;

const BOOK_LOW: u64 = 0x766a5d4f3f2d1801;
const BOOK_HIGH: u64 = 0xf1d9c5b5a6998d81;

export function iq4_value(code: i32): i32 {
  return book_value(BOOK_LOW, BOOK_HIGH, code) - 128;
}

/** The values, 128 added. */
export function held_iq4(at: usize): v128 {
  return held_book(at, BOOK_LOW, BOOK_HIGH);
}

/** 32 codes of a native block, whose low nibbles are columns 0–15, to a row of a run: wide octets [4][16 rows]. */
export function store_iq4_run(run: usize, row: i32, nibbles: usize): void {
  const low: u64 = 0x0f0f0f0f0f0f0f0f;
  const a = load<u64>(nibbles);
  const b = load<u64>(nibbles, 8);
  const at = run + (row << 2);
  store<u32>(at, pack_wide_octet(a & low, 4));
  store<u32>(at, pack_wide_octet(b & low, 4), 64);
  store<u32>(at, pack_wide_octet((a >> 4) & low, 4), 128);
  store<u32>(at, pack_wide_octet((b >> 4) & low, 4), 192);
}

/** Value of column k (0 … 31) of a row of a run. */
export function iq4_value_of(run: usize, row: i32, k: i32): i32 {
  return iq4_value(unpack_wide_octet(load<u32>(run + (row << 2) + ((k >> 3) << 6)), k & 7, 4, 0));
}

/** acc + four rows' dot products of a wide octet of codes; x0 … x3 are i16, `low` is LOW_MASK, `mask` BYTE_MASK. */
export function dot_iq4(
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
  return dot_wide_bytes(acc, a, b, mask, x0, x1, x2, x3);
}

/** An octet of codes to an i16 tile, times `scale`; `offset` is 128 in i16 lanes. */
export function store_iq4(at: usize, v: v128, low: v128, book: v128, mask: v128, offset: v128, scale: v128): void {
  const a = look_up(book, low_nibbles(v, low));
  const b = look_up(book, high_nibbles(v, low));
  store_wide_octet(at, a, b, mask, offset, scale);
}
