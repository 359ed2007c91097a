/** Mixture of experts: which of them a row goes to, and how their results come together. */

import { exp1 } from '../simd/exp';

/** Most experts that `top_k` chooses from; their probabilities lie in scratch. */
export const TOP_K_EXPERTS: i32 = 1024;

/** Least divisor of the weights, the smallest normal binary16, as llama.cpp's build_moe_ffn bounds it. */
const SMALLEST_SUM: f32 = 6.103515625e-5;
/** Stands for the probability of an expert that is taken. */
const TAKEN: f32 = -1;

/**
 * Soft-max of `experts` logits and the `slots` largest of it, ties to the lower id. Row of dst: `slots` ids (i32), then
 * `slots` weights (f32), which with `normalise` are divided by their sum. Item: a row. slots ≤ experts ≤ TOP_K_EXPERTS.
 * A NaN among the logits makes all weights NaN; the ids are valid all the same.
 */
export function top_k(
  start: i32,
  end: i32,
  scratch: usize,
  dst: usize,
  logits: usize,
  experts: i32,
  slots: i32,
  normalise: i32,
): void {
  if (experts > TOP_K_EXPERTS || slots > experts) unreachable();
  for (let row = start; row < end; row++) {
    probabilities(scratch, logits + ((<usize>row * experts) << 2), experts);
    const ids = dst + ((<usize>row * slots) << 3);
    const weights = ids + ((<usize>slots) << 2);
    let sum: f64 = 0;
    for (let slot = 0; slot < slots; slot++) {
      const id = take_largest(scratch, experts);
      const weight = load<f32>(scratch + (id << 2));
      store<f32>(scratch + (id << 2), TAKEN);
      store<i32>(ids + (slot << 2), id);
      store<f32>(weights + (slot << 2), weight);
      sum += <f64>weight;
    }
    if (!normalise) continue;
    const divisor = max<f32>(<f32>sum, SMALLEST_SUM);
    for (let slot = 0; slot < slots; slot++) {
      store<f32>(weights + (slot << 2), load<f32>(weights + (slot << 2)) / divisor);
    }
  }
}

/** Soft-max of `count` logits to dst, summed in f64 in ascending order. */
function probabilities(dst: usize, logits: usize, count: i32): void {
  let largest = load<f32>(logits);
  for (let i = 1; i < count; i++) largest = max<f32>(largest, load<f32>(logits + (i << 2)));
  let sum: f64 = 0;
  for (let i = 0; i < count; i++) {
    const power = exp1(load<f32>(logits + (i << 2)) - largest);
    store<f32>(dst + (i << 2), power);
    sum += <f64>power;
  }
  const inverse = <f32>(1 / sum);
  for (let i = 0; i < count; i++) store<f32>(dst + (i << 2), load<f32>(dst + (i << 2)) * inverse);
}

/** Id of the largest probability not taken; the lowest id not taken when all are NaN. */
function take_largest(values: usize, count: i32): i32 {
  let best = -1;
  let largest: f32 = 0;
  for (let id = 0; id < count; id++) {
    const value = load<f32>(values + (id << 2));
    if (value == TAKEN || (best >= 0 && !(value > largest))) continue;
    best = id;
    largest = value;
  }
  return best;
}

/**
 * Row of dst = Σ over slots, ascending, of weight · row (row · slots + slot) of x; `routing` as `top_k` writes it.
 * Item: a row of `width` floats.
 */
export function combine(
  start: i32,
  end: i32,
  scratch: usize,
  dst: usize,
  x: usize,
  routing: usize,
  width: i32,
  slots: i32,
): void {
  const bytes = (<usize>width) << 2;
  for (let row = start; row < end; row++) {
    const weights = routing + ((<usize>row * slots) << 3) + ((<usize>slots) << 2);
    const from = x + <usize>row * slots * bytes;
    const to = dst + <usize>row * bytes;
    let at: usize = 0;
    for (; at + 16 <= bytes; at += 16) {
      let sum = f32x4.mul(v128.load(from + at), v128.load32_splat(weights));
      for (let slot = 1; slot < slots; slot++) {
        const term = f32x4.mul(v128.load(from + <usize>slot * bytes + at), v128.load32_splat(weights + (slot << 2)));
        sum = f32x4.add(sum, term);
      }
      v128.store(to + at, sum);
    }
    for (; at < bytes; at += 4) {
      let sum = load<f32>(from + at) * load<f32>(weights);
      for (let slot = 1; slot < slots; slot++) {
        sum += load<f32>(from + <usize>slot * bytes + at) * load<f32>(weights + (slot << 2));
      }
      store<f32>(to + at, sum);
    }
  }
}
