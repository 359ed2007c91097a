/** Products of activations with weight matrices, and rows of the embedding matrix. */

import { GROUP_ROWS, Q4_0, Q4_K, Q8_0 } from '../quants/ids';
import { dequantize } from '../quants/load';
import { decode_group, tile_segment } from '../quants/products';
import { activation_format, group_bytes, takes_stairs } from '../quants/types';
import { row_stride, SEGMENT, segment_stride, stair_bytes, stairs_offset } from '../simd/activations';
import { store_half_constants } from '../simd/half';
import { TILE_HALF, TILE_RESULTS, TILE_TOKENS, TOKENS } from '../simd/tile';

/**
 * From this many tokens on, unpacking a tile of weights pays; measured by bench/kernels.ts. Products of one token with
 * packed weights are so quick for some types that only many tokens do it.
 */
function tile_from(type: i32): i32 {
  if (ASC_FEATURE_RELAXED_SIMD) return type == Q4_K ? 12 : type == Q8_0 ? 8 : 4;
  if (type == Q4_K) return 64;
  return type == Q4_0 ? 16 : type == Q8_0 ? 8 : 4;
}

/**
 * Products of one group of 16 weight rows (`live` of them real) with the activation rows of `list`: pairs of i32,
 * (row of x, row of dst). `dst` points at the group's first column of row 0; `dstStride` is in floats.
 */
export function mul_group(
  scratch: usize,
  type: i32,
  dst: usize,
  dstStride: i32,
  group: usize,
  width: i32,
  live: i32,
  x: usize,
  xRows: i32,
  list: usize,
  count: i32,
): void {
  const format = activation_format(type);
  const rowBytes = row_stride(format, width);
  const step = segment_stride(format, xRows);
  const results = scratch + TILE_RESULTS;
  store_half_constants(scratch + TILE_HALF);
  // Tiles take tokens by fours; a single one that is left over is quicker alone.
  const tiled = count < tile_from(type) ? 0 : (count & 3) == 1 ? count - 1 : count;
  const segments = (width + SEGMENT - 1) / SEGMENT;
  for (let first = 0; first < tiled; first += TOKENS) {
    const tokens = min(TOKENS, tiled - first);
    const pairs = list + ((<usize>first) << 3);
    for (let i = 0; i < tokens; i++) {
      store<u32>(scratch + (i << 2), x + <usize>load<u32>(pairs + (i << 3)) * rowBytes, TILE_TOKENS);
    }
    memory.fill(results, 0, ((tokens + 3) & ~3) << 6);
    for (let segment = 0; segment < segments; segment++) {
      tile_segment(type, scratch, group, segment, step, min(SEGMENT, width - segment * SEGMENT), tokens);
    }
    for (let i = 0; i < tokens; i++) {
      const row = <usize>load<u32>(pairs + (i << 3), 4);
      copy_results(dst + ((row * <usize>dstStride) << 2), results + (i << 6), live);
    }
  }
  const stairs = takes_stairs(type);
  const single = stairs ? x + stairs_offset(format, width, xRows) : x;
  const singleBytes = stairs ? stair_bytes(format) : rowBytes;
  const singleStep = stairs ? stair_bytes(format) * <usize>xRows : step;
  for (let i = tiled; i < count; i++) {
    const pair = list + ((<usize>i) << 3);
    decode_group(type, scratch, group, single + <usize>load<u32>(pair) * singleBytes, singleStep, width);
    copy_results(dst + ((<usize>load<u32>(pair, 4) * <usize>dstStride) << 2), results, live);
  }
}

function copy_results(dst: usize, results: usize, live: i32): void {
  if (live == GROUP_ROWS) {
    v128.store(dst, v128.load(results));
    v128.store(dst, v128.load(results, 16), 16);
    v128.store(dst, v128.load(results, 32), 32);
    v128.store(dst, v128.load(results, 48), 48);
  } else {
    for (let r = 0; r < live; r++) store<f32>(dst + (r << 2), load<f32>(results + (r << 2)));
  }
}

/**
 * dst[dstRow · dstStride + r] = weights row r · x row xRow for the `count` pairs (xRow, dstRow) of `list`, r < rows.
 * `x` holds xRows rows in the format of the type. Item: a group of 16 weight rows.
 */
export function mul_mat(
  start: i32,
  end: i32,
  scratch: usize,
  type: i32,
  dst: usize,
  dstStride: i32,
  weights: usize,
  width: i32,
  rows: i32,
  x: usize,
  xRows: i32,
  list: usize,
  count: i32,
): void {
  const bytes: usize = group_bytes(type, width);
  for (let g = start; g < end; g++) {
    const row = g * GROUP_ROWS;
    const live = min(GROUP_ROWS, rows - row);
    mul_group(
      scratch,
      type,
      dst + ((<usize>row) << 2),
      dstStride,
      weights + <usize>g * bytes,
      width,
      live,
      x,
      xRows,
      list,
      count,
    );
  }
}

/** Row i of dst becomes row tokens[i] of the matrix, as f32. Item: a row of dst. */
export function embed(
  start: i32,
  end: i32,
  scratch: usize,
  type: i32,
  dst: usize,
  weights: usize,
  width: i32,
  tokens: usize,
): void {
  const bytes: usize = group_bytes(type, width);
  for (let i = start; i < end; i++) {
    const token = load<u32>(tokens + ((<usize>i) << 2));
    const group = weights + <usize>(token / GROUP_ROWS) * bytes;
    dequantize(type, dst + ((<usize>i * <usize>width) << 2), group, token % GROUP_ROWS, width);
  }
}
