/**
 * The prefill path: 16 rows × 256 columns of weights are unpacked once into the worker's scratch, then used for many
 * tokens, four tokens × eight rows at a time, and summed up in a tile of results.
 *
 *   TILE          weights: i16 [128 pairs of columns][16 rows][2], or
 *                          unsigned 7 bits [64 quads][16 rows][4] (relaxed), or f32 [256][16 rows]
 *   TILE_D        f32 [8 blocks][16 rows]   scales; one block for K-quants
 *   TILE_DMIN     f32 [16 rows]
 *   TILE_PAIRS    i16 [8 pairs][16 rows][2] minima (or scales) in pairs of sub-blocks
 *   TILE_SCALES   i16 [16 sub-blocks][16 rows][2], each twice, where they are not folded into the weights
 *   TILE_M        f32 [8 blocks][16 rows]   minima of blocks of 32, in the same place
 *   TILE_TOKENS   u32 [TOKENS]              address of each token's activations
 *   TILE_RESULTS  f32 [TOKENS][16 rows]
 *   TILE_HALF     constants of half.ts
 */

import { HALF_CONSTANTS } from './half';

/** Most tokens that one unpacked tile is used for. */
export const TOKENS: i32 = 128;

export const TILE_D: usize = 16384;
export const TILE_DMIN: usize = TILE_D + 512;
export const TILE_PAIRS: usize = TILE_DMIN + 64;
export const TILE_SCALES: usize = TILE_PAIRS + 512;
export const TILE_M: usize = TILE_SCALES;
export const TILE_TOKENS: usize = TILE_SCALES + 1024;
export const TILE_RESULTS: usize = TILE_TOKENS + 512;
export const TILE_HALF: usize = TILE_RESULTS + <usize>(TOKENS * 64);
export const TILE_BYTES: i32 = <i32>(TILE_HALF + HALF_CONSTANTS);

/** Puts the results of one token times 16 rows to the first token's place. */
export function store_results(scratch: usize, y0: v128, y1: v128, y2: v128, y3: v128): void {
  v128.store(scratch, y0, TILE_RESULTS);
  v128.store(scratch, y1, TILE_RESULTS + 16);
  v128.store(scratch, y2, TILE_RESULTS + 32);
  v128.store(scratch, y3, TILE_RESULTS + 48);
}

/** Address of the activations of token t, or of the last one: groups of four are filled up with it. */
export function token(scratch: usize, t: i32, count: i32): usize {
  return load<u32>(scratch + ((<usize>min(t, count - 1)) << 2), TILE_TOKENS);
}
