/** The exponential of four floats. */

/** Round-to-nearest by addition: its last place is 1. */
const ROUNDER: f32 = 12582912;
const LOG2_E: f32 = 1.4426950408889634;
/** ln 2 in two parts, the first short enough for exact products with the exponents that occur. */
const LN2_HIGH: f32 = 0.693145751953125;
const LN2_LOW: f32 = 1.42860682030941723212e-6;
/** Beyond these the result is 0 or infinite. */
const LOWEST: f32 = -104;
const HIGHEST: f32 = 89;

/**
 * e^x within 1 ulp, subnormal results within 1 unit of their grid; e^−∞ = 0, above 88.7228 infinite, NaN stays NaN.
 *
 * x = n ln 2 + r with |r| ≤ ln 2 / 2, and e^r = 1 + r + r² q(r). The coefficients of q are a minimax fit of relative
 * error (3.7e-9 for the whole), found by iteratively reweighted least squares.
 */
export function exp4(x: v128): v128 {
  // pmin and pmax with x in front keep a NaN.
  const bounded = f32x4.pmax(f32x4.pmin(x, f32x4.splat(HIGHEST)), f32x4.splat(LOWEST));
  const rounded = f32x4.add(f32x4.mul(bounded, f32x4.splat(LOG2_E)), f32x4.splat(ROUNDER));
  const exponent = i32x4.sub(rounded, i32x4.splat(reinterpret<i32>(ROUNDER)));
  const n = f32x4.sub(rounded, f32x4.splat(ROUNDER));
  const high = f32x4.sub(bounded, f32x4.mul(n, f32x4.splat(LN2_HIGH)));
  const r = f32x4.sub(high, f32x4.mul(n, f32x4.splat(LN2_LOW)));
  let q = f32x4.add(f32x4.mul(f32x4.splat(1.3814540579915047e-3), r), f32x4.splat(8.36874544620514e-3));
  q = f32x4.add(f32x4.mul(q, r), f32x4.splat(4.166838899254799e-2));
  q = f32x4.add(f32x4.mul(q, r), f32x4.splat(0.1666652113199234));
  q = f32x4.add(f32x4.mul(q, r), f32x4.splat(0.4999999403953552));
  const power = f32x4.add(f32x4.add(f32x4.mul(f32x4.mul(r, r), q), r), f32x4.splat(1));
  // 2^n in two factors, so that results below the normal range are rounded once and those above become infinite.
  const first = i32x4.shr_s(exponent, 1);
  const second = i32x4.sub(exponent, first);
  return f32x4.mul(f32x4.mul(power, power_of_two(first)), power_of_two(second));
}

/** The same of one float, bit for bit. */
export function exp1(x: f32): f32 {
  return f32x4.extract_lane(exp4(f32x4.splat(x)), 0);
}

function power_of_two(exponent: v128): v128 {
  return i32x4.shl(i32x4.add(exponent, i32x4.splat(127)), 23);
}
