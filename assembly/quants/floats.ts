/**
 * F32, F16 and BF16: a group is [width columns][16 rows] of the same type; natively, rows one after the other. Results
 * are f32 sums in ascending order of columns, one accumulator a row, in decode and prefill alike.
 */

import { f32_from_f16, f32x4_load_f16 } from '../simd/half';
import { held } from '../simd/octets';
import { store_results, TILE_HALF } from '../simd/tile';
import { BF16, F16, F32 } from './ids';

export function bytes_of(type: i32): usize {
  return type == F32 ? 4 : 2;
}

export function repack(type: i32, group: usize, native: usize, row: i32, width: i32): void {
  if (type == F32) {
    for (let k = 0; k < width; k++)
      store<u32>(group + ((<usize>k) << 6) + (row << 2), load<u32>(native + ((<usize>k) << 2)));
  } else {
    for (let k = 0; k < width; k++)
      store<u16>(group + ((<usize>k) << 5) + (row << 1), load<u16>(native + ((<usize>k) << 1)));
  }
}

function value(type: i32, at: usize): f32 {
  if (type == F32) return load<f32>(at);
  if (type == F16) return f32_from_f16(load<u16>(at));
  return reinterpret<f32>((<u32>load<u16>(at)) << 16);
}

export function dequantize(type: i32, out: usize, group: usize, row: i32, width: i32): void {
  const bytes = bytes_of(type);
  for (let k = 0; k < width; k++) {
    store<f32>(out + ((<usize>k) << 2), value(type, group + (((<usize>k) << 4) + row) * bytes));
  }
}

export function dequantize_native(type: i32, out: usize, native: usize, width: i32): void {
  const bytes = bytes_of(type);
  for (let k = 0; k < width; k++) store<f32>(out + ((<usize>k) << 2), value(type, native + <usize>k * bytes));
}

export function decode_f32(scratch: usize, group: usize, x: usize, width: i32): void {
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
  store_results(scratch, y0, y1, y2, y3);
}

/**
 * Normal weights only need another bias of the exponent. Sixteen with zeros, subnormal or infinite ones among them take
 * the long way, so that rare subnormal operands, which many processors multiply slowly, cost only where they are.
 */
export function decode_f16(scratch: usize, group: usize, x: usize, width: i32): void {
  const half = scratch + TILE_HALF;
  const one = held(scratch, 0x04000400);
  const exponent = held(scratch, 0x78007800);
  const keep = held(scratch, 0x8fffe000);
  const bias = held(scratch, 0x38000000);
  const zero = i16x8.splat(0);
  let y0 = f32x4.splat(0);
  let y1 = f32x4.splat(0);
  let y2 = f32x4.splat(0);
  let y3 = f32x4.splat(0);
  for (let k = 0; k < width; k++) {
    const a = v128.load(group);
    const b = v128.load(group, 16);
    const splat = v128.load32_splat(x);
    const odd = v128.or(
      i16x8.eq(v128.and(i16x8.add(a, one), exponent), zero),
      i16x8.eq(v128.and(i16x8.add(b, one), exponent), zero),
    );
    if (v128.any_true(odd)) {
      y0 = f32x4.add(y0, f32x4.mul(f32x4_load_f16(group, half), splat));
      y1 = f32x4.add(y1, f32x4.mul(f32x4_load_f16(group + 8, half), splat));
      y2 = f32x4.add(y2, f32x4.mul(f32x4_load_f16(group + 16, half), splat));
      y3 = f32x4.add(y3, f32x4.mul(f32x4_load_f16(group + 24, half), splat));
    } else {
      y0 = f32x4.add(y0, f32x4.mul(normal(i32x4.extend_low_i16x8_s(a), keep, bias), splat));
      y1 = f32x4.add(y1, f32x4.mul(normal(i32x4.extend_high_i16x8_s(a), keep, bias), splat));
      y2 = f32x4.add(y2, f32x4.mul(normal(i32x4.extend_low_i16x8_s(b), keep, bias), splat));
      y3 = f32x4.add(y3, f32x4.mul(normal(i32x4.extend_high_i16x8_s(b), keep, bias), splat));
    }
    group += 32;
    x += 4;
  }
  store_results(scratch, y0, y1, y2, y3);
}

/** Normal, sign-extended binary16 to f32x4. */
function normal(h: v128, keep: v128, bias: v128): v128 {
  return i32x4.add(v128.and(i32x4.shl(h, 13), keep), bias);
}

/** Four bfloat16 to f32x4. */
function wide(at: usize): v128 {
  return i32x4.shl(v128.load16x4_u(at), 16);
}

export function decode_bf16(scratch: usize, group: usize, x: usize, width: i32): void {
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
  store_results(scratch, y0, y1, y2, y3);
}

/** `columns` columns of F16 or BF16 to an f32 tile. */
export function unpack(type: i32, tile: usize, group: usize, columns: i32): void {
  for (let i = 0; i < columns << 2; i++) {
    const from = group + (i << 3);
    v128.store(tile + (i << 4), type == BF16 ? wide(from) : f32x4_load_f16(from, tile + TILE_HALF));
  }
}
