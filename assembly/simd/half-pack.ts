/** Runs of binary16 in memory: how the KV cache is written and read. Single vectors: half.ts. */

import { f32_from_f16 } from './half';

/** Four f32 to the bits of binary16 in i32 lanes: to nearest, ties to even; from 65520 on infinite; NaN stays NaN. */
export function f16_bits(x: v128): v128 {
  const magnitude = v128.and(x, i32x4.splat(0x7fffffff));
  const odd = v128.and(i32x4.shr_u(magnitude, 13), i32x4.splat(1));
  const rounded = i32x4.add(i32x4.add(magnitude, i32x4.splat(0xfff - (112 << 23))), odd);
  const normal = i32x4.min_s(i32x4.shr_s(rounded, 13), i32x4.splat(0x7c00));
  // Below 2^-14 the spacing of binary16 is 2^-24, that of f32 between 0.5 and 1: the sum's mantissa is the result.
  const small = i32x4.sub(f32x4.add(magnitude, f32x4.splat(0.5)), i32x4.splat(0x3f000000));
  const finite = v128.bitselect(small, normal, i32x4.lt_s(magnitude, i32x4.splat(0x38800000)));
  const number = v128.bitselect(finite, i32x4.splat(0x7e00), f32x4.eq(x, x));
  return v128.or(number, v128.and(i32x4.shr_u(x, 16), i32x4.splat(0x8000)));
}

/** `count` floats at `x` to binary16 at `dst`. */
export function pack_f16(dst: usize, x: usize, count: i32): void {
  let i = 0;
  for (; i + 8 <= count; i += 8) {
    const low = f16_bits(v128.load(x + (i << 2)));
    const high = f16_bits(v128.load(x + (i << 2), 16));
    v128.store(dst + (i << 1), i16x8.narrow_i32x4_u(low, high));
  }
  for (; i < count; i++) v128.store_lane<u16>(dst + (i << 1), f16_bits(v128.load32_zero(x + (i << 2))), 0);
}

/**
 * `count` binary16 at `x`, a multiple of 8, to floats at `dst`: exact, subnormal, infinite and NaN included. Infinite
 * values and NaN are rare: the quick way is taken first, which turns them into large numbers, and the exact one when
 * there was any.
 */
export function widen_f16(dst: usize, x: usize, count: i32): void {
  // By way of memory they are no constants to V8, which would build them anew in every round of the loop.
  v128.store(dst, i16x8.splat(<i16>0x8fff));
  v128.store(dst, f32x4.splat(reinterpret<f32>(0x77800000)), 16);
  const mask = v128.load(dst);
  const factor = v128.load(dst, 16);
  const ends = x + ((<usize>count) << 1);
  let largest = i16x8.splat(0);
  let from = x;
  let to = dst;
  // Two vectors a round: the work is so little that counting costs as much.
  for (; from + 32 <= ends; from += 32) {
    let halves = v128.load(from);
    largest = i16x8.max_u(largest, i16x8.shl(halves, 1));
    let low = i16x8.shl(halves, 13);
    let high = v128.and(i16x8.shr_s(halves, 3), mask);
    v128.store(to, lower_quick(low, high, factor));
    v128.store(to, upper_quick(low, high, factor), 16);
    halves = v128.load(from, 16);
    largest = i16x8.max_u(largest, i16x8.shl(halves, 1));
    low = i16x8.shl(halves, 13);
    high = v128.and(i16x8.shr_s(halves, 3), mask);
    v128.store(to, lower_quick(low, high, factor), 32);
    v128.store(to, upper_quick(low, high, factor), 48);
    to += 64;
  }
  if (from < ends) {
    const halves = v128.load(from);
    largest = i16x8.max_u(largest, i16x8.shl(halves, 1));
    const low = i16x8.shl(halves, 13);
    const high = v128.and(i16x8.shr_s(halves, 3), mask);
    v128.store(to, lower_quick(low, high, factor));
    v128.store(to, upper_quick(low, high, factor), 16);
  }
  if (!v128.any_true(i16x8.ge_u(largest, i16x8.splat(<i16>0xf800)))) return;
  for (let i = 0; i < count; i++) store<f32>(dst + (i << 2), f32_from_f16(load<u16>(x + (i << 1))));
}

/**
 * Four finite binary16 to f32. `low` and `high` hold the halves of binary32 with the sign, exponent and mantissa at their
 * places: the value · 2^-112.
 */
function lower_quick(low: v128, high: v128, factor: v128): v128 {
  return f32x4.mul(v128.shuffle<i16>(low, high, 0, 8, 1, 9, 2, 10, 3, 11), factor);
}

function upper_quick(low: v128, high: v128, factor: v128): v128 {
  return f32x4.mul(v128.shuffle<i16>(low, high, 4, 12, 5, 13, 6, 14, 7, 15), factor);
}
