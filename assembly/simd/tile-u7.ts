/** Tiles of unsigned 7-bit weights, in the relaxed build. */

import { RECORD_OFFSETS } from './activations';
import { TILE_SCALES, token } from './tile';
import { finish, finish_minima, finish_minimum, finish_offset } from './tile-results';

/** In place of a shift: sums of activations go with minima. */
export const WITH_MINIMUM: i32 = -1;

/** The second operand must stay within 0 … 127: beyond, engines differ. */
function dot_u7(acc: v128, x: v128, w: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return i32x4.relaxed_dot_i8x16_i7x16_add_s(x, w, acc);
  return acc;
}

/**
 * Unsigned weights in blocks of 32 columns with an offset of 8 · 2^shift, or with a minimum: then `shift` is
 * WITH_MINIMUM.
 */
export function tile_u7_blocks(scratch: usize, count: i32, segment: usize, blocks: i32, shift: i32): void {
  const minimum = shift == WITH_MINIMUM;
  // Minima take the sums by themselves: nothing is taken away here.
  const offsets = i32x4.splat(minimum ? 0 : -1);
  for (let t = 0; t < count; t += 4) {
    const x0 = token(scratch, t, count) + segment;
    const x1 = token(scratch, t + 1, count) + segment;
    const x2 = token(scratch, t + 2, count) + segment;
    const x3 = token(scratch, t + 3, count) + segment;
    for (let half: usize = 0; half < 64; half += 32) {
      const results = scratch + (t << 6) + half;
      for (let block = 0; block < blocks; block++) {
        const at = block << 5;
        const dx = block << 2;
        let a0 = v128.and(i32x4.shl(v128.load32_splat(x0 + dx, RECORD_OFFSETS), shift), offsets);
        let b0 = a0;
        let a1 = v128.and(i32x4.shl(v128.load32_splat(x1 + dx, RECORD_OFFSETS), shift), offsets);
        let b1 = a1;
        let a2 = v128.and(i32x4.shl(v128.load32_splat(x2 + dx, RECORD_OFFSETS), shift), offsets);
        let b2 = a2;
        let a3 = v128.and(i32x4.shl(v128.load32_splat(x3 + dx, RECORD_OFFSETS), shift), offsets);
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
        if (minimum) {
          finish_minimum(results, scales, x0 + dx, a0, b0);
          finish_minimum(results + 64, scales, x1 + dx, a1, b1);
          finish_minimum(results + 128, scales, x2 + dx, a2, b2);
          finish_minimum(results + 192, scales, x3 + dx, a3, b3);
          continue;
        }
        finish(results, scales, x0 + dx, a0, b0);
        finish(results + 64, scales, x1 + dx, a1, b1);
        finish(results + 128, scales, x2 + dx, a2, b2);
        finish(results + 192, scales, x3 + dx, a3, b3);
      }
    }
  }
}

/**
 * Unsigned weights of a superblock, `columns` columns in a sub-block. The pairs are minima of the sub-blocks when
 * `shift` is WITH_MINIMUM, otherwise scales of them, whose weights have an offset of 2^shift.
 */
export function tile_u7_super(scratch: usize, count: i32, segment: usize, columns: i32, shift: i32): void {
  const pairs = 128 / columns;
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
      if (shift == WITH_MINIMUM) {
        finish_minima(results, tile, x0, s0, t0, pairs);
        finish_minima(results + 64, tile, x1, s1, t1, pairs);
        finish_minima(results + 128, tile, x2, s2, t2, pairs);
        finish_minima(results + 192, tile, x3, s3, t3, pairs);
      } else {
        finish_offset(results, tile, x0, s0, t0, pairs, shift);
        finish_offset(results + 64, tile, x1, s1, t1, pairs, shift);
        finish_offset(results + 128, tile, x2, s2, t2, pairs, shift);
        finish_offset(results + 192, tile, x3, s3, t3, pairs, shift);
      }
    }
  }
}
