/**
 * Codes of 1 to 4 bits as they lie in groups: 16 rows × a run of 32 columns, in octets (simd/octets.ts).
 *
 *   1 bit     64 bytes  [16 rows] u32: planes of four octets
 *   2 bits   128        two times [16 rows] u32: planes of two octets each
 *   3 bits   192        third bits [16 rows] u32: planes of four octets | the two lower bits as above
 *   4 bits   256        [4 octets][16 rows] u32
 *
 * A code is an index into a book of at most 16 values, or the value itself. Books hold unsigned bytes: a value plus the
 * type's offset, which products take away by way of the sums of activations.
 */

import { dot_bytes, high_nibbles, low_nibbles, pack_octet, unpack_octet } from '../simd/octets';

/** Four times eight codes, one a byte, to a row of a run. */
export function store_run(run: usize, row: i32, bits: i32, c0: u64, c1: u64, c2: u64, c3: u64): void {
  let at = run + (row << 2);
  if (bits == 4) {
    store<u32>(at, pack_octet(c0, 4));
    store<u32>(at, pack_octet(c1, 4), 64);
    store<u32>(at, pack_octet(c2, 4), 128);
    store<u32>(at, pack_octet(c3, 4), 192);
    return;
  }
  if (bits != 2) {
    const shift: u64 = bits == 3 ? 2 : 0;
    const one: u64 = 0x0101010101010101;
    const low = pack_octet((c0 >> shift) & one, 1) | (pack_octet((c1 >> shift) & one, 1) << 2);
    const high = pack_octet((c2 >> shift) & one, 1) | (pack_octet((c3 >> shift) & one, 1) << 2);
    store<u32>(at, low | (high << 4));
    if (bits == 1) return;
    at += 64;
  }
  const two: u64 = 0x0303030303030303;
  store<u32>(at, pack_octet(c0 & two, 2) | (pack_octet(c1 & two, 2) << 4));
  store<u32>(at, pack_octet(c2 & two, 2) | (pack_octet(c3 & two, 2) << 4), 64);
}

/** Code of column k (0 … 31) of a row of a run. */
export function code_of(run: usize, row: i32, bits: i32, k: i32): i32 {
  let at = run + (row << 2);
  const octet = k >> 3;
  if (bits == 4) return unpack_octet(load<u32>(at + (octet << 6)), k & 7, 4, 0);
  let third = 0;
  if (bits != 2) {
    third = unpack_octet(load<u32>(at), k & 7, 1, octet);
    if (bits == 1) return third;
    at += 64;
  }
  return (third << 2) | unpack_octet(load<u32>(at + ((octet >> 1) << 6)), k & 7, 2, octet & 1);
}

/** 32 bytes of codes in natural order, `shift` bits up in their bytes, under a mask. */
export function store_shifted(run: usize, row: i32, bits: i32, bytes: usize, shift: u64, mask: u64): void {
  store_run(
    run,
    row,
    bits,
    (load<u64>(bytes) >> shift) & mask,
    (load<u64>(bytes, 8) >> shift) & mask,
    (load<u64>(bytes, 16) >> shift) & mask,
    (load<u64>(bytes, 24) >> shift) & mask,
  );
}

/** Eight bits to the lowest bits of eight bytes. */
export function spread(bits: u32): u64 {
  // Two steps, so that no product runs into another one.
  const low: u64 = ((<u64>bits & 15) * 0x00204081) & 0x01010101;
  const high: u64 = (((<u64>bits >> 4) & 15) * 0x00204081) & 0x01010101;
  return low | (high << 32);
}

/** Eight pairs of bits to the lowest bits of eight bytes. */
export function spread_pairs(bits: u32): u64 {
  const low: u64 =
    <u64>(bits & 0x03) | ((<u64>(bits & 0x0c)) << 6) | ((<u64>(bits & 0x30)) << 12) | ((<u64>(bits & 0xc0)) << 18);
  const upper = bits >> 8;
  const high: u64 =
    <u64>(upper & 0x03) | ((<u64>(upper & 0x0c)) << 6) | ((<u64>(upper & 0x30)) << 12) | ((<u64>(upper & 0xc0)) << 18);
  return low | (high << 32);
}

/** Nibbles of a block of 32 whose low nibbles are columns 0–15. */
export function store_halves(run: usize, row: i32, nibbles: usize): void {
  const low: u64 = 0x0f0f0f0f0f0f0f0f;
  const a = load<u64>(nibbles);
  const b = load<u64>(nibbles, 8);
  store_run(run, row, 4, a & low, b & low, (a >> 4) & low, (b >> 4) & low);
}

/** A book in a vector; from memory, so that it stays in a register (see `held`). Overwrites 16 bytes at `at`. */
export function held_book(at: usize, low: u64, high: u64): v128 {
  store<u64>(at, low);
  store<u64>(at, high, 8);
  return v128.load(at);
}

/** Value of a code: byte `code` of a book. */
export function book_value(low: u64, high: u64, code: i32): i32 {
  return <i32>(((code < 8 ? low : high) >> <u64>((code & 7) << 3)) & 0xff);
}

/** Codes, one a byte and below 16, to values. */
export function look_up(book: v128, codes: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return i8x16.relaxed_swizzle(book, codes);
  return i8x16.swizzle(book, codes);
}

/** Masks for the codes of an octet in all bytes of a vector. */
export const ONE_MASK: i32 = 0x01010101;
export const TWO_MASK: i32 = 0x03030303;
export const THIRD_MASK: i32 = 0x04040404;

/** The first half of an octet of three-bit codes (what low nibbles would be); the planes begin at this octet. */
export function first_code_of_3(plane: v128, third: v128, two: v128, four: v128): v128 {
  return v128.or(v128.and(plane, two), v128.and(i16x8.shl(third, 2), four));
}

/** … and the second half. */
export function second_code_of_3(plane: v128, third: v128, two: v128, four: v128): v128 {
  return v128.or(v128.and(i16x8.shr_u(plane, 2), two), v128.and(i16x8.shl(third, 1), four));
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
