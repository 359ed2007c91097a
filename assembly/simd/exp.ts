/** The exponential of four floats. */

/** Round-to-nearest by addition: its last place is 1. */
const ROUNDER: f32 = 12582912;
const LOG2_E: f32 = 1.4426950408889634;
/** ln 2 in two parts, the first short enough for exact products with the exponents that occur. */
const LN2_HIGH: f32 = 0.693145751953125;
const LN2_LOW: f32 = 1.42860682030941723212e-6;
/** Coefficients of q: a minimax fit of relative error (3.7e-9 for the whole), by iteratively reweighted least squares. */
const Q0: f32 = 0.4999999403953552;
const Q1: f32 = 0.1666652113199234;
const Q2: f32 = 4.166838899254799e-2;
const Q3: f32 = 8.36874544620514e-3;
const Q4: f32 = 1.3814540579915047e-3;
/** Beyond these the result is 0 or infinite. */
const LOWEST: f32 = -104;
const HIGHEST: f32 = 89;

/**
 * e^x within 1 ulp, subnormal results within 1 unit of their grid; e^−∞ = 0, above 88.7228 infinite, NaN stays NaN.
 *
 * x = n ln 2 + r with |r| ≤ ln 2 / 2, and e^r = 1 + r + r² q(r).
 */
export function exp4(x: v128): v128 {
  // pmin and pmax with x in front keep a NaN.
  const bounded = f32x4.pmax(f32x4.pmin(x, f32x4.splat(HIGHEST)), f32x4.splat(LOWEST));
  const rounded = f32x4.add(f32x4.mul(bounded, f32x4.splat(LOG2_E)), f32x4.splat(ROUNDER));
  const exponent = i32x4.sub(rounded, i32x4.splat(reinterpret<i32>(ROUNDER)));
  const n = f32x4.sub(rounded, f32x4.splat(ROUNDER));
  const high = f32x4.sub(bounded, f32x4.mul(n, f32x4.splat(LN2_HIGH)));
  const r = f32x4.sub(high, f32x4.mul(n, f32x4.splat(LN2_LOW)));
  let q = f32x4.add(f32x4.mul(f32x4.splat(Q4), r), f32x4.splat(Q3));
  q = f32x4.add(f32x4.mul(q, r), f32x4.splat(Q2));
  q = f32x4.add(f32x4.mul(q, r), f32x4.splat(Q1));
  q = f32x4.add(f32x4.mul(q, r), f32x4.splat(Q0));
  const power = f32x4.add(f32x4.add(f32x4.mul(f32x4.mul(r, r), q), r), f32x4.splat(1));
  // 2^n in two factors, so that results below the normal range are rounded once and those above become infinite.
  const first = i32x4.shr_s(exponent, 1);
  const second = i32x4.sub(exponent, first);
  return f32x4.mul(f32x4.mul(power, power_of_two(first)), power_of_two(second));
}

/*
 * The exponential of a soft-max: of no positive number, and as good where it counts. Its constants come from memory, since
 * V8 builds a vector constant out of four instructions wherever it stands.
 */

/** The last one whose exponential is a normal number. */
const LOWEST_NORMAL: f32 = -87.33654;

/** Constants of {@link exp4_weight}: 192 bytes. */
export function store_exp_constants(at: usize): void {
  v128.store(at, f32x4.splat(LOWEST_NORMAL));
  v128.store(at, f32x4.splat(LOG2_E), 16);
  v128.store(at, f32x4.splat(ROUNDER), 32);
  // With the bias of the exponent added.
  v128.store(at, i32x4.splat(reinterpret<i32>(ROUNDER) - 127), 48);
  v128.store(at, f32x4.splat(LN2_HIGH), 64);
  v128.store(at, f32x4.splat(LN2_LOW), 80);
  v128.store(at, f32x4.splat(Q4), 96);
  v128.store(at, f32x4.splat(Q3), 112);
  v128.store(at, f32x4.splat(Q2), 128);
  v128.store(at, f32x4.splat(Q1), 144);
  v128.store(at, f32x4.splat(Q0), 160);
  v128.store(at, f32x4.splat(1), 176);
}

/**
 * e^x for x ≤ 0 within 1 ulp; below −87.3, −∞ included, it is e^−87.3, some 1.2e-38: nothing beside the 1 of a largest
 * score, and 0 once it is rounded to binary16. NaN stays NaN.
 */
export function exp4_weight(x: v128, constants: usize): v128 {
  const bounded = f32x4.pmax(x, v128.load(constants));
  const rounded = f32x4.add(f32x4.mul(bounded, v128.load(constants, 16)), v128.load(constants, 32));
  const power = i32x4.shl(i32x4.sub(rounded, v128.load(constants, 48)), 23);
  const n = f32x4.sub(rounded, v128.load(constants, 32));
  const high = f32x4.sub(bounded, f32x4.mul(n, v128.load(constants, 64)));
  const r = f32x4.sub(high, f32x4.mul(n, v128.load(constants, 80)));
  let q = f32x4.add(f32x4.mul(v128.load(constants, 96), r), v128.load(constants, 112));
  q = f32x4.add(f32x4.mul(q, r), v128.load(constants, 128));
  q = f32x4.add(f32x4.mul(q, r), v128.load(constants, 144));
  q = f32x4.add(f32x4.mul(q, r), v128.load(constants, 160));
  const e = f32x4.add(f32x4.add(f32x4.mul(f32x4.mul(r, r), q), r), v128.load(constants, 176));
  return f32x4.mul(e, power);
}

/** {@link exp4} of one float, bit for bit. */
export function exp1(x: f32): f32 {
  return f32x4.extract_lane(exp4(f32x4.splat(x)), 0);
}

function power_of_two(exponent: v128): v128 {
  return i32x4.shl(i32x4.add(exponent, i32x4.splat(127)), 23);
}
