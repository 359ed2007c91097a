/**
 * Sixteen values of six bits of a row in three words A, B, C, so that the operands of a dot product come out of them
 * with few instructions; four rows side by side are a vector. The words lie 64 bytes apart, 16 rows in each. Columns:
 *
 *   plain simd   two i16 lanes a word. Lane l holds columns 2 i + l, called e₀ … e₇:
 *                  A  e₀ | e₁ << 6 | low nibble of e₆ << 12      (the nibbles less 8,
 *                  B  e₂ | e₃ << 6 | high pair of e₆ << 12         the highest pair of bits less 2:
 *                       | high pair of e₇ << 14                    simd/stairs.ts multiplies them)
 *                  C  e₄ | e₅ << 6 | low nibble of e₇ << 12
 *   relaxed      four bytes a word, columns 0–3, 4–7 and 8–11; above them columns 12–15 in three parts of two bits,
 *                  the lowest in A: operands of i16x8.relaxed_dot_i8x16_i7x16_s
 */

/** Flips the signs of what the topmost fields hold. */
const TOP_NIBBLE: u32 = 0x80008000;

/** Selects six bits. */
export const SIX_MASK: i32 = ASC_FEATURE_RELAXED_SIMD ? 0x3f3f3f3f : 0x003f003f;

/** Writes one row's sixteen values, a byte each in `first` and `second`. */
export function pack_sixes(at: usize, first: u64, second: u64): void {
  if (ASC_FEATURE_RELAXED_SIMD) {
    const last = <u32>(second >> 32);
    store<u32>(at, <u32>first | ((last & 0x03030303) << 6));
    store<u32>(at, <u32>(first >> 32) | ((last & 0x0c0c0c0c) << 4), 64);
    store<u32>(at, <u32>second | ((last & 0x30303030) << 2), 128);
    return;
  }
  const e6 = pair(second, 2);
  const e7 = pair(second, 3);
  const a = pair(first, 0) | (pair(first, 1) << 6) | ((e6 & 0x000f000f) << 12);
  const b = pair(first, 2) | (pair(first, 3) << 6) | ((e6 & 0x00300030) << 8) | ((e7 & 0x00300030) << 10);
  const c = pair(second, 0) | (pair(second, 1) << 6) | ((e7 & 0x000f000f) << 12);
  store<u32>(at, a ^ TOP_NIBBLE);
  store<u32>(at, b ^ TOP_NIBBLE, 64);
  store<u32>(at, c ^ TOP_NIBBLE, 128);
}

/** Bytes 2 i and 2 i + 1 as i16 lanes of a word. */
function pair(bytes: u64, i: i32): u32 {
  const two = <u32>(bytes >> (i << 4)) & 0xffff;
  return (two & 0xff) | ((two & 0xff00) << 8);
}

/** Value of column k (0 … 15) of one row. */
export function unpack_six(at: usize, k: i32): i32 {
  const a = load<u32>(at);
  const b = load<u32>(at, 64);
  const c = load<u32>(at, 128);
  if (ASC_FEATURE_RELAXED_SIMD) {
    const byte = (k & 3) << 3;
    if (k >= 12) return ((a >> (byte + 6)) & 3) | (((b >> (byte + 6)) & 3) << 2) | (((c >> (byte + 6)) & 3) << 4);
    return ((k < 4 ? a : k < 8 ? b : c) >> byte) & 63;
  }
  const lane = (k & 1) << 4;
  const i = k >> 1;
  const top = lane + 12;
  if (i == 6) return (((a ^ TOP_NIBBLE) >> top) & 15) | (((b >> top) & 3) << 4);
  if (i == 7) return (((c ^ TOP_NIBBLE) >> top) & 15) | ((((b ^ TOP_NIBBLE) >> (top + 2)) & 3) << 4);
  return ((i < 2 ? a : i < 4 ? b : c) >> (lane + (i & 1) * 6)) & 63;
}

/** Columns 12–15 of four rows out of the words' upper bits (relaxed build). The masks are 0x03, 0x0c and 0x30 in every byte. */
export function last_six_bytes(a: v128, b: v128, c: v128, low: v128, middle: v128, high: v128): v128 {
  const first = v128.and(i16x8.shr_u(a, 6), low);
  const second = v128.and(i16x8.shr_u(b, 4), middle);
  return v128.or(v128.or(first, second), v128.and(i16x8.shr_u(c, 2), high));
}

/** Pairs e₆ of four rows out of A and B, e₇ out of C and B with `shift` 10 (plain build). */
export function last_six_pair(word: v128, b: v128, shift: i32): v128 {
  const flipped = v128.xor(word, i32x4.splat(TOP_NIBBLE));
  const upper = v128.xor(b, i32x4.splat(TOP_NIBBLE));
  return v128.or(i16x8.shr_u(flipped, 12), v128.and(i16x8.shr_u(upper, shift), i16x8.splat(0x30)));
}
