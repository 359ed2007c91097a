/** How the integer sums of a block come to the results of a tile: eight rows of one token, `a` and `b` four each. */

import { add_scaled, add_scaled_less_minimum, add_scaled_plus_minimum } from './accumulate';
import { RECORD_OFFSETS, RECORD_SCALES, RECORD_SUMS16, RECORD_SUMS32 } from './activations';
import { TILE_D, TILE_DMIN, TILE_M, TILE_PAIRS, TILE_RESULTS } from './tile';

/** Adds a block's integer sums of eight rows to their results. */
export function finish(results: usize, scales: usize, record: usize, a: v128, b: v128): void {
  const dx = v128.load32_splat(record, RECORD_SCALES);
  v128.store(results, add_scaled(v128.load(results, TILE_RESULTS), a, v128.load(scales, TILE_D), dx), TILE_RESULTS);
  v128.store(
    results,
    add_scaled(v128.load(results, TILE_RESULTS + 16), b, v128.load(scales, TILE_D + 16), dx),
    TILE_RESULTS + 16,
  );
}

/** The same of blocks with a minimum. */
export function finish_minimum(results: usize, scales: usize, record: usize, a: v128, b: v128): void {
  const dx = v128.load32_splat(record, RECORD_SCALES);
  const sums = v128.load32_splat(record, RECORD_OFFSETS);
  const ya = v128.load(results, TILE_RESULTS);
  const yb = v128.load(results, TILE_RESULTS + 16);
  const za = add_scaled_plus_minimum(ya, a, v128.load(scales, TILE_D), sums, v128.load(scales, TILE_M), dx);
  const zb = add_scaled_plus_minimum(yb, b, v128.load(scales, TILE_D + 16), sums, v128.load(scales, TILE_M + 16), dx);
  v128.store(results, za, TILE_RESULTS);
  v128.store(results, zb, TILE_RESULTS + 16);
}

/** Σ of `pairs` pairs of TILE_PAIRS × sums of x: 4 pairs of sub-blocks of 32, or 8 of sub-blocks of 16. */
function dot_pairs(tile: usize, record: usize, pairs: i32): v128 {
  const sums = record + (pairs == 8 ? RECORD_SUMS16 : RECORD_SUMS32);
  let m = i32x4.splat(0);
  for (let p = 0; p < pairs; p++) {
    const pair = v128.load(tile + (p << 6), TILE_PAIRS);
    m = i32x4.add(m, i32x4.dot_i16x8_s(pair, v128.load32_splat(sums + (p << 2))));
  }
  return m;
}

/** Superblocks whose sub-blocks have minima, in `pairs` pairs. */
export function finish_minima(results: usize, tile: usize, record: usize, a: v128, b: v128, pairs: i32): void {
  const ma = dot_pairs(tile, record, pairs);
  const mb = dot_pairs(tile + 16, record, pairs);
  const dx = v128.load32_splat(record, RECORD_SCALES);
  const ya = v128.load(results, TILE_RESULTS);
  const yb = v128.load(results, TILE_RESULTS + 16);
  const za = add_scaled_less_minimum(ya, a, v128.load(tile, TILE_D), ma, v128.load(tile, TILE_DMIN), dx);
  const zb = add_scaled_less_minimum(yb, b, v128.load(tile, TILE_D + 16), mb, v128.load(tile, TILE_DMIN + 16), dx);
  v128.store(results, za, TILE_RESULTS);
  v128.store(results, zb, TILE_RESULTS + 16);
}

/** Superblocks whose weights have an offset of 2^shift, which is taken away. */
export function finish_offset(
  results: usize,
  tile: usize,
  record: usize,
  a: v128,
  b: v128,
  pairs: i32,
  shift: i32,
): void {
  const ma = dot_pairs(tile, record, pairs);
  const mb = dot_pairs(tile + 16, record, pairs);
  finish(results, tile, record, i32x4.sub(a, i32x4.shl(ma, shift)), i32x4.sub(b, i32x4.shl(mb, shift)));
}
