/**
 * What is left of an activation after the quantisation that precedes a product, as ggml does it for each weight
 * type: `vec_dot_type` in ggml-cpu.c, `quantize_row_q8_K` and `quantize_row_q8_0` in ggml-quants.c.
 */

import type { GgmlTypeName } from '../../formats/ggml-types.ts';
import { bfloatToFloat, floatToBfloat, floatToHalf, halfToFloat, roundEven } from '../half.ts';

/** Rounds `width` values of `x` from `at` on, in place, as a product with weights of `type` sees them. */
export function roundTrip(type: GgmlTypeName, x: Float32Array, at: number, width: number): void {
  switch (type) {
    case 'F32':
      return;
    case 'F16':
      for (let i = at; i < at + width; i++) x[i] = halfToFloat(floatToHalf(x[i]!));
      return;
    case 'BF16':
      for (let i = at; i < at + width; i++) x[i] = bfloatToFloat(floatToBfloat(x[i]!));
      return;
    // Q8_1 holds the same values as Q8_0.
    case 'Q4_0':
    case 'Q4_1':
    case 'Q5_0':
    case 'Q5_1':
    case 'Q8_0':
    case 'IQ4_NL':
    case 'MXFP4':
    case 'Q1_0':
    case 'Q2_0':
      for (let block = at; block < at + width; block += 32) roundTripQ8_0(x, block);
      return;
    case 'Q2_K':
    case 'Q3_K':
    case 'Q4_K':
    case 'Q5_K':
    case 'Q6_K':
    case 'IQ1_S':
    case 'IQ1_M':
    case 'IQ2_XXS':
    case 'IQ2_XS':
    case 'IQ2_S':
    case 'IQ3_XXS':
    case 'IQ3_S':
    case 'IQ4_XS':
    case 'TQ1_0':
    case 'TQ2_0':
      for (let block = at; block < at + width; block += 256) roundTripQ8K(x, block);
      return;
    default:
      throw new Error(`no activation format for ${type}`);
  }
}

/** Blocks of 32: d = max |x| / 127, kept as f16. */
function roundTripQ8_0(x: Float32Array, at: number): void {
  let largest = 0;
  for (let i = at; i < at + 32; i++) largest = Math.max(largest, Math.abs(x[i]!));
  const scale = halfToFloat(floatToHalf(Math.fround(largest / 127)));
  const quotient = Math.fround(127 / largest);
  // Zeros, or so small that the inverse overflows: nothing is left.
  const inverse = Number.isFinite(quotient) ? quotient : 0;
  for (let i = at; i < at + 32; i++) x[i] = roundEven(Math.fround(x[i]! * inverse)) * scale;
}

/** Blocks of 256: the value of largest magnitude becomes −127; d stays f32. */
function roundTripQ8K(x: Float32Array, at: number): void {
  let largest = 0;
  for (let i = at; i < at + 256; i++) if (Math.abs(x[i]!) > Math.abs(largest)) largest = x[i]!;
  const inverse = Math.fround(-127 / largest);
  // Zeros, or so small that the inverse overflows: nothing is left.
  if (!Number.isFinite(inverse)) {
    x.fill(0, at, at + 256);
    return;
  }
  const scale = Math.fround(1 / inverse);
  for (let i = at; i < at + 256; i++) x[i] = Math.min(127, roundEven(Math.fround(x[i]! * inverse))) * scale;
}
