/**
 * Keys and values of one layer as binary16, one area for each sequence:
 *
 *   keys    [headCountKv][context / 8][headDim][8 positions]   a lane is a position: no sum across lanes
 *   values  [headCountKv][context][headDimV]                   a lane is a dimension
 *
 * with the context and headDimV rounded up to multiples of 8. What lies in the cache beyond what was stored may be
 * anything: it never reaches a result.
 */

import { f16_bits, pack_f16 } from '../simd/half-pack';

/** Positions of a unit of keys. */
export const OCTET_POSITIONS: i32 = 8;

export function padded(count: i32): i32 {
  return (count + 7) & ~7;
}

/** Bytes of the keys of one layer and sequence; 0xffffffff when they do not fit into a memory. */
export function k_cache_bytes(context: i32, headCountKv: i32, headDim: i32): u32 {
  return saturated(<u64>padded(context) * <u64>headDim * 2 * <u64>headCountKv);
}

/** Bytes of the values of one layer and sequence; 0xffffffff when they do not fit into a memory. */
export function v_cache_bytes(context: i32, headCountKv: i32, headDimV: i32): u32 {
  return saturated(<u64>padded(context) * <u64>padded(headDimV) * 2 * <u64>headCountKv);
}

/** A size in u32; 0xffffffff stands for all that no memory holds. */
export function saturated(bytes: u64): u32 {
  return <u32>min<u64>(bytes, 0xffffffff);
}

/** Keys of one head and sequence; chunks of octets follow one another. */
export function keys_of(kCache: usize, sequence: u32, head: i32, headCountKv: i32, headDim: i32, context: i32): usize {
  const headBytes = (<usize>padded(context) * <usize>headDim) << 1;
  return kCache + (<usize>sequence * <usize>headCountKv + <usize>head) * headBytes;
}

/** Values of one head and sequence. */
export function values_of(
  vCache: usize,
  sequence: u32,
  head: i32,
  headCountKv: i32,
  headDimV: i32,
  context: i32,
): usize {
  const headBytes = (<usize>padded(context) * <usize>padded(headDimV)) << 1;
  return vCache + (<usize>sequence * <usize>headCountKv + <usize>head) * headBytes;
}

/**
 * Stores rows of k [headCountKv · headDim] and v [headCountKv · headDimV], f32, at their positions (i32, below
 * `context`) of their sequences (i32), rounded to binary16: to nearest, ties to even, too large becomes infinite, NaN
 * stays NaN. Item: a row. Rows of one call have different places.
 */
export function store_kv(
  start: i32,
  end: i32,
  scratch: usize,
  k: usize,
  v: usize,
  kCache: usize,
  vCache: usize,
  positions: usize,
  sequences: usize,
  headCountKv: i32,
  headDim: i32,
  headDimV: i32,
  context: i32,
): void {
  for (let row = start; row < end; row++) {
    const position = load<u32>(positions + (row << 2));
    const sequence = load<u32>(sequences + (row << 2));
    for (let head = 0; head < headCountKv; head++) {
      const keys = keys_of(kCache, sequence, head, headCountKv, headDim, context);
      const octet = keys + (((<usize>(position >> 3) * headDim) << 4) + ((position & 7) << 1));
      store_keys(octet, k + (((<usize>row * headCountKv + head) * headDim) << 2), headDim);
      const values = values_of(vCache, sequence, head, headCountKv, headDimV, context);
      const target = values + ((<usize>position * padded(headDimV)) << 1);
      pack_f16(target, v + (((<usize>row * headCountKv + head) * headDimV) << 2), headDimV);
    }
  }
}

/** One position's key into an octet: its values are 16 bytes apart. */
function store_keys(octet: usize, k: usize, headDim: i32): void {
  let i = 0;
  for (; i + 4 <= headDim; i += 4) {
    const bits = f16_bits(v128.load(k + (i << 2)));
    v128.store_lane<u16>(octet + (i << 4), bits, 0);
    v128.store_lane<u16>(octet + (i << 4), bits, 2, 16);
    v128.store_lane<u16>(octet + (i << 4), bits, 4, 32);
    v128.store_lane<u16>(octet + (i << 4), bits, 6, 48);
  }
  for (; i < headDim; i++) v128.store_lane<u16>(octet + (i << 4), f16_bits(v128.load32_zero(k + (i << 2))), 0);
}
