/** Products of activations with a group of 16 rows: one token, or a tile for many. */

import { SEGMENT } from '../simd/activations';
import { tile_f32 } from '../simd/tile-f32';
import { BLOCK_MINIMUM, MINIMA_16, MINIMA_32, NO_MINIMA, tile_i16 } from '../simd/tile-i16';
import { terms, tile_u7_blocks, tile_u7_super, WITH_MINIMUM } from '../simd/tile-u7';
import * as floats from './floats';
import {
  BF16,
  F16,
  F32,
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

/** One token times a group: 16 f32 at TILE_RESULTS. `step` is the distance of a segment of activations to the next one. */
export function decode_group(type: i32, scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  switch (type) {
    case F32:
      floats.decode_f32(scratch, group, x, width);
      break;
    case F16:
      floats.decode_f16(scratch, group, x, width);
      break;
    case BF16:
      floats.decode_bf16(scratch, group, x, width);
      break;
    case Q4_0:
      q4_0.decode(scratch, group, x, step, width);
      break;
    case Q4_1:
      q4_1.decode(scratch, group, x, step, width);
      break;
    case Q5_0:
      q5_0.decode(scratch, group, x, step, width);
      break;
    case Q5_1:
      q5_1.decode(scratch, group, x, step, width);
      break;
    case Q8_0:
      q8_0.decode(scratch, group, x, step, width);
      break;
    case Q2_K:
      q2_k.decode(scratch, group, x, step, width);
      break;
    case Q3_K:
      q3_k.decode(scratch, group, x, step, width);
      break;
    case Q4_K:
      q4_k.decode(scratch, group, x, step, width);
      break;
    case Q5_K:
      q5_k.decode(scratch, group, x, step, width);
      break;
    case Q6_K:
      q6_k.decode(scratch, group, x, step, width);
      break;
    case IQ2_XXS:
      iq2_xxs.decode(scratch, group, x, step, width);
      break;
    case IQ2_XS:
      iq2_xs.decode(scratch, group, x, step, width);
      break;
    case IQ3_XXS:
      iq3_xxs.decode(scratch, group, x, step, width);
      break;
    case IQ1_S:
      iq1_s.decode(scratch, group, x, step, width);
      break;
    case IQ4_NL:
      iq4_nl.decode(scratch, group, x, step, width);
      break;
    case IQ3_S:
      iq3_s.decode(scratch, group, x, step, width);
      break;
    case IQ2_S:
      iq2_s.decode(scratch, group, x, step, width);
      break;
    case IQ4_XS:
      iq4_xs.decode(scratch, group, x, step, width);
      break;
    case IQ1_M:
      iq1_m.decode(scratch, group, x, step, width);
      break;
    case TQ1_0:
      tq1_0.decode(scratch, group, x, step, width);
      break;
    case TQ2_0:
      tq2_0.decode(scratch, group, x, step, width);
      break;
    case MXFP4:
      mxfp4.decode(scratch, group, x, step, width);
      break;
    case Q1_0:
      q1_0.decode(scratch, group, x, step, width);
      break;
    case Q2_0:
      q2_0.decode(scratch, group, x, step, width);
      break;
    default:
      unreachable();
  }
}

/**
 * Adds the products of `count` tokens (TILE_TOKENS) with `columns` columns of a group, those of segment number
 * `segment`, to TILE_RESULTS.
 */
export function tile_segment(
  type: i32,
  scratch: usize,
  group: usize,
  segment: i32,
  step: usize,
  columns: i32,
  count: i32,
): void {
  const at = <usize>segment * step;
  const blocks = columns >> 5;
  switch (type) {
    case F32:
      tile_f32(scratch, group + <usize>segment * (SEGMENT << 6), count, at, columns);
      break;
    case F16:
    case BF16:
      floats.unpack(type, scratch, group + <usize>segment * (SEGMENT << 5), columns);
      tile_f32(scratch, scratch, count, at, columns);
      break;
    case Q4_0:
      q4_0.unpack(scratch, group + <usize>(segment << 3) * q4_0.BLOCK, blocks);
      tile_blocks(scratch, count, at, blocks, 0, 15);
      break;
    case Q4_1:
      q4_1.unpack(scratch, group + <usize>(segment << 3) * q4_1.BLOCK, blocks);
      tile_blocks(scratch, count, at, blocks, WITH_MINIMUM, 15);
      break;
    case Q5_0:
      q5_0.unpack(scratch, group + <usize>(segment << 3) * q5_0.BLOCK, blocks);
      tile_blocks(scratch, count, at, blocks, 1, 31);
      break;
    case Q5_1:
      q5_1.unpack(scratch, group + <usize>(segment << 3) * q5_1.BLOCK, blocks);
      tile_blocks(scratch, count, at, blocks, WITH_MINIMUM, 31);
      break;
    case Q8_0:
      q8_0.unpack(scratch, group + <usize>(segment << 3) * q8_0.BLOCK, blocks);
      tile_i16(scratch, count, at, blocks, 16, NO_MINIMA);
      break;
    case Q2_K:
      q2_k.unpack(scratch, group + <usize>segment * q2_k.BLOCK);
      tile_super(scratch, count, at, 16, WITH_MINIMUM, 3);
      break;
    case Q3_K:
      q3_k.unpack(scratch, group + <usize>segment * q3_k.BLOCK);
      tile_super(scratch, count, at, 16, 6, 67);
      break;
    case Q4_K:
      q4_k.unpack(scratch, group + <usize>segment * q4_k.BLOCK);
      tile_super(scratch, count, at, 32, WITH_MINIMUM, 15);
      break;
    case Q5_K:
      q5_k.unpack(scratch, group + <usize>segment * q5_k.BLOCK);
      tile_super(scratch, count, at, 32, WITH_MINIMUM, 31);
      break;
    case Q6_K:
      q6_k.unpack(scratch, group + <usize>segment * q6_k.BLOCK);
      tile_super(scratch, count, at, 16, 5, 63);
      break;
    case IQ2_XXS:
      iq2_xxs.unpack(scratch, group + <usize>segment * iq2_xxs.BLOCK);
      tile_super(scratch, count, at, 16, 6, 127);
      break;
    case IQ2_XS:
      iq2_xs.unpack(scratch, group + <usize>segment * iq2_xs.BLOCK);
      tile_super(scratch, count, at, 16, 6, 127);
      break;
    case IQ3_XXS:
      iq3_xxs.unpack(scratch, group + <usize>segment * iq3_xxs.BLOCK);
      tile_super(scratch, count, at, 32, 6, 127);
      break;
    case IQ1_S:
      iq1_s.unpack(scratch, group + <usize>segment * iq1_s.BLOCK);
      tile_super(scratch, count, at, 16, 6, 127);
      break;
    case IQ4_NL:
      iq4_nl.unpack(scratch, group + <usize>(segment << 3) * iq4_nl.BLOCK, blocks);
      tile_i16(scratch, count, at, blocks, 16, NO_MINIMA);
      break;
    case IQ3_S:
      iq3_s.unpack(scratch, group + <usize>segment * iq3_s.BLOCK);
      tile_super(scratch, count, at, 32, 6, 127);
      break;
    case IQ2_S:
      iq2_s.unpack(scratch, group + <usize>segment * iq2_s.BLOCK);
      tile_super(scratch, count, at, 16, 6, 127);
      break;
    case IQ4_XS:
      iq4_xs.unpack(scratch, group + <usize>segment * iq4_xs.BLOCK);
      tile_i16(scratch, count, at, 1, 128, NO_MINIMA);
      break;
    case IQ1_M:
      iq1_m.unpack(scratch, group + <usize>segment * iq1_m.BLOCK);
      tile_super(scratch, count, at, 16, 6, 127);
      break;
    case TQ1_0:
      tq1_0.unpack(scratch, group + <usize>segment * tq1_0.BLOCK);
      tile_super(scratch, count, at, 16, 0, 2);
      break;
    case TQ2_0:
      tq2_0.unpack(scratch, group + <usize>segment * tq2_0.BLOCK);
      tile_super(scratch, count, at, 16, 0, 2);
      break;
    case MXFP4:
      mxfp4.unpack(scratch, group + <usize>(segment << 3) * mxfp4.BLOCK, blocks);
      tile_blocks(scratch, count, at, blocks, mxfp4.SHIFT, 28);
      break;
    case Q1_0:
      q1_0.unpack(scratch, group + <usize>(segment << 1) * q1_0.BLOCK, blocks);
      tile_blocks(scratch, count, at, blocks, 0, 15);
      break;
    case Q2_0:
      q2_0.unpack(scratch, group + <usize>(segment << 2) * q2_0.BLOCK, blocks);
      tile_blocks(scratch, count, at, blocks, 0, 15);
      break;
    default:
      unreachable();
  }
}

/** Blocks of 32 columns of weights up to `maximum`: with minima (WITH_MINIMUM), or in the relaxed build with an offset of 8 · 2^shift. */
function tile_blocks(scratch: usize, count: i32, segment: usize, blocks: i32, shift: i32, maximum: i32): void {
  if (ASC_FEATURE_RELAXED_SIMD) tile_u7_blocks(scratch, count, segment, blocks, shift, terms(maximum));
  else tile_i16(scratch, count, segment, blocks, 16, shift == WITH_MINIMUM ? BLOCK_MINIMUM : NO_MINIMA);
}

/** Superblocks with sub-blocks of `columns` columns of weights up to `maximum`: with minima, or in the relaxed build with an offset of 2^shift. */
function tile_super(scratch: usize, count: i32, segment: usize, columns: i32, shift: i32, maximum: i32): void {
  if (ASC_FEATURE_RELAXED_SIMD) {
    tile_u7_super(scratch, count, segment, columns, shift, min(terms(maximum), columns >> 2));
  } else if (shift != WITH_MINIMUM) tile_i16(scratch, count, segment, 1, 128, NO_MINIMA);
  else tile_i16(scratch, count, segment, 1, 128, columns == 32 ? MINIMA_32 : MINIMA_16);
}
