/**
 * Attention of few rows (see attention.ts), divided by positions too, in three calls that follow one another:
 *
 *   attention_scores   item: a row, a head of keys and values, and a chunk of the context
 *   attention_values   the same
 *   attention_merge    item: a row and a head of the queries
 *
 * Between them, `partial`:
 *
 *   maxima  f32 [rows][headCount][chunks of the context]
 *   sums    the same
 *   slots   [rows][headCountKv][chunks][headCount / headCountKv]: the weights of a chunk, later its values
 *
 * Items count chunks fastest, and those that a row does not see do nothing. What belongs to all chunks of a row and head
 * is worked out once a call.
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

function slot_bytes(headDimV: i32): usize {
  return max<usize>(WEIGHT_STRIDE, (<usize>padded(headDimV)) << 2);
}

/** Bytes of the maxima, and of the sums; chunk_factors reads in fours, beyond the last of them. */
function stat_bytes(rows: i32, headCount: i32, chunks: i32): u64 {
  return (((<u64>rows * <u64>headCount * <u64>chunks) << 2) + 63) & ~63;
}

/** Bytes of `partial`; 0xffffffff when they do not fit into a memory. */
export function attention_partial_bytes(rows: i32, headCount: i32, context: i32, headDimV: i32): u32 {
  const chunks = chunks_of(context);
  const slots = <u64>rows * <u64>headCount * <u64>chunks * <u64>slot_bytes(headDimV);
  return saturated(2 * stat_bytes(rows, headCount, chunks) + slots);
}

function slots_at(partial: usize, rows: i32, headCount: i32, chunks: i32): usize {
  return partial + 2 * <usize>stat_bytes(rows, headCount, chunks);
}

export function attention_scores(
  start: i32,
  end: i32,
  scratch: usize,
  partial: usize,
  q: usize,
  kCache: usize,
  positions: usize,
  sequences: usize,
  rows: i32,
  headCount: i32,
  headCountKv: i32,
  headDim: i32,
  headDimV: i32,
  context: i32,
  window: i32,
  scaleBits: i32,
  capBits: i32,
): void {
  const chunks = chunks_of(context);
  const group = headCount / headCountKv;
  const sums = partial + <usize>stat_bytes(rows, headCount, chunks);
  const slots = slots_at(partial, rows, headCount, chunks);
  const slotBytes = slot_bytes(headDimV);
  let known = -1;
  for (let item = start; item < end; item++) {
    const chunk = item % chunks;
    const rowHead = item / chunks;
    const row = rowHead / headCountKv;
    const position = load<i32>(positions + (row << 2));
    const seen = visible_count(position, window, chunk);
    if (seen <= 0) continue;
    set_visible(scratch, group, seen, first_position(position, window) - chunk * ATTENTION_CHUNK, headDim, headDimV);
    const kvHead = rowHead % headCountKv;
    if (rowHead != known) {
      const query = q + ((<usize>rowHead * group * headDim) << 2);
      round_queries(scratch, query, 0, group, group, headDim, headDimV);
      known = rowHead;
    }
    const keys = keys_of(kCache, load<u32>(sequences + (row << 2)), kvHead, headCountKv, headDim, context);
    const stat = (<usize>rowHead * group * chunks + chunk) << 2;
    chunk_scores(
      slots + <usize>item * group * slotBytes,
      slotBytes,
      partial + stat,
      sums + stat,
      (<usize>chunks) << 2,
      scratch,
      group,
      chunk_of(keys, chunk, headDim),
      headDim,
      headDimV,
      reinterpret<f32>(scaleBits),
      reinterpret<f32>(capBits),
    );
  }
}

/** All queries of a row and a head of keys see the same of a chunk. */
function set_visible(scratch: usize, group: i32, seen: i32, first: i32, headDim: i32, headDimV: i32): void {
  const counts = counts_at(scratch, headDim, headDimV, group);
  const starts = starts_at(scratch, headDim, headDimV, group);
  for (let g = 0; g < group; g++) {
    store<i32>(counts + (g << 2), seen);
    store<i32>(starts + (g << 2), first);
  }
}

export function attention_values(
  start: i32,
  end: i32,
  scratch: usize,
  partial: usize,
  vCache: usize,
  positions: usize,
  sequences: usize,
  rows: i32,
  headCount: i32,
  headCountKv: i32,
  headDim: i32,
  headDimV: i32,
  context: i32,
  window: i32,
): void {
  const chunks = chunks_of(context);
  const group = headCount / headCountKv;
  const sums = partial + <usize>stat_bytes(rows, headCount, chunks);
  const slots = slots_at(partial, rows, headCount, chunks);
  const slotBytes = slot_bytes(headDimV);
  const factors = scratch + chunk_scratch_bytes(headDim, headDimV, group);
  const factorStride = stat_row_bytes(chunks);
  let known = -1;
  for (let item = start; item < end; item++) {
    const chunk = item % chunks;
    const rowHead = item / chunks;
    const row = rowHead / headCountKv;
    const position = load<i32>(positions + (row << 2));
    const seen = visible_count(position, window, chunk);
    if (seen <= 0) continue;
    set_visible(scratch, group, seen, 0, headDim, headDimV);
    if (rowHead != known) {
      const first = first_chunk(position, window);
      for (let g = 0; g < group; g++) {
        const stat = ((<usize>rowHead * group + g) * chunks + first) << 2;
        const factor = factors + <usize>g * factorStride + ((<usize>first) << 2);
        chunk_factors(factor, partial + stat, sums + stat, chunks_of(position + 1) - first);
      }
      known = rowHead;
    }
    const kvHead = rowHead % headCountKv;
    const vectors = values_of(vCache, load<u32>(sequences + (row << 2)), kvHead, headCountKv, headDimV, context);
    const slot = slots + <usize>item * group * slotBytes;
    chunk_values(
      slot,
      slotBytes,
      slot,
      slotBytes,
      factors + ((<usize>chunk) << 2),
      factorStride,
      scratch,
      group,
      chunk_of(vectors, chunk, padded(headDimV)),
      headDim,
      headDimV,
    );
  }
}

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
  headDimV: i32,
  context: i32,
  window: i32,
): void {
  const chunks = chunks_of(context);
  const group = headCount / headCountKv;
  const slots = slots_at(partial, rows, headCount, chunks);
  const slotBytes = slot_bytes(headDimV);
  const chunkStride = <usize>group * slotBytes;
  for (let item = start; item < end; item++) {
    const position = load<i32>(positions + ((item / headCount) << 2));
    const first = first_chunk(position, window);
    const last = chunks_of(position + 1);
    let next = slots + <usize>(item / group) * chunks * chunkStride + <usize>(item % group) * slotBytes;
    next += <usize>first * chunkStride;
    memory.copy(scratch, next, slotBytes);
    for (let chunk = first + 1; chunk < last; chunk++) {
      next += chunkStride;
      add_values(scratch, next, headDimV);
    }
    memory.copy(dst + ((<usize>item * headDimV) << 2), scratch, (<usize>headDimV) << 2);
  }
}
