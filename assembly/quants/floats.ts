/**
 * F32, F16 and BF16: a group is [width columns][16 rows] of the same type; natively, rows one after the other. Results
 * are f32 sums in ascending order of columns, one accumulator a row, in decode and prefill alike.
 */

import { f32_from_f16, f32x4_from_f16 } from '../simd/half';
import { BF16, F16, F32 } from './ids';

export function bytes_of(type: i32): usize {
  return type == F32 ? 4 : 2;
}

export function repack(type: i32, group: usize, native: usize, row: i32, width: i32): void {
  if (type == F32) {
    for (let k = 0; k < width; k++) store<u32>(group + (<usize>k << 6) + (row << 2), load<u32>(native + (<usize>k << 2)));
  } else {
    for (let k = 0; k < width; k++) store<u16>(group + (<usize>k << 5) + (row << 1), load<u16>(native + (<usize>k << 1)));
  }
}

function value(type: i32, at: usize): f32 {
  if (type == F32) return load<f32>(at);
  if (type == F16) return f32_from_f16(load<u16>(at));
  return reinterpret<f32>(<u32>load<u16>(at) << 16);
}

export function dequantize(type: i32, out: usize, group: usize, row: i32, width: i32): void {
  const bytes = bytes_of(type);
  for (let k = 0; k < width; k++) {
    store<f32>(out + (<usize>k << 2), value(type, group + ((<usize>k << 4) + row) * bytes));
  }
}

export function dequantize_native(type: i32, out: usize, native: usize, width: i32): void {
  const bytes = bytes_of(type);
  for (let k = 0; k < width; k++) store<f32>(out + (<usize>k << 2), value(type, native + <usize>k * bytes));
}

export function decode_f32(out: usize, group: usize, x: usize, width: i32): void {
  let y0 = f32x4.splat(0);
  let y1 = f32x4.splat(0);
  let y2 = f32x4.splat(0);
  let y3 = f32x4.splat(0);
  for (let k = 0; k < width; k++) {
    const splat = v128.load32_splat(x);
    y0 = f32x4.add(y0, f32x4.mul(v128.load(group), splat));
    y1 = f32x4.add(y1, f32x4.mul(v128.load(group, 16), splat));
    y2 = f32x4.add(y2, f32x4.mul(v128.load(group, 32), splat));
    y3 = f32x4.add(y3, f32x4.mul(v128.load(group, 48), splat));
    group += 64;
    x += 4;
  }
  v128.store(out, y0);
  v128.store(out, y1, 16);
  v128.store(out, y2, 32);
  v128.store(out, y3, 48);
}

export function decode_f16(out: usize, group: usize, x: usize, width: i32): void {
  let y0 = f32x4.splat(0);
  let y1 = f32x4.splat(0);
  let y2 = f32x4.splat(0);
  let y3 = f32x4.splat(0);
  for (let k = 0; k < width; k++) {
    const splat = v128.load32_splat(x);
    y0 = f32x4.add(y0, f32x4.mul(f32x4_from_f16(v128.load16x4_u(group)), splat));
    y1 = f32x4.add(y1, f32x4.mul(f32x4_from_f16(v128.load16x4_u(group, 8)), splat));
    y2 = f32x4.add(y2, f32x4.mul(f32x4_from_f16(v128.load16x4_u(group, 16)), splat));
    y3 = f32x4.add(y3, f32x4.mul(f32x4_from_f16(v128.load16x4_u(group, 24)), splat));
    group += 32;
    x += 4;
  }
  v128.store(out, y0);
  v128.store(out, y1, 16);
  v128.store(out, y2, 32);
  v128.store(out, y3, 48);
}

/** Four bfloat16 to f32x4. */
function wide(at: usize): v128 {
  return i32x4.shl(v128.load16x4_u(at), 16);
}

export function decode_bf16(out: usize, group: usize, x: usize, width: i32): void {
  let y0 = f32x4.splat(0);
  let y1 = f32x4.splat(0);
  let y2 = f32x4.splat(0);
  let y3 = f32x4.splat(0);
  for (let k = 0; k < width; k++) {
    const splat = v128.load32_splat(x);
    y0 = f32x4.add(y0, f32x4.mul(wide(group), splat));
    y1 = f32x4.add(y1, f32x4.mul(wide(group + 8), splat));
    y2 = f32x4.add(y2, f32x4.mul(wide(group + 16), splat));
    y3 = f32x4.add(y3, f32x4.mul(wide(group + 24), splat));
    group += 32;
    x += 4;
  }
  v128.store(out, y0);
  v128.store(out, y1, 16);
  v128.store(out, y2, 32);
  v128.store(out, y3, 48);
}

/** `columns` columns of F16 or BF16 to an f32 tile. */
export function unpack(type: i32, tile: usize, group: usize, columns: i32): void {
  for (let i = 0; i < columns << 2; i++) {
    const from = group + (i << 3);
    v128.store(tile + (i << 4), type == BF16 ? wide(from) : f32x4_from_f16(v128.load16x4_u(from)));
  }
}
