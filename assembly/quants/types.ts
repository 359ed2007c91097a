/**
 * The weight types: their sizes, and what activations they take. A block of a float type is a whole row. Adding a type
 * takes its file, its id, and its lines here, in load.ts and in products.ts; an activation format if it needs a new one.
 */

import { FORMAT_BF16, FORMAT_F16, FORMAT_F32, FORMAT_Q8_0, FORMAT_Q8_K, FORMAT_Q8_K_WIDE } from '../simd/activations';
import * as floats from './floats';
import {
  BF16,
  F16,
  F32,
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

/** The form in which a product with weights of this type takes activations (simd/activations.ts). */
export function activation_format(type: i32): i32 {
  switch (type) {
    case F32:
      return FORMAT_F32;
    case F16:
      return FORMAT_F16;
    case BF16:
      return FORMAT_BF16;
    case Q4_0:
    case Q4_1:
    case Q5_0:
    case Q5_1:
    case Q8_0:
    case IQ4_NL:
    case MXFP4:
    case Q1_0:
    case Q2_0:
      return FORMAT_Q8_0;
    case Q2_K:
    case Q3_K:
    case Q4_K:
    case Q5_K:
    case Q6_K:
    case IQ2_XXS:
    case IQ2_XS:
    case IQ3_XXS:
    case IQ1_S:
    case IQ3_S:
    case IQ2_S:
    case IQ1_M:
    case TQ1_0:
    case TQ2_0:
      return FORMAT_Q8_K;
    case IQ4_XS:
      return FORMAT_Q8_K_WIDE;
    default:
      return unreachable();
  }
}

/** Whether the product with one token takes stair records (simd/stairs.ts). */
export function takes_stairs(type: i32): bool {
  if (type == Q8_0) return true;
  return !ASC_FEATURE_RELAXED_SIMD && (type == Q4_0 || type == Q4_K || type == Q6_K || type == MXFP4);
}

/** Columns of a block. */
export function block_columns(type: i32, width: i32): i32 {
  switch (type) {
    case F32:
    case F16:
    case BF16:
      return width;
    case Q1_0:
      return q1_0.COLUMNS;
    case Q2_0:
      return q2_0.COLUMNS;
    default:
      return activation_format(type) == FORMAT_Q8_0 ? 32 : 256;
  }
}

/** Bytes of a block of 16 rows. */
export function block_bytes(type: i32, width: i32): usize {
  switch (type) {
    case Q4_0:
      return q4_0.BLOCK;
    case Q4_1:
      return q4_1.BLOCK;
    case Q5_0:
      return q5_0.BLOCK;
    case Q5_1:
      return q5_1.BLOCK;
    case Q8_0:
      return q8_0.BLOCK;
    case Q2_K:
      return q2_k.BLOCK;
    case Q3_K:
      return q3_k.BLOCK;
    case Q4_K:
      return q4_k.BLOCK;
    case Q5_K:
      return q5_k.BLOCK;
    case Q6_K:
      return q6_k.BLOCK;
    case IQ2_XXS:
      return iq2_xxs.BLOCK;
    case IQ2_XS:
      return iq2_xs.BLOCK;
    case IQ3_XXS:
      return iq3_xxs.BLOCK;
    case IQ1_S:
      return iq1_s.BLOCK;
    case IQ4_NL:
      return iq4_nl.BLOCK;
    case IQ3_S:
      return iq3_s.BLOCK;
    case IQ2_S:
      return iq2_s.BLOCK;
    case IQ4_XS:
      return iq4_xs.BLOCK;
    case IQ1_M:
      return iq1_m.BLOCK;
    case TQ1_0:
      return tq1_0.BLOCK;
    case TQ2_0:
      return tq2_0.BLOCK;
    case MXFP4:
      return mxfp4.BLOCK;
    case Q1_0:
      return q1_0.BLOCK;
    case Q2_0:
      return q2_0.BLOCK;
    default:
      return floats.bytes_of(type) * GROUP_ROWS * width;
  }
}

/** Bytes of a block of one row in the file. */
export function native_bytes(type: i32, width: i32): usize {
  switch (type) {
    case Q4_0:
      return q4_0.NATIVE;
    case Q4_1:
      return q4_1.NATIVE;
    case Q5_0:
      return q5_0.NATIVE;
    case Q5_1:
      return q5_1.NATIVE;
    case Q8_0:
      return q8_0.NATIVE;
    case Q2_K:
      return q2_k.NATIVE;
    case Q3_K:
      return q3_k.NATIVE;
    case Q4_K:
      return q4_k.NATIVE;
    case Q5_K:
      return q5_k.NATIVE;
    case Q6_K:
      return q6_k.NATIVE;
    case IQ2_XXS:
      return iq2_xxs.NATIVE;
    case IQ2_XS:
      return iq2_xs.NATIVE;
    case IQ3_XXS:
      return iq3_xxs.NATIVE;
    case IQ1_S:
      return iq1_s.NATIVE;
    case IQ4_NL:
      return iq4_nl.NATIVE;
    case IQ3_S:
      return iq3_s.NATIVE;
    case IQ2_S:
      return iq2_s.NATIVE;
    case IQ4_XS:
      return iq4_xs.NATIVE;
    case IQ1_M:
      return iq1_m.NATIVE;
    case TQ1_0:
      return tq1_0.NATIVE;
    case TQ2_0:
      return tq2_0.NATIVE;
    case MXFP4:
      return mxfp4.NATIVE;
    case Q1_0:
      return q1_0.NATIVE;
    case Q2_0:
      return q2_0.NATIVE;
    default:
      return floats.bytes_of(type) * width;
  }
}

/** Bytes of a group of 16 interleaved rows, `width` columns wide (a multiple of the type's block). */
export function group_bytes(type: i32, width: i32): u32 {
  return <u32>(width / block_columns(type, width)) * <u32>block_bytes(type, width);
}
