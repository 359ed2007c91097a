/**
 * What a product is, exactly, so that it comes out bit by bit the same from every kernel, build and division of work.
 * Integer sums are exact; f32 enters once a block, blocks in ascending order of columns, each operation rounded:
 *
 *   Q4_0, Q8_0 (32 columns)   y ← y + (f32(S) · d) · dx                    S = Σ q x, q signed
 *   Q6_K (256)                y ← y + (f32(S) · d) · dx                    S = Σ_j sc_j Σ q x, q signed
 *   Q4_K, Q5_K (256)          y ← y + (f32(S) · d − f32(M) · dmin) · dx    S as before, M = Σ_j m_j Σ x
 *   F32, F16, BF16 (1)        y ← y + w · x
 */

export function add_scaled(y: v128, s: v128, d: v128, dx: v128): v128 {
  return f32x4.add(y, f32x4.mul(f32x4.mul(f32x4.convert_i32x4_s(s), d), dx));
}

export function add_scaled_less_minimum(y: v128, s: v128, d: v128, m: v128, dmin: v128, dx: v128): v128 {
  const value = f32x4.sub(f32x4.mul(f32x4.convert_i32x4_s(s), d), f32x4.mul(f32x4.convert_i32x4_s(m), dmin));
  return f32x4.add(y, f32x4.mul(value, dx));
}
