/**
 * The prefill path: 16 rows × 256 columns of weights are unpacked once into the worker's scratch, then used for many
 * tokens, four tokens × eight rows at a time, and summed up in a tile of results.
 *
 *   TILE          weights: i16 [128 pairs of columns][16 rows][2], or
 *                          unsigned 7 bits [64 quads][16 rows][4] (relaxed), or f32 [256][16 rows]
 *   TILE_D        f32 [8 blocks][16 rows]   scales; one block for K-quants
 *   TILE_DMIN     f32 [16 rows]
 *   TILE_PAIRS    i16 [8 pairs][16 rows][2] minima (or scales) in pairs of sub-blocks
 *   TILE_SCALES   i32 [16 sub-blocks][16 rows], where they are not folded into the weights
 *   TILE_TOKENS   u32 [TOKENS]              address of each token's activations
 *   TILE_RESULTS  f32 [TOKENS][16 rows]
 *   TILE_HALF     constants of half.ts
 */

import { add_scaled, add_scaled_less_minimum } from './accumulate';
import { RECORD_OFFSETS, RECORD_SCALES, RECORD_SUMS16, RECORD_SUMS32, RECORD_WIDE } from './activations';
import { HALF_CONSTANTS } from './half';

/** Most tokens that one unpacked tile is used for. */
export const TOKENS: i32 = 128;

export const TILE_D: usize = 16384;
export const TILE_DMIN: usize = TILE_D + 512;
export const TILE_PAIRS: usize = TILE_DMIN + 64;
export const TILE_SCALES: usize = TILE_PAIRS + 512;
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
function token(scratch: usize, t: i32, count: i32): usize {
  return load<u32>(scratch + (<usize>min(t, count - 1) << 2), TILE_TOKENS);
}

/**
 * i16 weights, scales of sub-blocks folded in. A segment is `blocks` blocks of `pairs` pairs of columns.
 * `segment` is the distance of the segment's records from those of the first one.
 */
export function tile_i16(scratch: usize, count: i32, segment: usize, blocks: i32, pairs: i32, minima: bool): void {
  for (let t = 0; t < count; t += 4) {
    const r0 = token(scratch, t, count) + segment;
    const r1 = token(scratch, t + 1, count) + segment;
    const r2 = token(scratch, t + 2, count) + segment;
    const r3 = token(scratch, t + 3, count) + segment;
    for (let half: usize = 0; half < 64; half += 32) {
      const tile = scratch + half;
      const results = scratch + (t << 6) + half;
      let w = tile;
      let x0 = r0 + RECORD_WIDE;
      let x1 = r1 + RECORD_WIDE;
      let x2 = r2 + RECORD_WIDE;
      let x3 = r3 + RECORD_WIDE;
      for (let block = 0; block < blocks; block++) {
        let a0 = i32x4.splat(0);
        let b0 = i32x4.splat(0);
        let a1 = i32x4.splat(0);
        let b1 = i32x4.splat(0);
        let a2 = i32x4.splat(0);
        let b2 = i32x4.splat(0);
        let a3 = i32x4.splat(0);
        let b3 = i32x4.splat(0);
        for (let p = 0; p < pairs; p += 2) {
          let wa = v128.load(w);
          let wb = v128.load(w, 16);
          let x = v128.load32_splat(x0);
          a0 = i32x4.add(a0, i32x4.dot_i16x8_s(wa, x));
          b0 = i32x4.add(b0, i32x4.dot_i16x8_s(wb, x));
          x = v128.load32_splat(x1);
          a1 = i32x4.add(a1, i32x4.dot_i16x8_s(wa, x));
          b1 = i32x4.add(b1, i32x4.dot_i16x8_s(wb, x));
          x = v128.load32_splat(x2);
          a2 = i32x4.add(a2, i32x4.dot_i16x8_s(wa, x));
          b2 = i32x4.add(b2, i32x4.dot_i16x8_s(wb, x));
          x = v128.load32_splat(x3);
          a3 = i32x4.add(a3, i32x4.dot_i16x8_s(wa, x));
          b3 = i32x4.add(b3, i32x4.dot_i16x8_s(wb, x));
          wa = v128.load(w, 64);
          wb = v128.load(w, 80);
          x = v128.load32_splat(x0, 4);
          a0 = i32x4.add(a0, i32x4.dot_i16x8_s(wa, x));
          b0 = i32x4.add(b0, i32x4.dot_i16x8_s(wb, x));
          x = v128.load32_splat(x1, 4);
          a1 = i32x4.add(a1, i32x4.dot_i16x8_s(wa, x));
          b1 = i32x4.add(b1, i32x4.dot_i16x8_s(wb, x));
          x = v128.load32_splat(x2, 4);
          a2 = i32x4.add(a2, i32x4.dot_i16x8_s(wa, x));
          b2 = i32x4.add(b2, i32x4.dot_i16x8_s(wb, x));
          x = v128.load32_splat(x3, 4);
          a3 = i32x4.add(a3, i32x4.dot_i16x8_s(wa, x));
          b3 = i32x4.add(b3, i32x4.dot_i16x8_s(wb, x));
          w += 128;
          x0 += 8;
          x1 += 8;
          x2 += 8;
          x3 += 8;
        }
        if (minima) {
          finish_minima(results, tile, r0, a0, b0);
          finish_minima(results + 64, tile, r1, a1, b1);
          finish_minima(results + 128, tile, r2, a2, b2);
          finish_minima(results + 192, tile, r3, a3, b3);
        } else {
          const scales = tile + (block << 6);
          const dx = block << 2;
          finish(results, scales, r0 + dx, a0, b0);
          finish(results + 64, scales, r1 + dx, a1, b1);
          finish(results + 128, scales, r2 + dx, a2, b2);
          finish(results + 192, scales, r3 + dx, a3, b3);
        }
      }
    }
  }
}

/** Adds a block's integer sums of eight rows to their results. */
function finish(results: usize, scales: usize, record: usize, a: v128, b: v128): void {
  const dx = v128.load32_splat(record, RECORD_SCALES);
  v128.store(results, add_scaled(v128.load(results, TILE_RESULTS), a, v128.load(scales, TILE_D), dx), TILE_RESULTS);
  v128.store(
    results, add_scaled(v128.load(results, TILE_RESULTS + 16), b, v128.load(scales, TILE_D + 16), dx), TILE_RESULTS + 16,
  );
}

function finish_minima(results: usize, tile: usize, record: usize, a: v128, b: v128): void {
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

/** Weights of the relaxed build: see {@link tile_u7_blocks} and {@link tile_u7_super}. */
function dot_u7(acc: v128, x: v128, w: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return i32x4.relaxed_dot_i8x16_i7x16_add_s(x, w, acc);
  return acc;
}

/** Unsigned weights in blocks of 32 columns; the records hold what the weights' offset takes away. */
export function tile_u7_blocks(scratch: usize, count: i32, segment: usize, blocks: i32): void {
  for (let t = 0; t < count; t += 4) {
    let x0 = token(scratch, t, count) + segment;
    let x1 = token(scratch, t + 1, count) + segment;
    let x2 = token(scratch, t + 2, count) + segment;
    let x3 = token(scratch, t + 3, count) + segment;
    for (let half: usize = 0; half < 64; half += 32) {
      const results = scratch + (t << 6) + half;
      for (let block = 0; block < blocks; block++) {
        const at = block << 5;
        const dx = block << 2;
        let a0 = v128.load32_splat(x0 + dx, RECORD_OFFSETS);
        let b0 = a0;
        let a1 = v128.load32_splat(x1 + dx, RECORD_OFFSETS);
        let b1 = a1;
        let a2 = v128.load32_splat(x2 + dx, RECORD_OFFSETS);
        let b2 = a2;
        let a3 = v128.load32_splat(x3 + dx, RECORD_OFFSETS);
        let b3 = a3;
        for (let k = at; k < at + 32; k += 4) {
          const w = scratch + (k << 4) + half;
          const wa = v128.load(w);
          const wb = v128.load(w, 16);
          let x = v128.load32_splat(x0 + k);
          a0 = dot_u7(a0, x, wa);
          b0 = dot_u7(b0, x, wb);
          x = v128.load32_splat(x1 + k);
          a1 = dot_u7(a1, x, wa);
          b1 = dot_u7(b1, x, wb);
          x = v128.load32_splat(x2 + k);
          a2 = dot_u7(a2, x, wa);
          b2 = dot_u7(b2, x, wb);
          x = v128.load32_splat(x3 + k);
          a3 = dot_u7(a3, x, wa);
          b3 = dot_u7(b3, x, wb);
        }
        const scales = scratch + (block << 6) + half;
        finish(results, scales, x0 + dx, a0, b0);
        finish(results + 64, scales, x1 + dx, a1, b1);
        finish(results + 128, scales, x2 + dx, a2, b2);
        finish(results + 192, scales, x3 + dx, a3, b3);
      }
    }
  }
}

/**
 * Unsigned weights of a superblock, `columns` columns in a sub-block. With `minima` the pairs are minima of sub-blocks
 * of 32, otherwise they are scales of sub-blocks of 16 whose weights have an offset of 32.
 */
export function tile_u7_super(scratch: usize, count: i32, segment: usize, columns: i32, minima: bool): void {
  for (let t = 0; t < count; t += 4) {
    const x0 = token(scratch, t, count) + segment;
    const x1 = token(scratch, t + 1, count) + segment;
    const x2 = token(scratch, t + 2, count) + segment;
    const x3 = token(scratch, t + 3, count) + segment;
    for (let half: usize = 0; half < 64; half += 32) {
      const tile = scratch + half;
      const results = scratch + (t << 6) + half;
      let scales = tile;
      let s0 = i32x4.splat(0);
      let t0 = i32x4.splat(0);
      let s1 = i32x4.splat(0);
      let t1 = i32x4.splat(0);
      let s2 = i32x4.splat(0);
      let t2 = i32x4.splat(0);
      let s3 = i32x4.splat(0);
      let t3 = i32x4.splat(0);
      for (let at = 0; at < 256; at += columns) {
        let a0 = i32x4.splat(0);
        let b0 = i32x4.splat(0);
        let a1 = i32x4.splat(0);
        let b1 = i32x4.splat(0);
        let a2 = i32x4.splat(0);
        let b2 = i32x4.splat(0);
        let a3 = i32x4.splat(0);
        let b3 = i32x4.splat(0);
        for (let k = at; k < at + columns; k += 4) {
          const w = tile + (k << 4);
          const wa = v128.load(w);
          const wb = v128.load(w, 16);
          let x = v128.load32_splat(x0 + k);
          a0 = dot_u7(a0, x, wa);
          b0 = dot_u7(b0, x, wb);
          x = v128.load32_splat(x1 + k);
          a1 = dot_u7(a1, x, wa);
          b1 = dot_u7(b1, x, wb);
          x = v128.load32_splat(x2 + k);
          a2 = dot_u7(a2, x, wa);
          b2 = dot_u7(b2, x, wb);
          x = v128.load32_splat(x3 + k);
          a3 = dot_u7(a3, x, wa);
          b3 = dot_u7(b3, x, wb);
        }
        const sa = v128.load(scales, TILE_SCALES);
        const sb = v128.load(scales, TILE_SCALES + 16);
        scales += 64;
        s0 = i32x4.add(s0, i32x4.mul(a0, sa));
        t0 = i32x4.add(t0, i32x4.mul(b0, sb));
        s1 = i32x4.add(s1, i32x4.mul(a1, sa));
        t1 = i32x4.add(t1, i32x4.mul(b1, sb));
        s2 = i32x4.add(s2, i32x4.mul(a2, sa));
        t2 = i32x4.add(t2, i32x4.mul(b2, sb));
        s3 = i32x4.add(s3, i32x4.mul(a3, sa));
        t3 = i32x4.add(t3, i32x4.mul(b3, sb));
      }
      if (minima) {
        finish_minima(results, tile, x0, s0, t0);
        finish_minima(results + 64, tile, x1, s1, t1);
        finish_minima(results + 128, tile, x2, s2, t2);
        finish_minima(results + 192, tile, x3, s3, t3);
      } else {
        finish_offset(results, tile, x0, s0, t0);
        finish_offset(results + 64, tile, x1, s1, t1);
        finish_offset(results + 128, tile, x2, s2, t2);
        finish_offset(results + 192, tile, x3, s3, t3);
      }
    }
  }
}

/** Takes away the offset of 32 of the weights of sub-blocks of 16. */
function finish_offset(results: usize, tile: usize, record: usize, a: v128, b: v128): void {
  let ma = i32x4.splat(0);
  let mb = i32x4.splat(0);
  for (let p: usize = 0; p < 8; p++) {
    const sums = v128.load32_splat(record + (p << 2), RECORD_SUMS16);
    ma = i32x4.add(ma, i32x4.dot_i16x8_s(v128.load(tile + (p << 6), TILE_PAIRS), sums));
    mb = i32x4.add(mb, i32x4.dot_i16x8_s(v128.load(tile + (p << 6), TILE_PAIRS + 16), sums));
  }
  finish(results, tile, record, i32x4.sub(a, i32x4.shl(ma, 5)), i32x4.sub(b, i32x4.shl(mb, 5)));
}

/** f32 weights at `w`, [columns][16 rows]. */
export function tile_f32(scratch: usize, w: usize, count: i32, segment: usize, columns: i32): void {
  for (let t = 0; t < count; t += 4) {
    for (let half: usize = 0; half < 64; half += 32) {
      let x0 = token(scratch, t, count) + segment;
      let x1 = token(scratch, t + 1, count) + segment;
      let x2 = token(scratch, t + 2, count) + segment;
      let x3 = token(scratch, t + 3, count) + segment;
      const results = scratch + (t << 6) + half;
      let a0 = v128.load(results, TILE_RESULTS);
      let b0 = v128.load(results, TILE_RESULTS + 16);
      let a1 = v128.load(results, TILE_RESULTS + 64);
      let b1 = v128.load(results, TILE_RESULTS + 80);
      let a2 = v128.load(results, TILE_RESULTS + 128);
      let b2 = v128.load(results, TILE_RESULTS + 144);
      let a3 = v128.load(results, TILE_RESULTS + 192);
      let b3 = v128.load(results, TILE_RESULTS + 208);
      let row = w + half;
      for (let k = 0; k < columns; k++) {
        const wa = v128.load(row);
        const wb = v128.load(row, 16);
        let x = v128.load32_splat(x0);
        a0 = f32x4.add(a0, f32x4.mul(wa, x));
        b0 = f32x4.add(b0, f32x4.mul(wb, x));
        x = v128.load32_splat(x1);
        a1 = f32x4.add(a1, f32x4.mul(wa, x));
        b1 = f32x4.add(b1, f32x4.mul(wb, x));
        x = v128.load32_splat(x2);
        a2 = f32x4.add(a2, f32x4.mul(wa, x));
        b2 = f32x4.add(b2, f32x4.mul(wb, x));
        x = v128.load32_splat(x3);
        a3 = f32x4.add(a3, f32x4.mul(wa, x));
        b3 = f32x4.add(b3, f32x4.mul(wb, x));
        row += 64;
        x0 += 4;
        x1 += 4;
        x2 += 4;
        x3 += 4;
      }
      v128.store(results, a0, TILE_RESULTS);
      v128.store(results, b0, TILE_RESULTS + 16);
      v128.store(results, a1, TILE_RESULTS + 64);
      v128.store(results, b1, TILE_RESULTS + 80);
      v128.store(results, a2, TILE_RESULTS + 128);
      v128.store(results, b2, TILE_RESULTS + 144);
      v128.store(results, a3, TILE_RESULTS + 192);
      v128.store(results, b3, TILE_RESULTS + 208);
    }
  }
}
