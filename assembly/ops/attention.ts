/**
 * Attention over the cache that store_kv fills: a row sees the positions up to its own of its sequence. Head h of the
 * queries uses head h / (headCount / headCountKv) of keys and values.
 *
 *   q    [rows][headCount][headDim] f32
 *   dst  [rows][headCount][headDimV] f32
 *
 * `attention` is for many rows; the kernels of attention-split.ts divide few rows by positions too. Both ways give the
 * same bits: see attention-chunk.ts. positions and sequences are i32, one a row, positions below `context`; headCount is
 * a multiple of headCountKv; scale is the factor on q · k; `window` > 0 lets a row see only so many positions, its own
 * included.
 */

import {
  ATTENTION_CHUNK,
  add_values,
  chunk_factors,
  chunk_scores,
  chunk_scratch_bytes,
  chunk_values,
  counts_at,
  round_queries,
  starts_at,
} from './attention-chunk';
import { chunk_of, chunks_of, first_chunk, first_position, stat_row_bytes, visible_count } from './attention-rows';
import { WEIGHT_STRIDE } from './attention-tiles';
import { keys_of, padded, saturated, values_of } from './kv-cache';

/** Most rows of an item of `attention`: they share the widened keys and values. */
const MOST_ROWS: i32 = 8;
/** Bytes of scores of an item, of all positions, as long as it has more than one row: they stay in the second cache. */
const SCORE_BYTES: i32 = 2 << 20;

/** Rows of an item of `attention`; `group` = headCount / headCountKv. */
export function attention_rows(context: i32, group: i32): i32 {
  const rowBytes = <u64>chunks_of(context) * <u64>group * WEIGHT_STRIDE;
  return max<i32>(1, <i32>min<u64>(MOST_ROWS, <u64>SCORE_BYTES / rowBytes));
}

/*
 * Scratch of `queries` queries over `chunks` chunks, behind that of a chunk:
 *
 *   scores, then weights   f32 [chunks][queries][ATTENTION_CHUNK]
 *   maxima, sums, factors  f32 [queries][chunks, with some room] each
 *   values of a chunk      f32 [queries][padded headDimV]
 *   values of all chunks   the same
 */

/** Scratch bytes of the attention kernels for each worker; 0xffffffff when they do not fit into a memory. */
export function attention_scratch_bytes(headDim: i32, headDimV: i32, group: i32, context: i32): u32 {
  const queries = <u64>attention_rows(context, group) * <u64>group;
  const chunks = chunks_of(context);
  const scores = <u64>chunks * queries * WEIGHT_STRIDE;
  const stats = 3 * queries * <u64>stat_row_bytes(chunks);
  const values = (2 * queries * <u64>padded(headDimV)) << 2;
  return saturated(<u64>chunk_scratch_bytes(headDim, headDimV, <i32>queries) + scores + stats + values);
}

/** Item: a head of keys and values and a block of attention_rows rows. Last blocks come first: they have most to do. */
export function attention(
  start: i32,
  end: i32,
  scratch: usize,
  dst: usize,
  q: usize,
  kCache: usize,
  vCache: usize,
  positions: usize,
  sequences: usize,
  rows: i32,
  headCount: i32,
  headCountKv: i32,
  headDim: i32,
  headDimV: i32,
  context: i32,
  scaleBits: i32,
  window: i32,
  capBits: i32,
): void {
  const group = headCount / headCountKv;
  const most = attention_rows(context, group);
  const blocks = (rows + most - 1) / most;
  for (let item = start; item < end; item++) {
    const kvHead = item % headCountKv;
    const first = (blocks - 1 - item / headCountKv) * most;
    const last = min(rows, first + most);
    for (let row = first; row < last; ) {
      // Rows of one sequence that follow one another go through its chunks together.
      const sequence = load<u32>(sequences + (row << 2));
      let next = row + 1;
      while (next < last && load<u32>(sequences + (next << 2)) == sequence) next++;
      const head = <usize>row * headCount + kvHead * group;
      attend(
        scratch,
        dst + ((head * headDimV) << 2),
        q + ((head * headDim) << 2),
        keys_of(kCache, sequence, kvHead, headCountKv, headDim, context),
        values_of(vCache, sequence, kvHead, headCountKv, headDimV, context),
        positions + (row << 2),
        next - row,
        headCount,
        group,
        headDim,
        headDimV,
        reinterpret<f32>(scaleBits),
        window,
        reinterpret<f32>(capBits),
      );
      row = next;
    }
  }
}

/** Some rows of one sequence and one head of keys and values, through all chunks; dst, q and positions are theirs. */
function attend(
  scratch: usize,
  dst: usize,
  q: usize,
  keys: usize,
  vectors: usize,
  positions: usize,
  rows: i32,
  headCount: i32,
  group: i32,
  headDim: i32,
  headDimV: i32,
  scale: f32,
  window: i32,
  cap: f32,
): void {
  const queries = rows * group;
  let visible = 0;
  let begin = i32.MAX_VALUE;
  for (let row = 0; row < rows; row++) {
    const position = load<i32>(positions + (row << 2));
    visible = max(visible, position + 1);
    begin = min(begin, first_chunk(position, window));
  }
  const chunks = chunks_of(visible) - begin;
  const chunkStride = <usize>queries * WEIGHT_STRIDE;
  const statStride = stat_row_bytes(chunks);
  const valueStride = (<usize>padded(headDimV)) << 2;
  const scores = scratch + chunk_scratch_bytes(headDim, headDimV, queries);
  const maxima = scores + <usize>chunks * chunkStride;
  const sums = maxima + <usize>queries * statStride;
  const factors = sums + <usize>queries * statStride;
  const values = factors + <usize>queries * statStride;
  const totals = values + <usize>queries * valueStride;

  round_queries(scratch, q, (<usize>headCount * <usize>headDim) << 2, queries, group, headDim, headDimV);
  for (let i = 0; i < chunks; i++) {
    set_visible(scratch, positions, queries, group, begin + i, headDim, headDimV, window);
    chunk_scores(
      scores + <usize>i * chunkStride,
      WEIGHT_STRIDE,
      maxima + ((<usize>i) << 2),
      sums + ((<usize>i) << 2),
      statStride,
      scratch,
      queries,
      chunk_of(keys, begin + i, headDim),
      headDim,
      headDimV,
      scale,
      cap,
    );
  }
  for (let i = 0; i < queries; i++) {
    const position = load<i32>(positions + ((i / group) << 2));
    const first = first_chunk(position, window);
    const at = <usize>i * statStride + ((<usize>(first - begin)) << 2);
    chunk_factors(factors + at, maxima + at, sums + at, chunks_of(position + 1) - first);
  }
  for (let i = 0; i < chunks; i++) {
    set_visible(scratch, positions, queries, group, begin + i, headDim, headDimV, window);
    chunk_values(
      values,
      valueStride,
      scores + <usize>i * chunkStride,
      WEIGHT_STRIDE,
      factors + ((<usize>i) << 2),
      statStride,
      scratch,
      queries,
      chunk_of(vectors, begin + i, padded(headDimV)),
      headDim,
      headDimV,
    );
    for (let query = 0; query < queries; query++) {
      const position = load<i32>(positions + ((query / group) << 2));
      if (visible_count(position, window, begin + i) <= 0) continue;
      const at = <usize>query * valueStride;
      // The values of the first chunk that a row sees are taken as they are.
      if (begin + i == first_chunk(position, window)) memory.copy(totals + at, values + at, valueStride);
      else add_values(totals + at, values + at, headDimV);
    }
  }
  for (let i = 0; i < queries; i++) {
    const head = <usize>(i / group) * headCount + (i % group);
    memory.copy(dst + ((head * headDimV) << 2), totals + <usize>i * valueStride, (<usize>headDimV) << 2);
  }
}

/** Writes what each query sees of the chunk into the scratch. */
function set_visible(
  scratch: usize,
  positions: usize,
  queries: i32,
  group: i32,
  chunk: i32,
  headDim: i32,
  headDimV: i32,
  window: i32,
): void {
  const counts = counts_at(scratch, headDim, headDimV, queries);
  const starts = starts_at(scratch, headDim, headDimV, queries);
  for (let i = 0; i < queries; i++) {
    const position = load<i32>(positions + ((i / group) << 2));
    store<i32>(counts + (i << 2), visible_count(position, window, chunk));
    store<i32>(starts + (i << 2), first_position(position, window) - chunk * ATTENTION_CHUNK);
  }
}
