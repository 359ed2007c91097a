/** Weights from the file to groups, and single rows of either to f32. */

import * as floats from './floats';
import {
  GROUP_ROWS,
  IQ1_M,
  IQ1_S,
  IQ2_S,
  IQ2_XS,
  IQ2_XXS,
  IQ3_S,
  IQ3_XXS,
  IQ4_NL,
  IQ4_XS,
  MXFP4,
  Q1_0,
  Q2_0,
  Q2_K,
  Q3_K,
  Q4_0,
  Q4_1,
  Q4_K,
  Q5_0,
  Q5_1,
  Q5_K,
  Q6_K,
  Q8_0,
  TQ1_0,
  TQ2_0,
} from './ids';
import * as iq1_m from './iq1-m';
import * as iq1_s from './iq1-s';
import * as iq2_s from './iq2-s';
import * as iq2_xs from './iq2-xs';
import * as iq2_xxs from './iq2-xxs';
import * as iq3_s from './iq3-s';
import * as iq3_xxs from './iq3-xxs';
import * as iq4_nl from './iq4-nl';
import * as iq4_xs from './iq4-xs';
import * as mxfp4 from './mxfp4';
import * as q1_0 from './q1-0';
import * as q2_0 from './q2-0';
import * as q2_k from './q2-k';
import * as q3_k from './q3-k';
import * as q4_0 from './q4-0';
import * as q4_1 from './q4-1';
import * as q4_k from './q4-k';
import * as q5_0 from './q5-0';
import * as q5_1 from './q5-1';
import * as q5_k from './q5-k';
import * as q6_k from './q6-k';
import * as q8_0 from './q8-0';
import * as tq1_0 from './tq1-0';
import * as tq2_0 from './tq2-0';
import { block_bytes, block_columns, group_bytes, native_bytes } from './types';

/**
 * Up to 16 rows as they stand in the file to one group; missing rows become zero. `grid` points at the grid of an IQ1,
 * IQ2 or IQ3 type (iq-grid.ts); other types ignore it.
 */
export function repack(type: i32, src: usize, dst: usize, width: i32, rows: i32, grid: usize): void {
  if (rows < GROUP_ROWS) memory.fill(dst, 0, group_bytes(type, width));
  const blocks = width / block_columns(type, width);
  const nativeBlock = native_bytes(type, width);
  const groupBlock = block_bytes(type, width);
  for (let b = 0; b < blocks; b++) {
    for (let row = 0; row < rows; row++) {
      const native = src + <usize>(row * blocks + b) * nativeBlock;
      switch (type) {
        case Q4_0:
          q4_0.repack(dst, native, row);
          break;
        case Q4_1:
          q4_1.repack(dst, native, row);
          break;
        case Q5_0:
          q5_0.repack(dst, native, row);
          break;
        case Q5_1:
          q5_1.repack(dst, native, row);
          break;
        case Q8_0:
          q8_0.repack(dst, native, row);
          break;
        case Q2_K:
          q2_k.repack(dst, native, row);
          break;
        case Q3_K:
          q3_k.repack(dst, native, row);
          break;
        case Q4_K:
          q4_k.repack(dst, native, row);
          break;
        case Q5_K:
          q5_k.repack(dst, native, row);
          break;
        case Q6_K:
          q6_k.repack(dst, native, row);
          break;
        case IQ2_XXS:
          iq2_xxs.repack(dst, native, row, grid);
          break;
        case IQ2_XS:
          iq2_xs.repack(dst, native, row, grid);
          break;
        case IQ3_XXS:
          iq3_xxs.repack(dst, native, row, grid);
          break;
        case IQ1_S:
          iq1_s.repack(dst, native, row, grid);
          break;
        case IQ4_NL:
          iq4_nl.repack(dst, native, row);
          break;
        case IQ3_S:
          iq3_s.repack(dst, native, row, grid);
          break;
        case IQ2_S:
          iq2_s.repack(dst, native, row, grid);
          break;
        case IQ4_XS:
          iq4_xs.repack(dst, native, row);
          break;
        case IQ1_M:
          iq1_m.repack(dst, native, row, grid);
          break;
        case TQ1_0:
          tq1_0.repack(dst, native, row);
          break;
        case TQ2_0:
          tq2_0.repack(dst, native, row);
          break;
        case MXFP4:
          mxfp4.repack(dst, native, row);
          break;
        case Q1_0:
          q1_0.repack(dst, native, row);
          break;
        case Q2_0:
          q2_0.repack(dst, native, row);
          break;
        default:
          floats.repack(type, dst, native, row, width);
          break;
      }
    }
    dst += groupBlock;
  }
}

/** One row of a group to f32 [width]. */
export function dequantize(type: i32, dst: usize, group: usize, row: i32, width: i32): void {
  const columns = block_columns(type, width);
  const groupBlock = block_bytes(type, width);
  for (let column = 0; column < width; column += columns) {
    const out = dst + ((<usize>column) << 2);
    switch (type) {
      case Q4_0:
        q4_0.dequantize(out, group, row);
        break;
      case Q4_1:
        q4_1.dequantize(out, group, row);
        break;
      case Q5_0:
        q5_0.dequantize(out, group, row);
        break;
      case Q5_1:
        q5_1.dequantize(out, group, row);
        break;
      case Q8_0:
        q8_0.dequantize(out, group, row);
        break;
      case Q2_K:
        q2_k.dequantize(out, group, row);
        break;
      case Q3_K:
        q3_k.dequantize(out, group, row);
        break;
      case Q4_K:
        q4_k.dequantize(out, group, row);
        break;
      case Q5_K:
        q5_k.dequantize(out, group, row);
        break;
      case Q6_K:
        q6_k.dequantize(out, group, row);
        break;
      case IQ2_XXS:
        iq2_xxs.dequantize(out, group, row);
        break;
      case IQ2_XS:
        iq2_xs.dequantize(out, group, row);
        break;
      case IQ3_XXS:
        iq3_xxs.dequantize(out, group, row);
        break;
      case IQ1_S:
        iq1_s.dequantize(out, group, row);
        break;
      case IQ4_NL:
        iq4_nl.dequantize(out, group, row);
        break;
      case IQ3_S:
        iq3_s.dequantize(out, group, row);
        break;
      case IQ2_S:
        iq2_s.dequantize(out, group, row);
        break;
      case IQ4_XS:
        iq4_xs.dequantize(out, group, row);
        break;
      case IQ1_M:
        iq1_m.dequantize(out, group, row);
        break;
      case TQ1_0:
        tq1_0.dequantize(out, group, row);
        break;
      case TQ2_0:
        tq2_0.dequantize(out, group, row);
        break;
      case MXFP4:
        mxfp4.dequantize(out, group, row);
        break;
      case Q1_0:
        q1_0.dequantize(out, group, row);
        break;
      case Q2_0:
        q2_0.dequantize(out, group, row);
        break;
      default:
        floats.dequantize(type, out, group, row, width);
        break;
    }
    group += groupBlock;
  }
}

/**
 * One row as it stands in the file to f32 [width]: the scalar twin, after `dequantize_row_*` of ggml-quants.c. `grid`
 * as for {@link repack}.
 */
export function dequantize_native(type: i32, dst: usize, src: usize, width: i32, grid: usize): void {
  const columns = block_columns(type, width);
  const nativeBlock = native_bytes(type, width);
  for (let column = 0; column < width; column += columns) {
    const out = dst + ((<usize>column) << 2);
    switch (type) {
      case Q4_0:
        q4_0.dequantize_native(out, src);
        break;
      case Q4_1:
        q4_1.dequantize_native(out, src);
        break;
      case Q5_0:
        q5_0.dequantize_native(out, src);
        break;
      case Q5_1:
        q5_1.dequantize_native(out, src);
        break;
      case Q8_0:
        q8_0.dequantize_native(out, src);
        break;
      case Q2_K:
        q2_k.dequantize_native(out, src);
        break;
      case Q3_K:
        q3_k.dequantize_native(out, src);
        break;
      case Q4_K:
        q4_k.dequantize_native(out, src);
        break;
      case Q5_K:
        q5_k.dequantize_native(out, src);
        break;
      case Q6_K:
        q6_k.dequantize_native(out, src);
        break;
      case IQ2_XXS:
        iq2_xxs.dequantize_native(out, src, grid);
        break;
      case IQ2_XS:
        iq2_xs.dequantize_native(out, src, grid);
        break;
      case IQ3_XXS:
        iq3_xxs.dequantize_native(out, src, grid);
        break;
      case IQ1_S:
        iq1_s.dequantize_native(out, src, grid);
        break;
      case IQ4_NL:
        iq4_nl.dequantize_native(out, src);
        break;
      case IQ3_S:
        iq3_s.dequantize_native(out, src, grid);
        break;
      case IQ2_S:
        iq2_s.dequantize_native(out, src, grid);
        break;
      case IQ4_XS:
        iq4_xs.dequantize_native(out, src);
        break;
      case IQ1_M:
        iq1_m.dequantize_native(out, src, grid);
        break;
      case TQ1_0:
        tq1_0.dequantize_native(out, src);
        break;
      case TQ2_0:
        tq2_0.dequantize_native(out, src);
        break;
      case MXFP4:
        mxfp4.dequantize_native(out, src);
        break;
      case Q1_0:
        q1_0.dequantize_native(out, src);
        break;
      case Q2_0:
        q2_0.dequantize_native(out, src);
        break;
      default:
        floats.dequantize_native(type, out, src, width);
        break;
    }
    src += nativeBlock;
  }
}
