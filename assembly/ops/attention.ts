/**
 * Attention over the cache that store_kv fills: a row sees the positions up to its own of its sequence. Head h of the
 * queries uses head h / (headCount / headCountKv) of keys and values.
 *
 *   q    [rows][headCount][headDim] f32
 *   dst  [rows][headCount][headDimV] f32
 *
 * `attention` is for many rows; `attention_partial` and `attention_merge` divide few rows by positions too. Both ways
 * give the same bits: see attention-chunk.ts. positions and sequences are i32, one a row, positions below `context`;
 * headCount is a multiple of headCountKv; scale is the factor on q · k; `window` > 0 lets a row see only so many positions,
 * its own included.
 */

import {
  ATTENTION_CHUNK,
  chunk_scratch_bytes,
  chunk_states,
  counts_at,
  finish_state,
  merge_state,
  queries_at,
  starts_at,
  state_bytes,
} from './attention-chunk';
import { keys_of, padded, saturated, values_of } from './kv-cache';

/** Rows of an item of `attention`: they share the widened keys and values. */
export const ATTENTION_ROWS: i32 = 8;

/** Scratch bytes of the attention kernels for each worker; `group` = headCount / headCountKv. */
export function attention_scratch_bytes(headDim: i32, headDimV: i32, group: i32): u32 {
  const queries = ATTENTION_ROWS * group;
  return <u32>(chunk_scratch_bytes(headDim, headDimV, queries) + 2 * <usize>queries * state_bytes(headDimV));
}

/**
 * Bytes of the states between `attention_partial` and `attention_merge`: [rows][headCount][chunks of the context];
 * 0xffffffff when they do not fit into a memory.
 */
export function attention_partial_bytes(rows: i32, headCount: i32, context: i32, headDimV: i32): u32 {
  return saturated(<u64>rows * <u64>headCount * <u64>chunks_of(context) * <u64>state_bytes(headDimV));
}

function chunks_of(positions: i32): i32 {
  return (positions + ATTENTION_CHUNK - 1) / ATTENTION_CHUNK;
}

/** The first position that a row sees: `window` positions up to its own, or all of them when it is 0. */
function first_position(position: i32, window: i32): i32 {
  return window == 0 ? 0 : max(0, position + 1 - window);
}

function first_chunk(position: i32, window: i32): i32 {
  return first_position(position, window) / ATTENTION_CHUNK;
}

/** How many positions of the chunk, from its first one, end at the last one that the row sees; 0 or less: it sees none. */
function visible_count(position: i32, window: i32, chunk: i32): i32 {
  if (chunk < first_chunk(position, window)) return 0;
  return min(position + 1 - chunk * ATTENTION_CHUNK, ATTENTION_CHUNK);
}

/** Keys of one chunk of a head, by their pointer and the chunk's number; the same for values with the padded width. */
function chunk_of(values: usize, chunk: i32, width: i32): usize {
  return values + ((<usize>chunk * ATTENTION_CHUNK * width) << 1);
}

/**
 * Item: a head of keys and values and a block of ATTENTION_ROWS rows, headCountKv · ⌈rows / ATTENTION_ROWS⌉ of them.
 * Last blocks come first: in a prompt they have the most to do.
 */
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
): void {
  const blocks = (rows + ATTENTION_ROWS - 1) / ATTENTION_ROWS;
  for (let item = start; item < end; item++) {
    const kvHead = item % headCountKv;
    const first = (blocks - 1 - item / headCountKv) * ATTENTION_ROWS;
    const last = min(rows, first + ATTENTION_ROWS);
    for (let row = first; row < last; ) {
      // Rows of one sequence that follow one another go through its chunks together.
      const sequence = load<u32>(sequences + (row << 2));
      let next = row + 1;
      while (next < last && load<u32>(sequences + (next << 2)) == sequence) next++;
      const keys = keys_of(kCache, sequence, kvHead, headCountKv, headDim, context);
      const vectors = values_of(vCache, sequence, kvHead, headCountKv, headDimV, context);
      attend(
        scratch,
        dst,
        q,
        keys,
        vectors,
        positions,
        row,
        next,
        kvHead,
        headCount,
        headCount / headCountKv,
        headDim,
        headDimV,
        reinterpret<f32>(scaleBits),
        window,
      );
      row = next;
    }
  }
}

/** Rows first … last − 1, all of one sequence, through all chunks. */
function attend(
  scratch: usize,
  dst: usize,
  q: usize,
  keys: usize,
  vectors: usize,
  positions: usize,
  first: i32,
  last: i32,
  kvHead: i32,
  headCount: i32,
  group: i32,
  headDim: i32,
  headDimV: i32,
  scale: f32,
  window: i32,
): void {
  const queries = (last - first) * group;
  const pointers = queries_at(scratch, headDim, headDimV, queries);
  const counts = counts_at(scratch, headDim, headDimV, queries);
  const starts = starts_at(scratch, headDim, headDimV, queries);
  const stateBytes = state_bytes(headDimV);
  const states = scratch + chunk_scratch_bytes(headDim, headDimV, queries);
  const next = states + <usize>queries * stateBytes;
  let visible = 0;
  let begin = i32.MAX_VALUE;
  for (let row = first; row < last; row++) {
    const position = load<i32>(positions + (row << 2));
    visible = max(visible, position + 1);
    begin = min(begin, first_chunk(position, window));
    for (let g = 0; g < group; g++) {
      const query = q + (((<usize>row * headCount + kvHead * group + g) * headDim) << 2);
      store<u32>(pointers + (((row - first) * group + g) << 2), <u32>query);
    }
  }
  for (let chunk = begin; chunk * ATTENTION_CHUNK < visible; chunk++) {
    for (let i = 0; i < queries; i++) {
      const position = load<i32>(positions + ((first + i / group) << 2));
      store<i32>(counts + (i << 2), visible_count(position, window, chunk));
      store<i32>(starts + (i << 2), first_position(position, window) - chunk * ATTENTION_CHUNK);
    }
    chunk_states(
      next,
      stateBytes,
      scratch,
      queries,
      chunk_of(keys, chunk, headDim),
      chunk_of(vectors, chunk, padded(headDimV)),
      headDim,
      headDimV,
      scale,
    );
    for (let i = 0; i < queries; i++) {
      if (load<i32>(counts + (i << 2)) <= 0) continue;
      const at = <usize>i * stateBytes;
      const position = load<i32>(positions + ((first + i / group) << 2));
      // The state of the first chunk that a row sees is taken as it is.
      if (chunk == first_chunk(position, window)) memory.copy(states + at, next + at, stateBytes);
      else merge_state(states + at, next + at, headDimV);
    }
  }
  for (let i = 0; i < queries; i++) {
    const head = <usize>(first + i / group) * headCount + kvHead * group + (i % group);
    finish_state(dst + ((head * headDimV) << 2), states + <usize>i * stateBytes, headDimV);
  }
}

/**
 * Item: a row, a head of keys and values, and a chunk of the context, chunks counting fastest: rows · headCountKv ·
 * ⌈context / ATTENTION_CHUNK⌉ of them. Does nothing when the row does not see the chunk. Writes states to `partial`.
 */
export function attention_partial(
  start: i32,
  end: i32,
  scratch: usize,
  partial: usize,
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
): void {
  const chunks = chunks_of(context);
  const group = headCount / headCountKv;
  const stateBytes = state_bytes(headDimV);
  const pointers = queries_at(scratch, headDim, headDimV, group);
  const counts = counts_at(scratch, headDim, headDimV, group);
  const starts = starts_at(scratch, headDim, headDimV, group);
  for (let item = start; item < end; item++) {
    const chunk = item % chunks;
    const kvHead = (item / chunks) % headCountKv;
    const row = item / chunks / headCountKv;
    const position = load<i32>(positions + (row << 2));
    const seen = visible_count(position, window, chunk);
    if (seen <= 0) continue;
    const first = first_position(position, window) - chunk * ATTENTION_CHUNK;
    const sequence = load<u32>(sequences + (row << 2));
    const head = <usize>row * headCount + kvHead * group;
    for (let g = 0; g < group; g++) {
      store<u32>(pointers + (g << 2), <u32>(q + (((head + g) * headDim) << 2)));
      store<i32>(counts + (g << 2), seen);
      store<i32>(starts + (g << 2), first);
    }
    const keys = keys_of(kCache, sequence, kvHead, headCountKv, headDim, context);
    const vectors = values_of(vCache, sequence, kvHead, headCountKv, headDimV, context);
    chunk_states(
      partial + (head * chunks + chunk) * stateBytes,
      <usize>chunks * stateBytes,
      scratch,
      group,
      chunk_of(keys, chunk, headDim),
      chunk_of(vectors, chunk, padded(headDimV)),
      headDim,
      headDimV,
      reinterpret<f32>(scaleBits),
    );
  }
}

/** Item: a row and a head of the queries, heads counting fastest: rows · headCount of them. */
export function attention_merge(
  start: i32,
  end: i32,
  scratch: usize,
  dst: usize,
  partial: usize,
  positions: usize,
  rows: i32,
  headCount: i32,
  headCountKv: i32,
  headDim: i32,
  headDimV: i32,
  context: i32,
  window: i32,
): void {
  const stateBytes = state_bytes(headDimV);
  const bytes = <usize>chunks_of(context) * stateBytes;
  for (let item = start; item < end; item++) {
    const position = load<i32>(positions + ((item / headCount) << 2));
    const chunks = chunks_of(position + 1);
    const first = first_chunk(position, window);
    let next = partial + <usize>item * bytes + <usize>first * stateBytes;
    memory.copy(scratch, next, stateBytes);
    for (let chunk = first + 1; chunk < chunks; chunk++) {
      next += stateBytes;
      merge_state(scratch, next, headDimV);
    }
    finish_state(dst + ((<usize>item * headDimV) << 2), scratch, headDimV);
  }
}
