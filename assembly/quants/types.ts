/**
 * The weight types: one line for each in every function. A block of a float type is a whole row.
 * Adding a type takes its file, these lines, and an activation format if it needs a new one.
 */

import { FORMAT_BF16, FORMAT_F16, FORMAT_F32, FORMAT_Q8_0, FORMAT_Q8_K, SEGMENT } from '../simd/activations';
import { tile_f32 } from '../simd/tile-f32';
import { tile_i16 } from '../simd/tile-i16';
import { tile_u7_blocks, tile_u7_super } from '../simd/tile-u7';
import * as floats from './floats';
import { BF16, F16, F32, GROUP_ROWS, Q4_0, Q4_K, Q5_K, Q6_K, Q8_0 } from './ids';
import * as q4_0 from './q4-0';
import * as q4_k from './q4-k';
import * as q5_k from './q5-k';
import * as q6_k from './q6-k';
import * as q8_0 from './q8-0';

/** The form in which a product with weights of this type takes activations (simd/activations.ts). */
export function activation_format(type: i32): i32 {
  switch (type) {
    case F32:
      return FORMAT_F32;
    case F16:
      return FORMAT_F16;
    case BF16:
      return FORMAT_BF16;
    case Q4_0:
    case Q8_0:
      return FORMAT_Q8_0;
    case Q4_K:
    case Q5_K:
    case Q6_K:
      return FORMAT_Q8_K;
    default:
      return unreachable();
  }
}

function block_columns(type: i32, width: i32): i32 {
  const format = activation_format(type);
  if (format == FORMAT_Q8_K) return 256;
  return format == FORMAT_Q8_0 ? 32 : width;
}

/** Bytes of a block of 16 rows. */
function block_bytes(type: i32, width: i32): usize {
  switch (type) {
    case Q4_0:
      return q4_0.BLOCK;
    case Q8_0:
      return q8_0.BLOCK;
    case Q4_K:
      return q4_k.BLOCK;
    case Q5_K:
      return q5_k.BLOCK;
    case Q6_K:
      return q6_k.BLOCK;
    default:
      return floats.bytes_of(type) * GROUP_ROWS * width;
  }
}

/** Bytes of a block of one row in the file. */
function native_bytes(type: i32, width: i32): usize {
  switch (type) {
    case Q4_0:
      return q4_0.NATIVE;
    case Q8_0:
      return q8_0.NATIVE;
    case Q4_K:
      return q4_k.NATIVE;
    case Q5_K:
      return q5_k.NATIVE;
    case Q6_K:
      return q6_k.NATIVE;
    default:
      return floats.bytes_of(type) * width;
  }
}

/** Bytes of a group of 16 interleaved rows, `width` columns wide (a multiple of the type's block). */
export function group_bytes(type: i32, width: i32): u32 {
  return <u32>(width / block_columns(type, width)) * <u32>block_bytes(type, width);
}

/** Up to 16 rows as they stand in the file to one group; missing rows become zero. */
export function repack(type: i32, src: usize, dst: usize, width: i32, rows: i32): void {
  if (rows < GROUP_ROWS) memory.fill(dst, 0, group_bytes(type, width));
  const blocks = width / block_columns(type, width);
  const nativeBlock = native_bytes(type, width);
  const groupBlock = block_bytes(type, width);
  for (let b = 0; b < blocks; b++) {
    for (let row = 0; row < rows; row++) {
      const native = src + <usize>(row * blocks + b) * nativeBlock;
      switch (type) {
        case Q4_0:
          q4_0.repack(dst, native, row);
          break;
        case Q8_0:
          q8_0.repack(dst, native, row);
          break;
        case Q4_K:
          q4_k.repack(dst, native, row);
          break;
        case Q5_K:
          q5_k.repack(dst, native, row);
          break;
        case Q6_K:
          q6_k.repack(dst, native, row);
          break;
        default:
          floats.repack(type, dst, native, row, width);
          break;
      }
    }
    dst += groupBlock;
  }
}

/** One row of a group to f32 [width]. */
export function dequantize(type: i32, dst: usize, group: usize, row: i32, width: i32): void {
  const columns = block_columns(type, width);
  const groupBlock = block_bytes(type, width);
  for (let column = 0; column < width; column += columns) {
    const out = dst + ((<usize>column) << 2);
    switch (type) {
      case Q4_0:
        q4_0.dequantize(out, group, row);
        break;
      case Q8_0:
        q8_0.dequantize(out, group, row);
        break;
      case Q4_K:
        q4_k.dequantize(out, group, row);
        break;
      case Q5_K:
        q5_k.dequantize(out, group, row);
        break;
      case Q6_K:
        q6_k.dequantize(out, group, row);
        break;
      default:
        floats.dequantize(type, out, group, row, width);
        break;
    }
    group += groupBlock;
  }
}

/** One row as it stands in the file to f32 [width]: the scalar twin, after `dequantize_row_*` of ggml-quants.c. */
export function dequantize_native(type: i32, dst: usize, src: usize, width: i32): void {
  const columns = block_columns(type, width);
  const nativeBlock = native_bytes(type, width);
  for (let column = 0; column < width; column += columns) {
    const out = dst + ((<usize>column) << 2);
    switch (type) {
      case Q4_0:
        q4_0.dequantize_native(out, src);
        break;
      case Q8_0:
        q8_0.dequantize_native(out, src);
        break;
      case Q4_K:
        q4_k.dequantize_native(out, src);
        break;
      case Q5_K:
        q5_k.dequantize_native(out, src);
        break;
      case Q6_K:
        q6_k.dequantize_native(out, src);
        break;
      default:
        floats.dequantize_native(type, out, src, width);
        break;
    }
    src += nativeBlock;
  }
}

/** One token times a group: 16 f32 at TILE_RESULTS. `step` is the distance of a segment of activations to the next one. */
export function decode_group(type: i32, scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  switch (type) {
    case F32:
      floats.decode_f32(scratch, group, x, width);
      break;
    case F16:
      floats.decode_f16(scratch, group, x, width);
      break;
    case BF16:
      floats.decode_bf16(scratch, group, x, width);
      break;
    case Q4_0:
      q4_0.decode(scratch, group, x, step, width);
      break;
    case Q8_0:
      q8_0.decode(scratch, group, x, step, width);
      break;
    case Q4_K:
      q4_k.decode(scratch, group, x, step, width);
      break;
    case Q5_K:
      q5_k.decode(scratch, group, x, step, width);
      break;
    case Q6_K:
      q6_k.decode(scratch, group, x, step, width);
      break;
    default:
      unreachable();
  }
}

/**
 * Adds the products of `count` tokens (TILE_TOKENS) with `columns` columns of a group, those of segment number
 * `segment`, to TILE_RESULTS.
 */
export function tile_segment(
  type: i32,
  scratch: usize,
  group: usize,
  segment: i32,
  step: usize,
  columns: i32,
  count: i32,
): void {
  const at = <usize>segment * step;
  const blocks = columns >> 5;
  switch (type) {
    case F32:
      tile_f32(scratch, group + <usize>segment * (SEGMENT << 6), count, at, columns);
      break;
    case F16:
    case BF16:
      floats.unpack(type, scratch, group + <usize>segment * (SEGMENT << 5), columns);
      tile_f32(scratch, scratch, count, at, columns);
      break;
    case Q4_0:
      q4_0.unpack(scratch, group + <usize>(segment << 3) * q4_0.BLOCK, blocks);
      if (ASC_FEATURE_RELAXED_SIMD) tile_u7_blocks(scratch, count, at, blocks);
      else tile_i16(scratch, count, at, blocks, 16, false);
      break;
    case Q8_0:
      q8_0.unpack(scratch, group + <usize>(segment << 3) * q8_0.BLOCK, blocks);
      tile_i16(scratch, count, at, blocks, 16, false);
      break;
    case Q4_K:
      q4_k.unpack(scratch, group + <usize>segment * q4_k.BLOCK);
      tile_k(scratch, count, at, true);
      break;
    case Q5_K:
      q5_k.unpack(scratch, group + <usize>segment * q5_k.BLOCK);
      tile_k(scratch, count, at, true);
      break;
    case Q6_K:
      q6_k.unpack(scratch, group + <usize>segment * q6_k.BLOCK);
      tile_k(scratch, count, at, false);
      break;
    default:
      unreachable();
  }
}

/** A tile of a K-quant: with minima in sub-blocks of 32, or with an offset of 32 in sub-blocks of 16. */
function tile_k(scratch: usize, count: i32, segment: usize, minima: bool): void {
  if (ASC_FEATURE_RELAXED_SIMD) tile_u7_super(scratch, count, segment, minima ? 32 : 16, minima);
  else tile_i16(scratch, count, segment, 1, 128, minima);
}
