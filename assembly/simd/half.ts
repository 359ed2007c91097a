/**
 * 16-bit floats. Vectors carry four of them in i32 lanes.
 *
 * {@link f32x4_load_f16} takes its constants from memory: V8 builds a vector constant out of four instructions wherever
 * it stands, also in the innermost loop, while a load is one.
 */

/** Bytes of the constants of {@link f32x4_load_f16}. */
export const HALF_CONSTANTS: usize = 64;

export function store_half_constants(at: usize): void {
  v128.store(at, i32x4.splat(0x8fffe000));
  v128.store(at, f32x4.splat(reinterpret<f32>(0x77800000)), 16);
  v128.store(at, f32x4.splat(65536), 32);
  v128.store(at, i32x4.splat(0x7f800000), 48);
}

/** The four binary16 at `from` to f32x4: exact, subnormal, infinite and NaN included. */
export function f32x4_load_f16(from: usize, constants: usize): v128 {
  // With sign, exponent and mantissa at their places of binary32, this is the value times 2^-112.
  const small = v128.and(i32x4.shl(v128.load16x4_s(from), 13), v128.load(constants));
  const value = f32x4.mul(small, v128.load(constants, 16));
  const special = v128.and(f32x4.ge(f32x4.abs(value), v128.load(constants, 32)), v128.load(constants, 48));
  return v128.or(value, special);
}

/** The same of four binary16 in i32 lanes, where a few more instructions do not matter. */
export function f32x4_from_f16(h: v128): v128 {
  const magnitude = i32x4.shl(v128.and(h, i32x4.splat(0x7fff)), 13);
  const scaled = f32x4.mul(magnitude, f32x4.splat(reinterpret<f32>(0x77800000)));
  const special = v128.and(i32x4.gt_s(magnitude, i32x4.splat(0x0f7fffff)), i32x4.splat(0x7f800000));
  const sign = i32x4.shl(v128.and(h, i32x4.splat(0x8000)), 16);
  return v128.or(v128.or(scaled, special), sign);
}

/** One binary16 to f32, the plain way. */
export function f32_from_f16(h: u32): f32 {
  const exponent = (h >> 10) & 31;
  const mantissa = h & 0x3ff;
  let magnitude: f32;
  if (exponent == 0) magnitude = <f32>mantissa * reinterpret<f32>(0x33800000);
  else if (exponent == 31) magnitude = reinterpret<f32>(0x7f800000 | (mantissa << 13));
  else magnitude = reinterpret<f32>(((exponent + 112) << 23) | (mantissa << 13));
  return copysign<f32>(magnitude, reinterpret<f32>((h & 0x8000) << 16));
}

/** f32x4 rounded to values of binary16, to nearest, ties to even; from 65520 on infinite. */
export function round_f16(x: v128): v128 {
  const magnitude = v128.and(x, i32x4.splat(0x7fffffff));
  const odd = v128.and(i32x4.shr_u(magnitude, 13), i32x4.splat(1));
  const rounded = v128.and(i32x4.add(i32x4.add(magnitude, i32x4.splat(0xfff)), odd), i32x4.splat(~0x1fff));
  const normal = v128.bitselect(i32x4.splat(0x7f800000), rounded, i32x4.gt_s(rounded, i32x4.splat(0x477fffff)));
  // Below 2^-14 the spacing of binary16 is 2^-24, that of f32 between 0.5 and 1.
  const half = f32x4.splat(0.5);
  const small = f32x4.sub(f32x4.add(magnitude, half), half);
  const finite = v128.bitselect(small, normal, i32x4.lt_s(magnitude, i32x4.splat(0x38800000)));
  const signed = v128.or(finite, v128.and(x, i32x4.splat(0x80000000)));
  return v128.bitselect(signed, x, f32x4.eq(x, x));
}

/** f32x4 rounded to values of bfloat16, to nearest, ties to even; NaN stays NaN. */
export function round_bf16(x: v128): v128 {
  const odd = v128.and(i32x4.shr_u(x, 16), i32x4.splat(1));
  const upper = i32x4.splat(0xffff0000);
  const rounded = v128.and(i32x4.add(i32x4.add(x, i32x4.splat(0x7fff)), odd), upper);
  const nan = v128.or(v128.and(x, upper), i32x4.splat(0x00400000));
  return v128.bitselect(rounded, nan, f32x4.eq(x, x));
}
