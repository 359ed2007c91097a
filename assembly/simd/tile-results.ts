/** How the integer sums of a block come to the results of a tile: eight rows of one token, `a` and `b` four each. */

import { add_scaled, add_scaled_less_minimum } from './accumulate';
import { RECORD_SCALES, RECORD_SUMS16, RECORD_SUMS32 } from './activations';
import { TILE_D, TILE_DMIN, TILE_PAIRS, TILE_RESULTS } from './tile';

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

export function finish_minima(results: usize, tile: usize, record: usize, a: v128, b: v128): void {
  let ma = i32x4.splat(0);
  let mb = i32x4.splat(0);
  for (let p: usize = 0; p < 4; p++) {
    const sums = v128.load32_splat(record + (p << 2), RECORD_SUMS32);
    ma = i32x4.add(ma, i32x4.dot_i16x8_s(v128.load(tile + (p << 6), TILE_PAIRS), sums));
    mb = i32x4.add(mb, i32x4.dot_i16x8_s(v128.load(tile + (p << 6), TILE_PAIRS + 16), sums));
  }
  const dx = v128.load32_splat(record, RECORD_SCALES);
  const ya = v128.load(results, TILE_RESULTS);
  const yb = v128.load(results, TILE_RESULTS + 16);
  const za = add_scaled_less_minimum(ya, a, v128.load(tile, TILE_D), ma, v128.load(tile, TILE_DMIN), dx);
  const zb = add_scaled_less_minimum(yb, b, v128.load(tile, TILE_D + 16), mb, v128.load(tile, TILE_DMIN + 16), dx);
  v128.store(results, za, TILE_RESULTS);
  v128.store(results, zb, TILE_RESULTS + 16);
}

/** Takes away the offset of 32 of the weights of sub-blocks of 16. */
export function finish_offset(results: usize, tile: usize, record: usize, a: v128, b: v128): void {
  let ma = i32x4.splat(0);
  let mb = i32x4.splat(0);
  for (let p: usize = 0; p < 8; p++) {
    const sums = v128.load32_splat(record + (p << 2), RECORD_SUMS16);
    ma = i32x4.add(ma, i32x4.dot_i16x8_s(v128.load(tile + (p << 6), TILE_PAIRS), sums));
    mb = i32x4.add(mb, i32x4.dot_i16x8_s(v128.load(tile + (p << 6), TILE_PAIRS + 16), sums));
  }
  finish(results, tile, record, i32x4.sub(a, i32x4.shl(ma, 5)), i32x4.sub(b, i32x4.shl(mb, 5)));
}
