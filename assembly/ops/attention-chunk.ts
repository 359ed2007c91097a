/**
 * Attention of some queries over one chunk of positions, all of one sequence and one head of keys and values.
 *
 * Positions are cut at absolute multiples of ATTENTION_CHUNK. The soft-max comes before the values, as in ggml, which
 * multiplies a cache of binary16 by operands rounded to binary16: q, and the weights once they are normalised.
 *
 *   chunk_scores    s = scale · round(q) · k, then m = max s, w = e^(s − m), l = Σ w        of each chunk
 *   chunk_factors   M = max m, L = Σ l · e^(m − M), f = e^(m − M) / L                       of all chunks
 *   chunk_values    a = Σ round(w · f) · v                                                  of each chunk
 *
 * The result is Σ a, chunks ascending (add_values). Every step depends on the query and its chunk, or on its chunks in
 * order, so that any division of the work into items gives the same bits.
 */

import { exp4, exp4_weight, store_exp_constants } from '../simd/exp';
import { round_f16 } from '../simd/half';
import { widen_f16 } from '../simd/half-pack';
import { soft_cap_run } from '../simd/soft-cap';
import {
  scores1,
  scores2,
  scores4,
  scores6,
  tile_of,
  values1,
  values2,
  values4,
  values6,
  WEIGHT_STRIDE,
} from './attention-tiles';
import { OCTET_POSITIONS, padded } from './kv-cache';

/** Positions of a chunk. */
export const ATTENTION_CHUNK: i32 = 128;

/**
 * Positions whose keys or values are widened to f32 at a time. They stay in the first cache; and reading them takes so
 * little time that the processor, which reads ahead, has the next ones when the sums of these are done.
 */
const BATCH: i32 = 16;

/*
 * Scratch of a number of queries in a chunk:
 *
 *   widened keys or values   f32 [BATCH][max(headDim, padded headDimV)]
 *   rounded weights          f32 [queries][ATTENTION_CHUNK]
 *   rounded queries          f32, tile by tile (tile_of): [headDim][queries of the tile]
 *   positions visible        i32 [queries], of this chunk; 0 or less: none
 *   first of them            i32 [queries]; 0 or less: the chunk's first
 */

function weights_at(scratch: usize, headDim: i32, headDimV: i32): usize {
  return scratch + ((<usize>max(headDim, padded(headDimV)) * BATCH) << 2);
}

function queries_at(scratch: usize, headDim: i32, headDimV: i32, queries: i32): usize {
  return weights_at(scratch, headDim, headDimV) + <usize>queries * WEIGHT_STRIDE;
}

/** Where the visible positions of the queries are to be written. */
export function counts_at(scratch: usize, headDim: i32, headDimV: i32, queries: i32): usize {
  return queries_at(scratch, headDim, headDimV, queries) + ((<usize>queries * <usize>headDim) << 2);
}

/** Where the first visible positions of the queries are to be written. */
export function starts_at(scratch: usize, headDim: i32, headDimV: i32, queries: i32): usize {
  return counts_at(scratch, headDim, headDimV, queries) + ((<usize>queries) << 2);
}

export function chunk_scratch_bytes(headDim: i32, headDimV: i32, queries: i32): usize {
  return (starts_at(0, headDim, headDimV, queries) + ((<usize>queries) << 2) + 63) & ~63;
}

/**
 * Rounds the queries into the scratch. `group` of them follow one another at `q`, the next ones begin `rowBytes` behind
 * the first of those before.
 */
export function round_queries(
  scratch: usize,
  q: usize,
  rowBytes: usize,
  queries: i32,
  group: i32,
  headDim: i32,
  headDimV: i32,
): void {
  let tileAt = queries_at(scratch, headDim, headDimV, queries);
  for (let i = 0; i < queries; ) {
    const tile = tile_of(queries - i);
    for (let j = 0; j < tile; j++) {
      const query = i + j;
      const from = q + <usize>(query / group) * rowBytes + ((<usize>(query % group) * <usize>headDim) << 2);
      const step = (<usize>tile) << 2;
      let to = tileAt + ((<usize>j) << 2);
      let d = 0;
      for (; d + 4 <= headDim; d += 4) {
        const rounded = round_f16(v128.load(from + (d << 2)));
        v128.store_lane<u32>(to, rounded, 0);
        v128.store_lane<u32>(to + step, rounded, 1);
        v128.store_lane<u32>(to + 2 * step, rounded, 2);
        v128.store_lane<u32>(to + 3 * step, rounded, 3);
        to += 4 * step;
      }
      for (; d < headDim; d++) {
        v128.store_lane<u32>(to, round_f16(v128.load32_zero(from + (d << 2))), 0);
        to += step;
      }
    }
    tileAt += (<usize>tile * <usize>headDim) << 2;
    i += tile;
  }
}

/**
 * The first step for every query that sees a position of the chunk: w to scores + i · stride, ATTENTION_CHUNK of them; m
 * and l to maxima and sums + i · statStride. A `cap` that is not 0 bounds s softly.
 */
export function chunk_scores(
  scores: usize,
  stride: usize,
  maxima: usize,
  sums: usize,
  statStride: usize,
  scratch: usize,
  queries: i32,
  keys: usize,
  headDim: i32,
  headDimV: i32,
  scale: f32,
  cap: f32,
): void {
  const counts = counts_at(scratch, headDim, headDimV, queries);
  const starts = starts_at(scratch, headDim, headDimV, queries);
  const rounded = queries_at(scratch, headDim, headDimV, queries);
  const visible = largest_count(counts, 0, queries);
  for (let at = 0; at < visible; at += BATCH) {
    // Whole octets: what is not visible of the last one is left out by the soft-max.
    const positions = padded(min(BATCH, visible - at));
    widen_f16(scratch, keys + ((<usize>at * headDim) << 1), positions * headDim);
    batch_scores(scratch, rounded, counts, scores + (at << 2), stride, queries, at, headDim, scale);
  }
  // In the place of the widened keys, which are done with.
  store_exp_constants(scratch);
  for (let i = 0; i < queries; i++) {
    const count = load<i32>(counts + (i << 2));
    if (count <= 0) continue;
    const stat = <usize>i * statStride;
    if (cap != 0) soft_cap_run(scores + <usize>i * stride, padded(count), cap);
    soft_max(scores + <usize>i * stride, load<i32>(starts + (i << 2)), count, maxima + stat, sums + stat, scratch);
  }
}

function largest_count(counts: usize, first: i32, last: i32): i32 {
  let largest = 0;
  for (let i = first; i < last; i++) largest = max(largest, load<i32>(counts + (i << 2)));
  return largest;
}

/** Scores of all queries against the widened keys of positions at … at + BATCH − 1 of the chunk. */
function batch_scores(
  keys: usize,
  rounded: usize,
  counts: usize,
  scores: usize,
  stride: usize,
  queries: i32,
  at: i32,
  headDim: i32,
  scale: f32,
): void {
  const octetBytes = (<usize>headDim * OCTET_POSITIONS) << 2;
  const factor = f32x4.splat(scale);
  let q = rounded;
  for (let i = 0; i < queries; ) {
    const tile = tile_of(queries - i);
    const visible = min(BATCH, largest_count(counts, i, i + tile) - at);
    let k = keys;
    let s = scores + <usize>i * stride;
    for (let position = 0; position < visible; position += OCTET_POSITIONS) {
      if (tile == 6) scores6(s, stride, q, k, headDim, factor);
      else if (tile == 4) scores4(s, stride, q, k, headDim, factor);
      else {
        // Two octets; the second may be left over from another batch, and its scores are not visible then.
        if (tile == 2) scores2(s, stride, q, k, octetBytes, headDim, factor);
        else scores1(s, q, k, octetBytes, headDim, factor);
        position += OCTET_POSITIONS;
        k += octetBytes;
        s += OCTET_POSITIONS << 2;
      }
      k += octetBytes;
      s += OCTET_POSITIONS << 2;
    }
    q += (<usize>tile * <usize>headDim) << 2;
    i += tile;
  }
}

/**
 * Scores to e^(s − m), in place, next to 0 for those before `first` and from `count` on; stores m and the sum. `constants`
 * are those of exp4_weight.
 */
function soft_max(scores: usize, first: i32, count: i32, maximum: usize, total: usize, constants: usize): void {
  for (let i = 0; i < first; i++) store<f32>(scores + (i << 2), -Infinity);
  const ends = scores + ((<usize>padded(count)) << 2);
  for (let at = scores + ((<usize>count) << 2); at < ends; at += 4) store<f32>(at, -Infinity);
  // Not f32x4.max, which takes many instructions: a NaN that is passed over here comes back by its own exponential.
  let high = v128.load(scores);
  let higher = v128.load(scores, 16);
  for (let at = scores + 32; at < ends; at += 32) {
    high = f32x4.pmax(high, v128.load(at));
    higher = f32x4.pmax(higher, v128.load(at, 16));
  }
  high = f32x4.max(high, higher);
  const largest = max<f32>(
    max<f32>(f32x4.extract_lane(high, 0), f32x4.extract_lane(high, 1)),
    max<f32>(f32x4.extract_lane(high, 2), f32x4.extract_lane(high, 3)),
  );
  const m = f32x4.splat(largest);
  let a = f32x4.splat(0);
  let b = a;
  for (let at = scores; at < ends; at += 32) {
    const low = exp4_weight(f32x4.sub(v128.load(at), m), constants);
    const upper = exp4_weight(f32x4.sub(v128.load(at, 16), m), constants);
    v128.store(at, low);
    v128.store(at, upper, 16);
    a = f32x4.add(a, low);
    b = f32x4.add(b, upper);
  }
  const both = f32x4.add(a, b);
  const sum =
    f32x4.extract_lane(both, 0) +
    f32x4.extract_lane(both, 1) +
    (f32x4.extract_lane(both, 2) + f32x4.extract_lane(both, 3));
  store<f32>(maximum, largest);
  store<f32>(total, sum);
}

/**
 * The second step for one query: its factors, of `chunks` chunks that follow one another, from their maxima and sums. All
 * three have room for a multiple of four.
 */
export function chunk_factors(factors: usize, maxima: usize, sums: usize, chunks: i32): void {
  const ends = (<usize>chunks) << 2;
  let largest = load<f32>(maxima);
  for (let at: usize = 4; at < ends; at += 4) largest = max<f32>(largest, load<f32>(maxima + at));
  const m = f32x4.splat(largest);
  for (let at: usize = 0; at < ends; at += 16) {
    v128.store(factors + at, exp4(f32x4.sub(v128.load(maxima + at), m)));
  }
  let sum: f32 = 0;
  for (let at: usize = 0; at < ends; at += 4) sum += load<f32>(factors + at) * load<f32>(sums + at);
  for (let at: usize = 0; at < ends; at += 16) {
    v128.store(factors + at, f32x4.div(v128.load(factors + at), f32x4.splat(sum)));
  }
}

/**
 * The third step for every query that sees a position of the chunk: sums of padded headDimV values to acc + i · accStride.
 * Scores and acc may be the same place. `factors` are the chunk's.
 */
export function chunk_values(
  acc: usize,
  accStride: usize,
  scores: usize,
  stride: usize,
  factors: usize,
  factorStride: usize,
  scratch: usize,
  queries: i32,
  vectors: usize,
  headDim: i32,
  headDimV: i32,
): void {
  const counts = counts_at(scratch, headDim, headDimV, queries);
  const weights = weights_at(scratch, headDim, headDimV);
  const width = padded(headDimV);
  for (let i = 0; i < queries; i++) {
    const count = load<i32>(counts + (i << 2));
    if (count <= 0) continue;
    const factor = load<f32>(factors + <usize>i * factorStride);
    round_weights(weights + <usize>i * WEIGHT_STRIDE, scores + <usize>i * stride, padded(count), factor);
  }
  for (let i = 0; i < queries; i++) {
    if (load<i32>(counts + (i << 2)) > 0) memory.fill(acc + <usize>i * accStride, 0, (<usize>width) << 2);
  }
  const visible = largest_count(counts, 0, queries);
  for (let at = 0; at < visible; at += BATCH) {
    const positions = min(BATCH, visible - at);
    widen_f16(scratch, vectors + ((<usize>at * width) << 1), positions * width);
    batch_values(scratch, counts, weights, acc, accStride, queries, at, width);
  }
}

/** `count` weights times the factor, rounded to values of binary16; NaN stays NaN, none is negative. */
function round_weights(dst: usize, weights: usize, count: i32, factor: f32): void {
  const f = f32x4.splat(factor);
  const half = f32x4.splat(0.5);
  const ends = weights + ((<usize>count) << 2);
  let to = dst;
  for (let at = weights; at < ends; at += 16) {
    const p = f32x4.mul(v128.load(at), f);
    const odd = v128.and(i32x4.shr_u(p, 13), i32x4.splat(1));
    const normal = v128.and(i32x4.add(i32x4.add(p, i32x4.splat(0xfff)), odd), i32x4.splat(~0x1fff));
    // Below 2^-14 the spacing of binary16 is 2^-24, that of f32 between 0.5 and 1.
    const small = f32x4.sub(f32x4.add(p, half), half);
    const rounded = v128.bitselect(small, normal, f32x4.lt(p, f32x4.splat(reinterpret<f32>(0x38800000))));
    v128.store(to, v128.or(rounded, f32x4.ne(p, p)));
    to += 16;
  }
}

/** Adds the widened values of positions at … at + BATCH − 1 of the chunk. */
function batch_values(
  v: usize,
  counts: usize,
  weights: usize,
  acc: usize,
  stride: usize,
  queries: i32,
  at: i32,
  width: i32,
): void {
  for (let i = 0; i < queries; ) {
    const tile = tile_of(queries - i);
    const p = weights + <usize>i * WEIGHT_STRIDE + (at << 2);
    const a = acc + <usize>i * stride;
    // Together as far as all of them see, then each one alone: a weight of 0 does not make up for a value of NaN.
    let common = BATCH;
    for (let j = 0; j < tile; j++) common = min(common, load<i32>(counts + ((i + j) << 2)) - at);
    common = max(common, 0);
    if (common > 0) {
      if (tile == 6) values6(a, stride, p, v, 0, common, width);
      else if (tile == 4) values4(a, stride, p, v, 0, common, width);
      else if (tile == 2) values2(a, stride, p, v, 0, common, width);
      else values1(a, p, v, 0, common, width);
    }
    for (let j = 0; j < tile; j++) {
      const visible = min(BATCH, load<i32>(counts + ((i + j) << 2)) - at);
      if (visible <= common) continue;
      values1(a + <usize>j * stride, p + <usize>j * WEIGHT_STRIDE, v, common, visible, width);
    }
    i += tile;
  }
}

/** Adds the values of the next chunk to those of all chunks before it; headDimV rounded up to a multiple of 8. */
export function add_values(sum: usize, next: usize, headDimV: i32): void {
  const ends = sum + ((<usize>padded(headDimV)) << 2);
  let from = next;
  for (let at = sum; at < ends; at += 16) {
    v128.store(at, f32x4.add(v128.load(at), v128.load(from)));
    from += 16;
  }
}
