/** Tiles of i16 weights. */

import { RECORD_WIDE } from './activations';
import { token } from './tile';
import { finish, finish_minima, finish_minimum } from './tile-results';

/** What stands beside d: nothing; a minimum of each block of 32; minima of 8 or of 16 sub-blocks of a superblock. */
export const NO_MINIMA: i32 = 0;
export const BLOCK_MINIMUM: i32 = 1;
export const MINIMA_32: i32 = 4;
export const MINIMA_16: i32 = 8;

/**
 * i16 weights, scales of sub-blocks folded in. A segment is `blocks` blocks of `pairs` pairs of columns.
 * `segment` is the distance of the segment's records from those of the first one.
 */
export function tile_i16(scratch: usize, count: i32, segment: usize, blocks: i32, pairs: i32, minima: i32): void {
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
        if (minima >= MINIMA_32) {
          finish_minima(results, tile, r0, a0, b0, minima);
          finish_minima(results + 64, tile, r1, a1, b1, minima);
          finish_minima(results + 128, tile, r2, a2, b2, minima);
          finish_minima(results + 192, tile, r3, a3, b3, minima);
        } else {
          const scales = tile + (block << 6);
          const dx = block << 2;
          if (minima == BLOCK_MINIMUM) {
            finish_minimum(results, scales, r0 + dx, a0, b0);
            finish_minimum(results + 64, scales, r1 + dx, a1, b1);
            finish_minimum(results + 128, scales, r2 + dx, a2, b2);
            finish_minimum(results + 192, scales, r3 + dx, a3, b3);
            continue;
          }
          finish(results, scales, r0 + dx, a0, b0);
          finish(results + 64, scales, r1 + dx, a1, b1);
          finish(results + 128, scales, r2 + dx, a2, b2);
          finish(results + 192, scales, r3 + dx, a3, b3);
        }
      }
    }
  }
}
