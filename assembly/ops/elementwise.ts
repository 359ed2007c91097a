/** Operations whose values do not meet each other. */

import { exp1, exp4 } from '../simd/exp';
import { soft_cap4 } from '../simd/soft-cap';

/** Floats of an item of `add` and `copy`. */
const SEGMENT: i32 = 1024;
const SWIGLU_SEGMENT: i32 = 256;

/** dst = a + b, `count` floats. Item: a segment of 1,024 floats, fewer at the end. dst may be a or b. */
export function add(start: i32, end: i32, scratch: usize, dst: usize, a: usize, b: usize, count: i32): void {
  const from = start * SEGMENT;
  sum(dst + (from << 2), a + (from << 2), b + (from << 2), min(end * SEGMENT, count) - from);
}

/** dst = x + bias on every row of `width` floats. Item: a row. dst may be x. */
export function add_bias(start: i32, end: i32, scratch: usize, dst: usize, x: usize, bias: usize, width: i32): void {
  const rowBytes = (<usize>width) << 2;
  for (let row = start; row < end; row++) sum(dst + <usize>row * rowBytes, x + <usize>row * rowBytes, bias, width);
}

function sum(dst: usize, a: usize, b: usize, count: i32): void {
  let i = 0;
  for (; i + 4 <= count; i += 4) {
    v128.store(dst + (i << 2), f32x4.add(v128.load(a + (i << 2)), v128.load(b + (i << 2))));
  }
  for (; i < count; i++) store<f32>(dst + (i << 2), load<f32>(a + (i << 2)) + load<f32>(b + (i << 2)));
}

/**
 * dst = silu(gate) · up, `count` floats, with silu(g) = g / (1 + e^−g) as ggml divides it. Item: a segment of 256
 * floats, fewer at the end. dst may be gate or up.
 */
export function swiglu(start: i32, end: i32, scratch: usize, dst: usize, gate: usize, up: usize, count: i32): void {
  const last = min(end * SWIGLU_SEGMENT, count);
  let i = start * SWIGLU_SEGMENT;
  for (; i + 4 <= last; i += 4) {
    v128.store(dst + (i << 2), gated(v128.load(gate + (i << 2)), v128.load(up + (i << 2))));
  }
  for (; i < last; i++) {
    const value = gated(v128.load32_zero(gate + (i << 2)), v128.load32_zero(up + (i << 2)));
    store<f32>(dst + (i << 2), f32x4.extract_lane(value, 0));
  }
}

function gated(gate: v128, up: v128): v128 {
  return f32x4.mul(f32x4.div(gate, f32x4.add(f32x4.splat(1), exp4(f32x4.neg(gate)))), up);
}

/** dst = gelu(gate) · up, with gelu(g) = g / (1 + e^(−2u)), u = √(2/π) · (g + 0.044715 g³). Items as of {@link swiglu}. */
export function geglu(start: i32, end: i32, scratch: usize, dst: usize, gate: usize, up: usize, count: i32): void {
  const last = min(end * SWIGLU_SEGMENT, count);
  let i = start * SWIGLU_SEGMENT;
  for (; i + 4 <= last; i += 4) {
    v128.store(dst + (i << 2), gelu_gated(v128.load(gate + (i << 2)), v128.load(up + (i << 2))));
  }
  for (; i < last; i++) {
    const value = gelu_gated(v128.load32_zero(gate + (i << 2)), v128.load32_zero(up + (i << 2)));
    store<f32>(dst + (i << 2), f32x4.extract_lane(value, 0));
  }
}

function gelu_gated(gate: v128, up: v128): v128 {
  const square = f32x4.mul(gate, gate);
  const inner = f32x4.add(f32x4.splat(1), f32x4.mul(f32x4.splat(0.044715), square));
  const u = f32x4.mul(f32x4.mul(f32x4.splat(-1.5957691216057308), gate), inner);
  return f32x4.mul(f32x4.div(gate, f32x4.add(f32x4.splat(1), exp4(u))), up);
}

/** dst = factor · x, `count` floats. Item: a segment of 1,024 floats, fewer at the end. */
export function scale(start: i32, end: i32, scratch: usize, dst: usize, x: usize, count: i32, factorBits: i32): void {
  const factor = reinterpret<f32>(factorBits);
  const last = min(end * SEGMENT, count);
  for (let i = start * SEGMENT; i < last; i++) store<f32>(dst + (i << 2), load<f32>(x + (i << 2)) * factor);
}

/** dst = cap · tanh(x / cap), `count` floats. Item: a segment of 1,024 floats, fewer at the end. */
export function soft_cap(start: i32, end: i32, scratch: usize, dst: usize, x: usize, count: i32, capBits: i32): void {
  const cap = f32x4.splat(reinterpret<f32>(capBits));
  const last = min(end * SEGMENT, count);
  let i = start * SEGMENT;
  for (; i + 4 <= last; i += 4) v128.store(dst + (i << 2), soft_cap4(v128.load(x + (i << 2)), cap));
  for (; i < last; i++) {
    store<f32>(dst + (i << 2), f32x4.extract_lane(soft_cap4(v128.load32_zero(x + (i << 2)), cap), 0));
  }
}

/** dst row = x row / (1 + e^(−gate[row])). Item: a row. */
export function sigmoid_gate(
  start: i32,
  end: i32,
  scratch: usize,
  dst: usize,
  x: usize,
  gate: usize,
  width: i32,
): void {
  for (let row = start; row < end; row++) {
    const factor = <f32>1 / (<f32>1 + exp1(-load<f32>(gate + (row << 2))));
    const at = <usize>row * width;
    for (let i = 0; i < width; i++) store<f32>(dst + ((at + i) << 2), load<f32>(x + ((at + i) << 2)) * factor);
  }
}

/** dst row i = x row rows[i], rows of `width` floats, `rowsPtr` an i32 each. Item: a row of dst. */
export function select_rows(
  start: i32,
  end: i32,
  scratch: usize,
  dst: usize,
  x: usize,
  width: i32,
  rowsPtr: usize,
): void {
  const rowBytes = (<usize>width) << 2;
  for (let row = start; row < end; row++) {
    memory.copy(dst + <usize>row * rowBytes, x + <usize>load<u32>(rowsPtr + (row << 2)) * rowBytes, rowBytes);
  }
}
