/**
 * Octets: the bits of eight consecutive weights of a row in one 32-bit word, so that a vector holds four rows × 8
 * columns and the operands of a dot product come out of it with few instructions. Columns k0 … k7:
 *
 *   plain simd, 4 bits, as two i16 lanes     k0 k2 k4 k6 | k1 k3 k5 k7     (each lane from its low nibble up)
 *       shifts by 0, 4, 8, 12 give [k0 k1], [k2 k3], [k4 k5], [k6 k7]: operands of i32x4.dot_i16x8_s
 *   relaxed, 4 bits, as four bytes           k0 k4 | k1 k5 | k2 k6 | k3 k7
 *       low and high nibbles give [k0 … k3], [k4 … k7]: operands of i32x4.relaxed_dot_i8x16_i7x16_add_s
 *
 * Planes of 1 or 2 further bits have the same order with narrower fields: byte j of a word gives 1 or 2 bits to each of
 * two weights; the fields of consecutive octets follow one another from bit 0 of each byte up.
 */

/** Eight values of `bits` bits, one a byte of `values`, to their places in a word; fields begin at bit 0 of a byte. */
export function pack_octet(values: u64, bits: i32): u32 {
  if (ASC_FEATURE_RELAXED_SIMD) return <u32>values | ((<u32>(values >> 32)) << bits);
  return pack_wide_octet(values, bits);
}

/** In the plain build's order, whatever the build: for products in i16. */
export function pack_wide_octet(values: u64, bits: i32): u32 {
  // Bytes 0, 1, 4, 5 now hold k0 k2, k1 k3, k4 k6, k5 k7.
  const pairs = values | (values >> (16 - bits));
  return (
    (<u32>pairs & 0xff) |
    (<u32>(pairs >> 24) & 0xff00) |
    ((<u32>pairs & 0xff00) << 8) |
    (<u32>(pairs >> 16) & 0xff000000)
  );
}

/** Value of column k (0 … 7) out of a word; `field` counts octets of a plane. */
export function unpack_octet(word: u32, k: i32, bits: i32, field: i32): i32 {
  if (!ASC_FEATURE_RELAXED_SIMD) return unpack_wide_octet(word, k, bits, field);
  return (word >> (((k & 3) << 3) + (2 * field + (k >> 2)) * bits)) & ((1 << bits) - 1);
}

/** The same of {@link pack_wide_octet}. */
export function unpack_wide_octet(word: u32, k: i32, bits: i32, field: i32): i32 {
  const byte = ((k & 1) << 1) + (k >> 2);
  return (word >> ((byte << 3) + (2 * field + ((k >> 1) & 1)) * bits)) & ((1 << bits) - 1);
}

/**
 * A vector of equal i32 lanes that the compilers cannot see through. They would put a constant into the innermost loop,
 * and V8 builds one there out of four instructions; a value that comes from memory stays in its register. Overwrites
 * 4 bytes at `at`.
 */
export function held(at: usize, value: i32): v128 {
  store<i32>(at, value);
  return v128.load32_splat(at);
}

/** What {@link dot_nibbles} and {@link dot_bytes} take as `mask`. */
export const NIBBLE_MASK: i32 = ASC_FEATURE_RELAXED_SIMD ? 0x0f0f0f0f : 0x000f000f;
export const BYTE_MASK: i32 = 0x00ff00ff;
/** The low nibble of every byte. */
export const LOW_MASK: i32 = 0x0f0f0f0f;

/** Offsets of an octet's third and fourth pair of i16 activations; the relaxed build has only two quads to load. */
export const THIRD: usize = ASC_FEATURE_RELAXED_SIMD ? 4 : 8;
export const FOURTH: usize = ASC_FEATURE_RELAXED_SIMD ? 4 : 12;

/** acc + four rows' dot products of an octet of nibbles; in the relaxed build only the first two of x are used. */
export function dot_nibbles(acc: v128, v: v128, mask: v128, x0: v128, x1: v128, x2: v128, x3: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) {
    acc = i32x4.relaxed_dot_i8x16_i7x16_add_s(x0, v128.and(v, mask), acc);
    return i32x4.relaxed_dot_i8x16_i7x16_add_s(x1, v128.and(i16x8.shr_u(v, 4), mask), acc);
  }
  const a = i32x4.add(
    i32x4.dot_i16x8_s(v128.and(v, mask), x0),
    i32x4.dot_i16x8_s(v128.and(i16x8.shr_u(v, 4), mask), x1),
  );
  const b = i32x4.add(
    i32x4.dot_i16x8_s(v128.and(i16x8.shr_u(v, 8), mask), x2),
    i32x4.dot_i16x8_s(i16x8.shr_u(v, 12), x3),
  );
  return i32x4.add(acc, i32x4.add(a, b));
}

/** i16 a + four rows' dot products of an octet of nibbles, two pairs of columns in each i16 lane (relaxed build). */
export function dot_nibble_bytes(a: v128, v: v128, mask: v128, x0: v128, x1: v128): v128 {
  a = i16x8.add(a, i16x8.relaxed_dot_i8x16_i7x16_s(x0, v128.and(v, mask)));
  return i16x8.add(a, i16x8.relaxed_dot_i8x16_i7x16_s(x1, v128.and(i16x8.shr_u(v, 4), mask)));
}

/** The same with unsigned bytes: `a` holds what low nibbles would, `b` what high ones would. */
export function dot_bytes(acc: v128, a: v128, b: v128, mask: v128, x0: v128, x1: v128, x2: v128, x3: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) {
    acc = i32x4.relaxed_dot_i8x16_i7x16_add_s(x0, a, acc);
    return i32x4.relaxed_dot_i8x16_i7x16_add_s(x1, b, acc);
  }
  return dot_wide_bytes(acc, a, b, mask, x0, x1, x2, x3);
}

/** The same in i16, of a wide octet, whatever the build. `mask` is BYTE_MASK. */
export function dot_wide_bytes(acc: v128, a: v128, b: v128, mask: v128, x0: v128, x1: v128, x2: v128, x3: v128): v128 {
  const low = i32x4.add(i32x4.dot_i16x8_s(v128.and(a, mask), x0), i32x4.dot_i16x8_s(v128.and(b, mask), x1));
  const high = i32x4.add(i32x4.dot_i16x8_s(i16x8.shr_u(a, 8), x2), i32x4.dot_i16x8_s(i16x8.shr_u(b, 8), x3));
  return i32x4.add(acc, i32x4.add(low, high));
}

/**
 * The octet with further bits in a plane, whose fields for this octet are the lowest ones: they go above the nibbles
 * with a shift by 4, those of the second half of weights by `second`. `low` is LOW_MASK, `upper` masks the bits' place.
 */
export function dot_planes(
  acc: v128,
  v: v128,
  plane: v128,
  second: i32,
  low: v128,
  upper: v128,
  mask: v128,
  x0: v128,
  x1: v128,
  x2: v128,
  x3: v128,
): v128 {
  const a = v128.or(v128.and(v, low), v128.and(i16x8.shl(plane, 4), upper));
  const b = v128.or(v128.and(i16x8.shr_u(v, 4), low), v128.and(i16x8.shl(plane, second), upper));
  return dot_bytes(acc, a, b, mask, x0, x1, x2, x3);
}

export function low_nibbles(v: v128, mask: v128): v128 {
  return v128.and(v, mask);
}

export function high_nibbles(v: v128, mask: v128): v128 {
  return v128.and(i16x8.shr_u(v, 4), mask);
}
