/**
 * What a product is, exactly, so that it comes out bit by bit the same from every kernel, build and division of work.
 * Integer sums are exact; f32 enters once a block, blocks in ascending order of columns, each operation rounded:
 *
 *   with d only (32)          y ← y + (f32(S) · d) · dx                    S = Σ q x, q signed
 *   Q4_1, Q5_1 (32)           y ← y + (f32(S) · d + f32(X) · m) · dx       X = Σ x
 *   with d only (256)         y ← y + (f32(S) · d) · dx                    S = Σ_j sc_j Σ q x, q signed
 *   Q2_K, Q4_K, Q5_K (256)    y ← y + (f32(S) · d − f32(M) · dmin) · dx    S as before, M = Σ_j m_j Σ x
 *   F32, F16, BF16 (1)        y ← y + w · x
 *
 * Blocks of 64 or 128 columns count as blocks of 32 with the same d, since activations have a scale for each 32.
 */

export function add_scaled(y: v128, s: v128, d: v128, dx: v128): v128 {
  return f32x4.add(y, f32x4.mul(f32x4.mul(f32x4.convert_i32x4_s(s), d), dx));
}

export function add_scaled_less_minimum(y: v128, s: v128, d: v128, m: v128, dmin: v128, dx: v128): v128 {
  const value = f32x4.sub(f32x4.mul(f32x4.convert_i32x4_s(s), d), f32x4.mul(f32x4.convert_i32x4_s(m), dmin));
  return f32x4.add(y, f32x4.mul(value, dx));
}

/** `offsets` is −8 · Σ x (RECORD_OFFSETS): an eighth of it is Σ x exactly. */
export function add_scaled_plus_minimum(y: v128, s: v128, d: v128, offsets: v128, m: v128, dx: v128): v128 {
  const sums = f32x4.mul(f32x4.convert_i32x4_s(offsets), f32x4.splat(-0.125));
  const value = f32x4.add(f32x4.mul(f32x4.convert_i32x4_s(s), d), f32x4.mul(sums, m));
  return f32x4.add(y, f32x4.mul(value, dx));
}
