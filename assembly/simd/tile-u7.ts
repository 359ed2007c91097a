/**
 * Tiles of unsigned 7-bit weights, in the relaxed build. A dot product of bytes sums up two products in an i16 lane, of
 * |x| ≤ 127 and weights up to some maximum; as many of them as i16 can hold, the *terms*, are added there before they
 * go on to i32, in the product with the sub-block's scale.
 */

import { RECORD_OFFSETS } from './activations';
import { TILE_SCALES, token } from './tile';
import { finish, finish_minima, finish_minimum, finish_offset } from './tile-results';

/** In place of a shift: sums of activations go with minima. */
export const WITH_MINIMUM: i32 = -1;

/** Most terms of weights up to `maximum`: 8, 4, 2 or 1. */
export function terms(maximum: i32): i32 {
  if (maximum * 254 * 8 <= 32767) return 8;
  if (maximum * 254 * 4 <= 32767) return 4;
  return maximum * 254 * 2 <= 32767 ? 2 : 1;
}

/** The second operand must stay within 0 … 127: beyond, engines differ. */
function dot_u7(x: v128, w: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return i16x8.relaxed_dot_i8x16_i7x16_s(x, w);
  return x;
}

function add_u7(sum: v128, x: v128, w: v128): v128 {
  return i16x8.add(sum, dot_u7(x, w));
}

/** sum + i16 pairs of `products` × `scale`. */
function add_pairs(sum: v128, products: v128, scale: v128): v128 {
  return i32x4.add(sum, i32x4.dot_i16x8_s(products, scale));
}

/**
 * Unsigned weights in blocks of 32 columns with an offset of 8 · 2^shift, or with a minimum: then `shift` is
 * WITH_MINIMUM. `terms` is 4 or 8.
 */
export function tile_u7_blocks(scratch: usize, count: i32, segment: usize, blocks: i32, shift: i32, terms: i32): void {
  const minimum = shift == WITH_MINIMUM;
  // Minima take the sums by themselves: nothing is taken away here.
  const offsets = i32x4.splat(minimum ? 0 : -1);
  const ones = i16x8.splat(1);
  const step = terms << 2;
  for (let t = 0; t < count; t += 4) {
    const x0 = token(scratch, t, count) + segment;
    const x1 = token(scratch, t + 1, count) + segment;
    const x2 = token(scratch, t + 2, count) + segment;
    const x3 = token(scratch, t + 3, count) + segment;
    for (let half: usize = 0; half < 64; half += 32) {
      const results = scratch + (t << 6) + half;
      for (let block = 0; block < blocks; block++) {
        const dx = block << 2;
        let s0 = v128.and(i32x4.shl(v128.load32_splat(x0 + dx, RECORD_OFFSETS), shift), offsets);
        let t0 = s0;
        let s1 = v128.and(i32x4.shl(v128.load32_splat(x1 + dx, RECORD_OFFSETS), shift), offsets);
        let t1 = s1;
        let s2 = v128.and(i32x4.shl(v128.load32_splat(x2 + dx, RECORD_OFFSETS), shift), offsets);
        let t2 = s2;
        let s3 = v128.and(i32x4.shl(v128.load32_splat(x3 + dx, RECORD_OFFSETS), shift), offsets);
        let t3 = s3;
        const end = (block << 5) + 32;
        for (let at = block << 5; at < end; at += step) {
          let w = scratch + half + (at << 4);
          let wa = v128.load(w);
          let wb = v128.load(w, 16);
          let x = v128.load32_splat(x0 + at);
          let a0 = dot_u7(x, wa);
          let b0 = dot_u7(x, wb);
          x = v128.load32_splat(x1 + at);
          let a1 = dot_u7(x, wa);
          let b1 = dot_u7(x, wb);
          x = v128.load32_splat(x2 + at);
          let a2 = dot_u7(x, wa);
          let b2 = dot_u7(x, wb);
          x = v128.load32_splat(x3 + at);
          let a3 = dot_u7(x, wa);
          let b3 = dot_u7(x, wb);
          for (let k = at + 4; k < at + step; k += 4) {
            w += 64;
            wa = v128.load(w);
            wb = v128.load(w, 16);
            x = v128.load32_splat(x0 + k);
            a0 = add_u7(a0, x, wa);
            b0 = add_u7(b0, x, wb);
            x = v128.load32_splat(x1 + k);
            a1 = add_u7(a1, x, wa);
            b1 = add_u7(b1, x, wb);
            x = v128.load32_splat(x2 + k);
            a2 = add_u7(a2, x, wa);
            b2 = add_u7(b2, x, wb);
            x = v128.load32_splat(x3 + k);
            a3 = add_u7(a3, x, wa);
            b3 = add_u7(b3, x, wb);
          }
          s0 = add_pairs(s0, a0, ones);
          t0 = add_pairs(t0, b0, ones);
          s1 = add_pairs(s1, a1, ones);
          t1 = add_pairs(t1, b1, ones);
          s2 = add_pairs(s2, a2, ones);
          t2 = add_pairs(t2, b2, ones);
          s3 = add_pairs(s3, a3, ones);
          t3 = add_pairs(t3, b3, ones);
        }
        const scales = scratch + (block << 6) + half;
        if (minimum) {
          finish_minimum(results, scales, x0 + dx, s0, t0);
          finish_minimum(results + 64, scales, x1 + dx, s1, t1);
          finish_minimum(results + 128, scales, x2 + dx, s2, t2);
          finish_minimum(results + 192, scales, x3 + dx, s3, t3);
          continue;
        }
        finish(results, scales, x0 + dx, s0, t0);
        finish(results + 64, scales, x1 + dx, s1, t1);
        finish(results + 128, scales, x2 + dx, s2, t2);
        finish(results + 192, scales, x3 + dx, s3, t3);
      }
    }
  }
}

/**
 * Unsigned weights of a superblock, `columns` columns in a sub-block. The pairs are minima of the sub-blocks when
 * `shift` is WITH_MINIMUM, otherwise scales of them, whose weights have an offset of 2^shift. `terms` is 1, 2, 4 or 8,
 * and at most those of a sub-block.
 */
export function tile_u7_super(scratch: usize, count: i32, segment: usize, columns: i32, shift: i32, terms: i32): void {
  const pairs = 128 / columns;
  // A sub-block has 16 or 32 columns, a row of scales 64 bytes.
  const rowShift = columns == 32 ? 5 : 4;
  const step = max(terms, 2) << 2;
  for (let t = 0; t < count; t += 4) {
    const x0 = token(scratch, t, count) + segment;
    const x1 = token(scratch, t + 1, count) + segment;
    const x2 = token(scratch, t + 2, count) + segment;
    const x3 = token(scratch, t + 3, count) + segment;
    for (let half: usize = 0; half < 64; half += 32) {
      const tile = scratch + half;
      const results = scratch + (t << 6) + half;
      let s0 = i32x4.splat(0);
      let t0 = i32x4.splat(0);
      let s1 = i32x4.splat(0);
      let t1 = i32x4.splat(0);
      let s2 = i32x4.splat(0);
      let t2 = i32x4.splat(0);
      let s3 = i32x4.splat(0);
      let t3 = i32x4.splat(0);
      for (let at = 0; at < 256; at += step) {
        const scales = tile + ((at >> rowShift) << 6);
        const sa = v128.load(scales, TILE_SCALES);
        const sb = v128.load(scales, TILE_SCALES + 16);
        if (terms <= 2) {
          const w = tile + (at << 4);
          const wa = v128.load(w);
          const wb = v128.load(w, 16);
          const va = v128.load(w, 64);
          const vb = v128.load(w, 80);
          if (terms == 2) {
            let x = v128.load32_splat(x0 + at);
            let z = v128.load32_splat(x0 + at, 4);
            s0 = add_pairs(s0, add_u7(dot_u7(x, wa), z, va), sa);
            t0 = add_pairs(t0, add_u7(dot_u7(x, wb), z, vb), sb);
            x = v128.load32_splat(x1 + at);
            z = v128.load32_splat(x1 + at, 4);
            s1 = add_pairs(s1, add_u7(dot_u7(x, wa), z, va), sa);
            t1 = add_pairs(t1, add_u7(dot_u7(x, wb), z, vb), sb);
            x = v128.load32_splat(x2 + at);
            z = v128.load32_splat(x2 + at, 4);
            s2 = add_pairs(s2, add_u7(dot_u7(x, wa), z, va), sa);
            t2 = add_pairs(t2, add_u7(dot_u7(x, wb), z, vb), sb);
            x = v128.load32_splat(x3 + at);
            z = v128.load32_splat(x3 + at, 4);
            s3 = add_pairs(s3, add_u7(dot_u7(x, wa), z, va), sa);
            t3 = add_pairs(t3, add_u7(dot_u7(x, wb), z, vb), sb);
          } else {
            let x = v128.load32_splat(x0 + at);
            let z = v128.load32_splat(x0 + at, 4);
            s0 = add_pairs(add_pairs(s0, dot_u7(x, wa), sa), dot_u7(z, va), sa);
            t0 = add_pairs(add_pairs(t0, dot_u7(x, wb), sb), dot_u7(z, vb), sb);
            x = v128.load32_splat(x1 + at);
            z = v128.load32_splat(x1 + at, 4);
            s1 = add_pairs(add_pairs(s1, dot_u7(x, wa), sa), dot_u7(z, va), sa);
            t1 = add_pairs(add_pairs(t1, dot_u7(x, wb), sb), dot_u7(z, vb), sb);
            x = v128.load32_splat(x2 + at);
            z = v128.load32_splat(x2 + at, 4);
            s2 = add_pairs(add_pairs(s2, dot_u7(x, wa), sa), dot_u7(z, va), sa);
            t2 = add_pairs(add_pairs(t2, dot_u7(x, wb), sb), dot_u7(z, vb), sb);
            x = v128.load32_splat(x3 + at);
            z = v128.load32_splat(x3 + at, 4);
            s3 = add_pairs(add_pairs(s3, dot_u7(x, wa), sa), dot_u7(z, va), sa);
            t3 = add_pairs(add_pairs(t3, dot_u7(x, wb), sb), dot_u7(z, vb), sb);
          }
          continue;
        }
        let w = tile + (at << 4);
        let wa = v128.load(w);
        let wb = v128.load(w, 16);
        let x = v128.load32_splat(x0 + at);
        let a0 = dot_u7(x, wa);
        let b0 = dot_u7(x, wb);
        x = v128.load32_splat(x1 + at);
        let a1 = dot_u7(x, wa);
        let b1 = dot_u7(x, wb);
        x = v128.load32_splat(x2 + at);
        let a2 = dot_u7(x, wa);
        let b2 = dot_u7(x, wb);
        x = v128.load32_splat(x3 + at);
        let a3 = dot_u7(x, wa);
        let b3 = dot_u7(x, wb);
        for (let k = at + 4; k < at + step; k += 4) {
          w += 64;
          wa = v128.load(w);
          wb = v128.load(w, 16);
          x = v128.load32_splat(x0 + k);
          a0 = add_u7(a0, x, wa);
          b0 = add_u7(b0, x, wb);
          x = v128.load32_splat(x1 + k);
          a1 = add_u7(a1, x, wa);
          b1 = add_u7(b1, x, wb);
          x = v128.load32_splat(x2 + k);
          a2 = add_u7(a2, x, wa);
          b2 = add_u7(b2, x, wb);
          x = v128.load32_splat(x3 + k);
          a3 = add_u7(a3, x, wa);
          b3 = add_u7(b3, x, wb);
        }
        s0 = add_pairs(s0, a0, sa);
        t0 = add_pairs(t0, b0, sb);
        s1 = add_pairs(s1, a1, sa);
        t1 = add_pairs(t1, b1, sb);
        s2 = add_pairs(s2, a2, sa);
        t2 = add_pairs(t2, b2, sb);
        s3 = add_pairs(s3, a3, sa);
        t3 = add_pairs(t3, b3, sb);
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
