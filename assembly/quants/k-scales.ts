/**
 * Scales of K-quants. Natively Q4_K and Q5_K keep eight scales and eight minima of 6 bits in 12 bytes:
 *
 *   bytes 0–3   scale 0–3, above them the two upper bits of scale 4–7
 *   bytes 4–7   minimum 0–3, above them the two upper bits of minimum 4–7
 *   bytes 8–11  low nibble: scale 4–7; high nibble: minimum 4–7
 *
 * In a group they are bytes, two sub-blocks side by side for each row, [pair][16 rows][2]: `load8x8_s` makes them i16
 * pairs of four rows, ready for a dot product with a pair of sums; one of a pair is a shift away.
 *
 * Q4_K and Q6_K have their scales row by row instead, [sub-block][16 rows] (`row_scales`): that is an instruction less
 * for each.
 *
 * The scales of a whole block, d and dmin, are f32 in a group. As f16 they are often subnormal (each d of Q6_K is, in
 * most models), and multiplying a subnormal f32 takes some 45 cycles on Zen 4; telling them apart takes 14 instructions.
 */

/** Scale of sub-block j out of the 12 packed bytes. */
export function native_scale(packed: usize, j: i32): i32 {
  if (j < 4) return load<u8>(packed + j) & 63;
  return (load<u8>(packed + j + 4) & 15) | ((load<u8>(packed + j - 4) >> 6) << 4);
}

export function native_minimum(packed: usize, j: i32): i32 {
  if (j < 4) return load<u8>(packed + j + 4) & 63;
  return (load<u8>(packed + j + 4) >> 4) | ((load<u8>(packed + j) >> 6) << 4);
}

/** Place of the scale of sub-block j and a row in [pair][16 rows][2]. */
export function scale_place(scales: usize, j: i32, row: i32): usize {
  return scales + ((j >> 1) << 5) + (row << 1) + (j & 1);
}

/** Place of the scale of sub-block j and a row where {@link row_scales} reads it. */
export function row_scale_place(scales: usize, j: i32, row: i32): usize {
  return scales + (j << 4) + row;
}

/** Scales of sub-block j of row vector v (four rows) as i32. */
export function row_scales(scales: usize, j: i32, v: usize): v128 {
  return i32x4.extend_low_i16x8_s(i16x8.extend_low_i8x16_s(v128.load32_zero(scales + (j << 4) + (v << 2))));
}

/** The same as i16, each twice: the other operand of a dot product that sums up pairs of i16. */
export function row_scale_pairs(scales: usize, j: i32, v: usize): v128 {
  const four = i16x8.extend_low_i8x16_s(v128.load32_zero(scales + (j << 4) + (v << 2)));
  return i16x8.shuffle(four, four, 0, 0, 1, 1, 2, 2, 3, 3);
}

/** Spreads the 12 packed bytes of a row over the scales and minima of its group. */
export function spread_scales(scales: usize, minima: usize, packed: usize, row: i32): void {
  for (let j = 0; j < 8; j++) {
    store<u8>(scale_place(scales, j, row), native_scale(packed, j));
    store<u8>(scale_place(minima, j, row), native_minimum(packed, j));
  }
}

/** Scales of sub-block j of four rows as i32; `scales` points at the first of the rows. */
export function scales_of(scales: usize, j: i32): v128 {
  const pair = v128.load8x8_s(scales + ((j >> 1) << 5));
  return i32x4.shr_s(i32x4.shl(pair, (~j & 1) << 4), 16);
}

/** Σ over `pairs` pairs of scales × the i16 sums of x. */
export function dot_scales(scales: usize, sums: usize, pairs: i32): v128 {
  let acc = i32x4.splat(0);
  for (let p = 0; p < pairs; p++) {
    const pair = v128.load8x8_s(scales + (p << 5));
    acc = i32x4.add(acc, i32x4.dot_i16x8_s(pair, v128.load32_splat(sums + (p << 2))));
  }
  return acc;
}

/** A vector of i32 lanes below 2^15 as i16 pairs with the value in both lanes. */
export function both_lanes(v: v128): v128 {
  return v128.or(v128.and(v, i32x4.splat(0xffff)), i32x4.shl(v, 16));
}
