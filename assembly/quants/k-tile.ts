/** What the tiles of K-quants have in common. */

import { f32x4_load_f16 } from '../simd/half';
import { TILE_D, TILE_DMIN, TILE_HALF, TILE_PAIRS, TILE_SCALES } from '../simd/tile';
import { both_lanes } from './k-scales';

/** Minima as i16 pairs, d and dmin of 16 rows as f32. */
export function unpack_minima(tile: usize, minima: usize, d: usize, dmin: usize): void {
  for (let i: usize = 0; i < 128; i += 8) v128.store(tile + (i << 1), v128.load8x8_s(minima + i), TILE_PAIRS);
  copy_scales(tile, TILE_D, d);
  copy_scales(tile, TILE_DMIN, dmin);
}

/** f32[16] to a place in the tile. */
export function copy_scales(tile: usize, place: usize, d: usize): void {
  for (let v: usize = 0; v < 64; v += 16) v128.store(tile + place + v, v128.load(d + v));
}

/** f16[16] to f32[16] at a place in the tile. */
export function unpack_scales(tile: usize, place: usize, d: usize): void {
  const half = tile + TILE_HALF;
  for (let v: usize = 0; v < 4; v++) v128.store(tile + place + (v << 4), f32x4_load_f16(d + (v << 3), half));
}

/**
 * Two vectors of unsigned bytes (what low and high nibbles would be, see simd/octets.ts) to their places in a tile:
 * as they are in the relaxed build; in the plain one as i16, less `offset`, times `scale`. `mask` is BYTE_MASK.
 */
export function store_octet(at: usize, a: v128, b: v128, mask: v128, offset: v128, scale: v128): void {
  if (ASC_FEATURE_RELAXED_SIMD) {
    v128.store(at, a);
    v128.store(at, b, 64);
  } else {
    store_wide_octet(at, a, b, mask, offset, scale);
  }
}

/** The same of a wide octet to an i16 tile, whatever the build. */
export function store_wide_octet(at: usize, a: v128, b: v128, mask: v128, offset: v128, scale: v128): void {
  v128.store(at, i16x8.mul(i16x8.sub(v128.and(a, mask), offset), scale));
  v128.store(at, i16x8.mul(i16x8.sub(v128.and(b, mask), offset), scale), 64);
  v128.store(at, i16x8.mul(i16x8.sub(i16x8.shr_u(a, 8), offset), scale), 128);
  v128.store(at, i16x8.mul(i16x8.sub(i16x8.shr_u(b, 8), offset), scale), 192);
}

/** Bytes that an octet of columns takes in an i16 tile. */
export const WIDE_OCTET: usize = 256;

/** Bytes of a tile that an octet of columns takes. */
export const TILE_OCTET: usize = ASC_FEATURE_RELAXED_SIMD ? 128 : 256;

/** Scales (i32) of sub-block j of row vector v, which only the relaxed build's tiles need. */
export function store_scales(tile: usize, j: i32, v: usize, scales: v128): void {
  if (ASC_FEATURE_RELAXED_SIMD) v128.store(tile + (j << 6) + (v << 4), both_lanes(scales), TILE_SCALES);
}
