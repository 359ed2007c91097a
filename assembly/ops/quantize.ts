/**
 * Activations to the form in which a product with quantised weights takes them, as ggml does it: `vec_dot_type` in
 * ggml-cpu.c, `quantize_row_q8_0` and `quantize_row_q8_K` in ggml-quants.c. Layout: simd/activations.ts.
 */

import {
  FORMAT_BF16,
  FORMAT_F16,
  FORMAT_F32,
  FORMAT_Q8_0,
  FORMAT_Q8_K,
  FORMAT_Q8_K_WIDE,
  RECORD_OFFSETS,
  RECORD_SCALES,
  RECORD_SUMS16,
  RECORD_SUMS32,
  RECORD_WIDE,
  row_stride,
  SEGMENT,
  segment_stride,
  stair_bytes,
  stairs_offset,
} from '../simd/activations';
import { round_bf16, round_f16 } from '../simd/half';
import { store_stairs_q8_0, store_stairs_q8_k } from '../simd/stairs';

/** Item: a segment of 256 columns (fewer at a row's end), row by row; rows · ceil(width / 256) of them. */
export function quantize(
  start: i32,
  end: i32,
  scratch: usize,
  format: i32,
  dst: usize,
  x: usize,
  width: i32,
  rows: i32,
): void {
  const segments = (width + SEGMENT - 1) / SEGMENT;
  const rowBytes = row_stride(format, width);
  const segmentBytes = segment_stride(format, rows);
  const firstStairs = dst + stairs_offset(format, width, rows);
  for (let item = start; item < end; item++) {
    const row = item / segments;
    const segment = item - row * segments;
    const columns = min(SEGMENT, width - segment * SEGMENT);
    const source = x + ((<usize>row * <usize>width + <usize>(segment * SEGMENT)) << 2);
    const target = dst + <usize>row * rowBytes + <usize>segment * segmentBytes;
    const stairs = firstStairs + <usize>(segment * rows + row) * stair_bytes(format);
    switch (format) {
      case FORMAT_F32:
        memory.copy(target, source, (<usize>columns) << 2);
        break;
      case FORMAT_F16:
      case FORMAT_BF16:
        round_columns(target, source, columns, format == FORMAT_F16);
        break;
      case FORMAT_Q8_0:
        for (let block = 0; block < columns >> 5; block++) quantize_q8_0(target, source + (block << 7), block);
        store_stairs_q8_0(stairs, target, columns >> 5);
        break;
      case FORMAT_Q8_K:
        quantize_q8_k(target, source, !ASC_FEATURE_RELAXED_SIMD);
        if (!ASC_FEATURE_RELAXED_SIMD) store_stairs_q8_k(stairs, target);
        break;
      case FORMAT_Q8_K_WIDE:
        quantize_q8_k(target, source, true);
        break;
      default:
        unreachable();
    }
  }
}

function round_columns(dst: usize, x: usize, columns: i32, half: bool): void {
  let i = 0;
  for (; i + 4 <= columns; i += 4) {
    const value = v128.load(x + (i << 2));
    v128.store(dst + (i << 2), half ? round_f16(value) : round_bf16(value));
  }
  for (; i < columns; i++) {
    const value = v128.load32_zero(x + (i << 2));
    store<f32>(dst + (i << 2), f32x4.extract_lane(half ? round_f16(value) : round_bf16(value), 0));
  }
}

/** Eight floats times `inverse`, rounded to nearest (ties to even), as i16 within ±127. */
function quants(x: usize, inverse: v128): v128 {
  const low = i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.mul(v128.load(x), inverse)));
  const high = i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.mul(v128.load(x, 16), inverse)));
  const both = i16x8.narrow_i32x4_s(low, high);
  return i16x8.max_s(i16x8.min_s(both, i16x8.splat(127)), i16x8.splat(-127));
}

function horizontal_max(v: v128): f32 {
  const pair = max<f32>(f32x4.extract_lane(v, 0), f32x4.extract_lane(v, 1));
  return max<f32>(pair, max<f32>(f32x4.extract_lane(v, 2), f32x4.extract_lane(v, 3)));
}

/** Writes 16 quants (column `at` of the record on) and gives their sum. */
function store_quants(record: usize, at: usize, a: v128, b: v128, wide: bool): i32 {
  if (ASC_FEATURE_RELAXED_SIMD) v128.store(record + at, i8x16.narrow_i16x8_s(a, b));
  if (wide) {
    v128.store(record + (at << 1), a, RECORD_WIDE);
    v128.store(record + (at << 1), b, RECORD_WIDE + 16);
  }
  const ones = i16x8.splat(1);
  const sums = i32x4.add(i32x4.dot_i16x8_s(a, ones), i32x4.dot_i16x8_s(b, ones));
  return (
    i32x4.extract_lane(sums, 0) +
    i32x4.extract_lane(sums, 1) +
    i32x4.extract_lane(sums, 2) +
    i32x4.extract_lane(sums, 3)
  );
}

/** 32 values: d = max |x| / 127, rounded to binary16 where it is kept but not where it divides. */
function quantize_q8_0(record: usize, x: usize, block: i32): void {
  let largest = f32x4.abs(v128.load(x));
  for (let i: usize = 16; i < 128; i += 16) largest = f32x4.max(largest, f32x4.abs(v128.load(x + i)));
  const amax = horizontal_max(largest);
  const inverse = f32x4.splat(amax == 0 ? 0 : <f32>127 / amax);
  const scale = round_f16(f32x4.splat(amax / <f32>127));
  store<f32>(record + (block << 2), f32x4.extract_lane(scale, 0), RECORD_SCALES);
  let sum = 0;
  for (let half: usize = 0; half < 2; half++) {
    const at = ((<usize>block) << 5) + (half << 4);
    const from = x + (half << 6);
    sum += store_quants(record, at, quants(from, inverse), quants(from + 32, inverse), true);
  }
  store<i32>(record + (block << 2), -8 * sum, RECORD_OFFSETS);
}

/**
 * 256 values: the one of largest magnitude becomes −127, d = 1 / iscale. When +a and −a are both largest, either
 * choice of sign gives the same products.
 */
function quantize_q8_k(record: usize, x: usize, wide: bool): void {
  let high = v128.load(x);
  let low = high;
  for (let i: usize = 16; i < 1024; i += 16) {
    const value = v128.load(x + i);
    high = f32x4.max(high, value);
    low = f32x4.min(low, value);
  }
  const largest = horizontal_max(high);
  const smallest = -horizontal_max(f32x4.neg(low));
  const extreme = largest >= -smallest ? largest : smallest;
  const iscale: f32 = extreme == 0 ? 0 : <f32>-127 / extreme;
  const inverse = f32x4.splat(iscale);
  store<f32>(record, extreme == 0 ? 0 : <f32>1 / iscale, RECORD_SCALES);
  for (let i: usize = 0; i < 16; i += 2) {
    const from = x + (i << 6);
    const at = i << 4;
    const first = store_quants(record, at, quants(from, inverse), quants(from + 32, inverse), wide);
    const second = store_quants(record, at + 16, quants(from + 64, inverse), quants(from + 96, inverse), wide);
    store<i16>(record + (i << 1), <i16>first, RECORD_SUMS16);
    store<i16>(record + (i << 1), <i16>second, RECORD_SUMS16 + 2);
    store<i16>(record + i, <i16>(first + second), RECORD_SUMS32);
  }
}
