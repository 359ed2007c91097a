/**
 * Products with packed weights without taking the fields apart.
 *
 * An i16 lane holds fields from bit 0 up, the last of them signed: v = q0 + 16 q1 + 256 q2 + 4096 q3. An arithmetic shift
 * drops the lowest field and leaves all the others, so each step down the stairs is v₀ = v, v₁ = v >> 4, … with
 * vᵢ = qᵢ + 16 vᵢ₊₁, and
 *
 *     Σ qᵢ xᵢ = Σ vᵢ fᵢ    with f₀ = x₀ and fᵢ = xᵢ − 16 xᵢ₋₁
 *
 * One shift takes the place of a shift and a mask. The factors fit i16 (|x| ≤ 127); sums may wrap around on the way,
 * since what comes out fits i32. The last field is signed: it is kept less half its range, and the accumulator begins at
 * what that takes away, the *offset*.
 *
 *   nibbles    a word of a row, two lanes, holds 8 columns: lane k & 1 has columns k, k + 2, k + 4, k + 6
 *   bytes      a word of a row, two lanes, holds 4 columns: lane k & 1 has columns k and k + 2; the lower one has 128
 *              added, which makes it unsigned, the upper one is signed as it is
 *   six bits   three words of a row, as simd/sixes.ts draws them, hold 16 columns: three steps of A, four of B, three of
 *              C. The offset takes 32 away from every value too, as Q6_K has it.
 */

import {
  RECORD_OFFSETS,
  RECORD_SCALES,
  RECORD_SUMS32,
  RECORD_WIDE,
  STAIRS_BYTE_OFFSETS,
  STAIRS_BYTES,
  STAIRS_NIBBLE_OFFSETS,
  STAIRS_NIBBLES,
  STAIRS_OFFSETS,
  STAIRS_SIX_OFFSETS,
  STAIRS_SIXES,
  STAIRS_SUMS32,
} from './activations';

/** Turns the topmost nibbles of a word into themselves less 8, and back; nothing in the relaxed build. */
export const TOP_NIBBLES: u32 = ASC_FEATURE_RELAXED_SIMD ? 0 : 0x80008000;

/** Makes a stair record of a record of Q8_0 with some blocks of 32. */
export function store_stairs_q8_0(stairs: usize, record: usize, blocks: i32): void {
  const wide = record + RECORD_WIDE;
  for (let j: usize = 0; j < <usize>blocks; j++) {
    store<f32>(stairs + (j << 2), load<f32>(record + (j << 2), RECORD_SCALES));
    const top = store_nibble_factors(stairs, wide, j);
    // RECORD_OFFSETS holds −8 · Σ x, and the topmost nibbles are less 8 already.
    const offset = load<i32>(record + (j << 2), RECORD_OFFSETS);
    store<i32>(stairs + (j << 2), offset + 8 * top, STAIRS_NIBBLE_OFFSETS);
    store<i32>(stairs + (j << 2), offset, STAIRS_OFFSETS);
    store_byte_factors(stairs, wide, j);
  }
}

/** Makes a stair record of a record of Q8_K. */
export function store_stairs_q8_k(stairs: usize, record: usize): void {
  store<f32>(stairs, load<f32>(record, RECORD_SCALES));
  v128.store(stairs, v128.load(record, RECORD_SUMS32), STAIRS_SUMS32);
  for (let j: usize = 0; j < 8; j++) {
    store<i32>(stairs + (j << 2), 8 * store_nibble_factors(stairs, record, j), STAIRS_NIBBLE_OFFSETS);
  }
  for (let j: usize = 0; j < 16; j++) store_six_factors(stairs, record, j);
}

/** 32 columns: four octets of x − 16 · (x two columns before). Gives the sum of the octets' last pairs. */
function store_nibble_factors(stairs: usize, record: usize, j: usize): i32 {
  const at = j << 6;
  let top = i16x8.splat(0);
  for (let octet: usize = 0; octet < 64; octet += 16) {
    const x = v128.load(record + at + octet);
    const before = i8x16.shuffle(x, i16x8.splat(0), 16, 17, 18, 19, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    v128.store(stairs + at + octet, i16x8.sub(x, i16x8.shl(before, 4)), STAIRS_NIBBLES);
    top = i16x8.add(top, x);
  }
  const word = i32x4.extract_lane(top, 3);
  return ((word << 16) >> 16) + (word >> 16);
}

/** 32 columns: eight quads, the second pair less 256 times the first, from which 128 is to be taken. */
function store_byte_factors(stairs: usize, record: usize, j: usize): void {
  const at = j << 6;
  let first = i32x4.splat(0);
  for (let octet: usize = 0; octet < 64; octet += 16) {
    const x = v128.load(record + at + octet);
    const before = i64x2.shl(x, 32);
    v128.store(stairs + at + octet, i16x8.sub(x, i16x8.shl(before, 8)), STAIRS_BYTES);
    first = i32x4.add(first, i32x4.dot_i16x8_s(x, i16x8(-128, -128, 0, 0, -128, -128, 0, 0)));
  }
  store<i32>(stairs + (j << 2), i32x4.extract_lane(first, 0) + i32x4.extract_lane(first, 2), STAIRS_BYTE_OFFSETS);
}

/** 16 columns, as pairs P₀ … P₇: the ten factors, and what the sum begins with. */
function store_six_factors(stairs: usize, record: usize, j: usize): void {
  const a = v128.load(record + (j << 5));
  const b = v128.load(record + (j << 5), 16);
  const factors = stairs + STAIRS_SIXES + j * 40;
  const none = i16x8.splat(0);
  // P0, P1 − 64 P0, P6 − 64 P1, P2
  const first = i32x4.shuffle(a, b, 0, 1, 6, 2);
  v128.store(factors, i16x8.sub(first, i16x8.shl(i32x4.shuffle(a, none, 4, 0, 1, 4), 6)));
  // P3 − 64 P2, 16 P6 − 64 P3, 16 P7 − 64 P6, P4
  const second = i16x8.mul(i32x4.shuffle(a, b, 3, 6, 7, 4), i16x8(1, 1, 16, 16, 16, 16, 1, 1));
  const dropped = i32x4.shuffle(i32x4.shuffle(a, b, 2, 3, 6, 6), none, 0, 1, 2, 4);
  v128.store(factors, i16x8.sub(second, i16x8.shl(dropped, 6)), 16);
  // P5 − 64 P4, P7 − 64 P5
  v128.store64_lane(factors, i16x8.sub(i32x4.shuffle(b, b, 1, 3, 1, 3), i16x8.shl(b, 6)), 0, 32);
  const ones = i16x8.splat(1);
  const sums = i32x4.add(i32x4.dot_i16x8_s(a, ones), i32x4.dot_i16x8_s(b, ones));
  const sum =
    i32x4.extract_lane(sums, 0) +
    i32x4.extract_lane(sums, 1) +
    i32x4.extract_lane(sums, 2) +
    i32x4.extract_lane(sums, 3);
  const tops = i32x4.dot_i16x8_s(b, i16x8(0, 0, 0, 0, 8, 8, 40, 40));
  const top = i32x4.extract_lane(tops, 2) + i32x4.extract_lane(tops, 3);
  store<i32>(stairs + (j << 2), top - 32 * sum, STAIRS_SIX_OFFSETS);
}

/** a + four rows × 8 columns of nibbles times their factors. */
export function dot_stairs(a: v128, v: v128, f0: v128, f1: v128, f2: v128, f3: v128): v128 {
  a = i32x4.add(a, i32x4.dot_i16x8_s(v, f0));
  v = i16x8.shr_s(v, 4);
  a = i32x4.add(a, i32x4.dot_i16x8_s(v, f1));
  v = i16x8.shr_s(v, 4);
  a = i32x4.add(a, i32x4.dot_i16x8_s(v, f2));
  v = i16x8.shr_s(v, 4);
  return i32x4.add(a, i32x4.dot_i16x8_s(v, f3));
}

/** a + four rows × 4 columns of bytes times their factors. */
export function dot_byte_stairs(a: v128, v: v128, f0: v128, f1: v128): v128 {
  a = i32x4.add(a, i32x4.dot_i16x8_s(v, f0));
  return i32x4.add(a, i32x4.dot_i16x8_s(i16x8.shr_s(v, 8), f1));
}
