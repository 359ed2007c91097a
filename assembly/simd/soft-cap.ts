/** Soft caps (Gemma Team 2024, "Gemma 2"): cap · tanh(x / cap), which stays within ± cap. */

import { exp4 } from './exp';

/** Of four floats; tanh(y) = sign(y) · (1 − t) / (1 + t) with t = e^(−2|y|), within 1.2e-7 · cap. */
export function soft_cap4(x: v128, cap: v128): v128 {
  const y = f32x4.div(x, cap);
  const t = exp4(f32x4.mul(f32x4.abs(y), f32x4.splat(-2)));
  const one = f32x4.splat(1);
  const magnitude = f32x4.mul(cap, f32x4.div(f32x4.sub(one, t), f32x4.add(one, t)));
  const sign = v128.and(y, i32x4.splat(i32.MIN_VALUE));
  return v128.or(magnitude, sign);
}

/** In place, `count` floats, a multiple of four. */
export function soft_cap_run(x: usize, count: i32, cap: f32): void {
  const bound = f32x4.splat(cap);
  const ends = x + ((<usize>count) << 2);
  for (; x < ends; x += 16) v128.store(x, soft_cap4(v128.load(x), bound));
}
