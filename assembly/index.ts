/**
 * Kernels that the host calls. All of them follow one convention:
 *
 * - A work kernel is `(start, end, scratch, …)`: it does items start … end − 1 of a command whose items are
 *   independent of each other, so that any worker may take any range and the result is the same. What an item is
 *   stands at each kernel. `scratch` is the calling worker's own area of SCRATCH_BYTES, 64-byte aligned.
 * - Every parameter is an i32 or usize; an f32 travels as its bits (`…Bits`).
 * - Activations are f32, row by row without padding: row r of a tensor `width` wide starts at base + r · width · 4.
 * - Weight matrices lie in groups of GROUP_ROWS rows, interleaved (see quants/): group g starts at
 *   base + g · groupBytes(type, width). Missing rows of the last group are zero and are never written to a result.
 * - Nothing is dynamic: no allocation, no table, no data segment. Pointers may lie above 2 GiB, so compare them as
 *   usize.
 */

import { TILE_BYTES } from './simd/tile';

/** Bytes of scratch that the matrix kernels need for each worker. */
export const SCRATCH_BYTES: i32 = TILE_BYTES;
export { attention, attention_rows, attention_scratch_bytes } from './ops/attention';
export { ATTENTION_CHUNK } from './ops/attention-chunk';
export { attention_merge, attention_partial_bytes, attention_scores, attention_values } from './ops/attention-split';
export { add, add_bias, geglu, scale, select_rows, sigmoid_gate, soft_cap, swiglu } from './ops/elementwise';
export { combine, TOP_K_EXPERTS, top_k } from './ops/experts';
export { k_cache_bytes, store_kv, v_cache_bytes } from './ops/kv-cache';
export { embed, mul_mat } from './ops/mul-mat';
export { mul_mat_id, plan_bytes, route_plan } from './ops/mul-mat-id';
export { quantize } from './ops/quantize';
export { read_bytes } from './ops/read';
export { rms_norm } from './ops/rms-norm';
export { rope } from './ops/rope';
export { GROUP_ROWS } from './quants/ids';
export { dequantize, dequantize_native, repack } from './quants/load';
export { activation_format, group_bytes } from './quants/types';
export { activation_bytes } from './simd/activations';
