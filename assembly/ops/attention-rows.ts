/** Which positions a row of attention sees, chunk by chunk. Rows see the `window` positions up to their own, 0 for all. */

import { ATTENTION_CHUNK } from './attention-chunk';

export function chunks_of(positions: i32): i32 {
  return (positions + ATTENTION_CHUNK - 1) / ATTENTION_CHUNK;
}

/** The first position that a row sees. */
export function first_position(position: i32, window: i32): i32 {
  return window == 0 ? 0 : max(0, position + 1 - window);
}

export function first_chunk(position: i32, window: i32): i32 {
  return first_position(position, window) / ATTENTION_CHUNK;
}

/** How many positions of the chunk, from its first one, end at the last one that the row sees; 0 or less: it sees none. */
export function visible_count(position: i32, window: i32, chunk: i32): i32 {
  if (chunk < first_chunk(position, window)) return 0;
  return min(position + 1 - chunk * ATTENTION_CHUNK, ATTENTION_CHUNK);
}

/**
 * Bytes of a row of statistics, one f32 a chunk: what chunk_factors takes from any chunk on, in fours, does not reach into
 * the next row.
 */
export function stat_row_bytes(chunks: i32): usize {
  return ((<usize>chunks + 6) & ~3) << 2;
}

/** Keys of one chunk of a head, by their pointer and the chunk's number; the same for values with the padded width. */
export function chunk_of(values: usize, chunk: i32, width: i32): usize {
  return values + ((<usize>chunk * ATTENTION_CHUNK * width) << 1);
}
