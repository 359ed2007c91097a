/**
 * Attention of some queries over one chunk of positions, all of one sequence and one head of keys and values.
 *
 * Positions are cut at absolute multiples of ATTENTION_CHUNK. What a query draws from a chunk is a state
 *
 *   m = max s, l = Σ e^(s − m), a = Σ e^(s − m) · v        0 m | 4 l | 16 a[headDimV, padded to 8]
 *
 * and states of consecutive chunks are merged in ascending order (Milakov and Gimelshein 2018, "Online normalizer
 * calculation for softmax"). A state depends on the query and its chunk alone, so that any division of the work into
 * items gives the same bits.
 */

import { exp1, exp4 } from '../simd/exp';
import { widen_f16 } from '../simd/half-pack';
import { scores1, scores2, scores4, values1, values2, values4 } from './attention-tiles';
import { OCTET_POSITIONS, padded } from './kv-cache';

/** Positions of a chunk. */
export const ATTENTION_CHUNK: i32 = 128;

/** Positions whose keys or values are widened to f32 at a time: they stay in the first cache. */
const BATCH: i32 = 32;
const STATE_SUM: usize = 4;
export const STATE_VALUES: usize = 16;

export function state_bytes(headDimV: i32): usize {
  return STATE_VALUES + ((<usize>padded(headDimV)) << 2);
}

/*
 * Scratch of a chunk with a number of queries:
 *
 *   widened keys or values   f32 [BATCH][max(headDim, padded headDimV)]
 *   scores, then weights     f32 [queries][ATTENTION_CHUNK]
 *   pointers of the queries  u32 [queries]
 *   positions visible        i32 [queries], of this chunk; 0 or less: none
 *   first of them            i32 [queries]; 0 or less: the chunk's first
 */

function widened_bytes(headDim: i32, headDimV: i32): usize {
  return (<usize>max(headDim, padded(headDimV)) * BATCH) << 2;
}

export function chunk_scratch_bytes(headDim: i32, headDimV: i32, queries: i32): usize {
  return (widened_bytes(headDim, headDimV) + <usize>queries * (ATTENTION_CHUNK * 4 + 12) + 63) & ~63;
}

function scores_at(scratch: usize, headDim: i32, headDimV: i32): usize {
  return scratch + widened_bytes(headDim, headDimV);
}

/** Where the pointers of the queries are to be written. */
export function queries_at(scratch: usize, headDim: i32, headDimV: i32, queries: i32): usize {
  return scores_at(scratch, headDim, headDimV) + <usize>queries * (ATTENTION_CHUNK * 4);
}

/** Where the visible positions of the queries are to be written. */
export function counts_at(scratch: usize, headDim: i32, headDimV: i32, queries: i32): usize {
  return queries_at(scratch, headDim, headDimV, queries) + ((<usize>queries) << 2);
}

/** Where the first visible positions of the queries are to be written. */
export function starts_at(scratch: usize, headDim: i32, headDimV: i32, queries: i32): usize {
  return counts_at(scratch, headDim, headDimV, queries) + ((<usize>queries) << 2);
}

/** Writes the state of every query that sees a position of the chunk; `keys` and `vectors` are the chunk's. */
export function chunk_states(
  states: usize,
  stateStride: usize,
  scratch: usize,
  queries: i32,
  keys: usize,
  vectors: usize,
  headDim: i32,
  headDimV: i32,
  scale: f32,
): void {
  const counts = counts_at(scratch, headDim, headDimV, queries);
  const starts = starts_at(scratch, headDim, headDimV, queries);
  const scores = scores_at(scratch, headDim, headDimV);
  const visible = largest_count(counts, 0, queries);
  for (let at = 0; at < visible; at += BATCH) {
    // Whole octets: what is not visible of the last one is left out by the soft-max.
    const positions = padded(min(BATCH, visible - at));
    widen_f16(scratch, keys + ((<usize>at * headDim) << 1), positions * headDim);
    batch_scores(scratch, queries_at(scratch, headDim, headDimV, queries), counts, scores, queries, at, headDim, scale);
  }
  for (let i = 0; i < queries; i++) {
    const count = load<i32>(counts + (i << 2));
    const weights = scores + i * (ATTENTION_CHUNK * 4);
    const first = load<i32>(starts + (i << 2));
    if (count > 0) soft_max(states + <usize>i * stateStride, weights, first, count, padded(headDimV));
  }
  for (let at = 0; at < visible; at += BATCH) {
    const positions = min(BATCH, visible - at);
    const width = padded(headDimV);
    widen_f16(scratch, vectors + ((<usize>at * width) << 1), positions * width);
    batch_values(scratch, counts, scores, states + STATE_VALUES, stateStride, queries, at, width);
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
  pointers: usize,
  counts: usize,
  scores: usize,
  queries: i32,
  at: i32,
  headDim: i32,
  scale: f32,
): void {
  const octetBytes = (<usize>headDim * OCTET_POSITIONS) << 2;
  const factor = f32x4.splat(scale);
  for (let i = 0; i < queries; ) {
    const tile = queries - i >= 4 ? 4 : queries - i >= 2 ? 2 : 1;
    const q = pointers + (i << 2);
    const s = scores + i * (ATTENTION_CHUNK * 4) + (at << 2);
    const visible = min(BATCH, largest_count(counts, i, i + tile) - at);
    let k = keys;
    for (let position = 0; position < visible; position += OCTET_POSITIONS) {
      const to = s + (position << 2);
      if (tile == 4) {
        scores4(
          to,
          to + ATTENTION_CHUNK * 4,
          to + ATTENTION_CHUNK * 8,
          to + ATTENTION_CHUNK * 12,
          load<u32>(q),
          load<u32>(q, 4),
          load<u32>(q, 8),
          load<u32>(q, 12),
          k,
          headDim,
          factor,
        );
      } else if (tile == 2) {
        scores2(to, to + ATTENTION_CHUNK * 4, load<u32>(q), load<u32>(q, 4), k, headDim, factor);
      } else {
        // Two octets at once; the second may be left over from another batch, and its scores are not visible then.
        scores1(to, load<u32>(q), k, octetBytes, headDim, factor);
        position += OCTET_POSITIONS;
        k += octetBytes;
      }
      k += octetBytes;
    }
    i += tile;
  }
}

/**
 * Scores to weights e^(s − m), in place, 0 for those before `first` and from `count` on; sets m and l of the state and
 * clears its values.
 */
function soft_max(state: usize, scores: usize, first: i32, count: i32, width: i32): void {
  for (let i = 0; i < first; i++) store<f32>(scores + (i << 2), -Infinity);
  const ends = scores + ((<usize>padded(count)) << 2);
  for (let at = scores + ((<usize>count) << 2); at < ends; at += 4) store<f32>(at, -Infinity);
  let high = v128.load(scores);
  for (let at = scores + 16; at < ends; at += 16) high = f32x4.max(high, v128.load(at));
  const largest = max<f32>(
    max<f32>(f32x4.extract_lane(high, 0), f32x4.extract_lane(high, 1)),
    max<f32>(f32x4.extract_lane(high, 2), f32x4.extract_lane(high, 3)),
  );
  const m = f32x4.splat(largest);
  let a = f32x4.splat(0);
  let b = a;
  for (let at = scores; at < ends; at += 32) {
    const low = exp4(f32x4.sub(v128.load(at), m));
    const upper = exp4(f32x4.sub(v128.load(at, 16), m));
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
  store<f32>(state, largest);
  store<f32>(state, sum, STATE_SUM);
  memory.fill(state + STATE_VALUES, 0, (<usize>width) << 2);
}

/** Adds the widened values of positions at … at + BATCH − 1 of the chunk to the states. */
function batch_values(
  v: usize,
  counts: usize,
  scores: usize,
  acc: usize,
  stateStride: usize,
  queries: i32,
  at: i32,
  width: i32,
): void {
  for (let i = 0; i < queries; ) {
    const tile = queries - i >= 4 ? 4 : queries - i >= 2 ? 2 : 1;
    const p = scores + i * (ATTENTION_CHUNK * 4) + (at << 2);
    const a = acc + <usize>i * stateStride;
    // Together as far as all of them see, then each one alone: a weight of 0 does not make up for a value of NaN.
    let common = BATCH;
    for (let j = 0; j < tile; j++) common = min(common, load<i32>(counts + ((i + j) << 2)) - at);
    common = max(common, 0);
    if (common > 0) {
      if (tile == 4) {
        values4(
          a,
          a + stateStride,
          a + 2 * stateStride,
          a + 3 * stateStride,
          p,
          p + ATTENTION_CHUNK * 4,
          p + ATTENTION_CHUNK * 8,
          p + ATTENTION_CHUNK * 12,
          v,
          0,
          common,
          width,
        );
      } else if (tile == 2) values2(a, a + stateStride, p, p + ATTENTION_CHUNK * 4, v, 0, common, width);
      else values1(a, p, v, 0, common, width);
    }
    for (let j = 0; j < tile; j++) {
      const visible = min(BATCH, load<i32>(counts + ((i + j) << 2)) - at);
      if (visible <= common) continue;
      values1(a + <usize>j * stateStride, p + j * (ATTENTION_CHUNK * 4), v, common, visible, width);
    }
    i += tile;
  }
}

/** Merges the state of the next chunk into that of all chunks before it. */
export function merge_state(state: usize, next: usize, headDimV: i32): void {
  const m = load<f32>(state);
  const other = load<f32>(next);
  const largest = max<f32>(m, other);
  const factor = exp1(m - largest);
  const otherFactor = exp1(other - largest);
  store<f32>(state, largest);
  store<f32>(state, load<f32>(state, STATE_SUM) * factor + load<f32>(next, STATE_SUM) * otherFactor, STATE_SUM);
  const a = f32x4.splat(factor);
  const b = f32x4.splat(otherFactor);
  const ends = state + state_bytes(headDimV);
  let from = next + STATE_VALUES;
  for (let at = state + STATE_VALUES; at < ends; at += 16) {
    v128.store(at, f32x4.add(f32x4.mul(v128.load(at), a), f32x4.mul(v128.load(from), b)));
    from += 16;
  }
}

/** a / l to dst. */
export function finish_state(dst: usize, state: usize, headDimV: i32): void {
  const sum = load<f32>(state, STATE_SUM);
  const values = state + STATE_VALUES;
  let i = 0;
  for (; i + 4 <= headDimV; i += 4) {
    v128.store(dst + (i << 2), f32x4.div(v128.load(values + (i << 2)), f32x4.splat(sum)));
  }
  for (; i < headDimV; i++) store<f32>(dst + (i << 2), load<f32>(values + (i << 2)) / sum);
}
