/** The block types of dequantize.ts taken apart; what comes out must give its values. */

import type { GgmlTypeName } from '../../formats/ggml-types.ts';
import { type BlockLayout, type BlockParts, each } from './block-layout.ts';
import { half, nibble32 } from './block-reader.ts';
import { q3Scale, scaleMinimum } from './dequantize.ts';
import { BOOK_DESCRIPTIONS } from './describe-block-books.ts';

/** One scale, and an offset where there is one, for the whole block. */
function plain(
  fields: BlockLayout['fields'],
  values: number,
  quant: (view: DataView, offset: number, i: number) => number,
  withMinimum = false,
): BlockLayout {
  return {
    fields,
    groupSize: values,
    read: (view, offset): BlockParts => {
      const d = half(view, offset);
      const quants = each(values, (i) => quant(view, offset, i));
      if (!withMinimum) return { factors: { d }, scales: [d], quants };
      const m = half(view, offset + 2);
      return { factors: { d, m }, scales: [d], offsets: [m], quants };
    },
  };
}

const fifth = (view: DataView, at: number, i: number): number => ((view.getUint32(at, true) >>> i) & 1) << 4;

/** Bit pair of value i of 256: halves of 128, in each four runs of 32 that share the bytes. */
const pair = (view: DataView, at: number, i: number): number =>
  (view.getUint8(at + (i >> 7) * 32 + (i & 31)) >> (2 * ((i >> 5) & 3))) & 3;

/** Q4_K and Q5_K. */
function fourBits(fields: BlockLayout['fields'], nibbles: number, high?: number): BlockLayout {
  return {
    fields,
    groupSize: 32,
    read: (view, offset) => {
      const [d, dmin] = [half(view, offset), half(view, offset + 2)];
      const codes = Array.from({ length: 8 }, (_, sub) => scaleMinimum(view, offset + 4, sub));
      return {
        factors: { d, dmin },
        scaleCodes: codes.map(([scale]) => scale),
        minimumCodes: codes.map(([, minimum]) => minimum),
        scales: codes.map(([scale]) => d * scale),
        offsets: codes.map(([, minimum]) => -dmin * minimum),
        quants: each(256, (i) => {
          const sub = i >> 5;
          const low = (view.getUint8(offset + nibbles + (sub >> 1) * 32 + (i & 31)) >> (4 * (sub & 1))) & 15;
          return high === undefined ? low : low | (((view.getUint8(offset + high + (i & 31)) >> sub) & 1) << 4);
        }),
      };
    },
  };
}

const LAYOUTS: Partial<Record<GgmlTypeName, BlockLayout>> = {
  ...BOOK_DESCRIPTIONS,
  Q4_0: plain({ d: 2, qs: 16 }, 32, (view, at, i) => nibble32(view, at + 2, i) - 8),
  Q4_1: plain({ d: 2, m: 2, qs: 16 }, 32, (view, at, i) => nibble32(view, at + 4, i), true),
  Q5_0: plain({ d: 2, qh: 4, qs: 16 }, 32, (view, at, i) => (nibble32(view, at + 6, i) | fifth(view, at + 2, i)) - 16),
  Q5_1: plain(
    { d: 2, m: 2, qh: 4, qs: 16 },
    32,
    (view, at, i) => nibble32(view, at + 8, i) | fifth(view, at + 4, i),
    true,
  ),
  Q8_0: plain({ d: 2, qs: 32 }, 32, (view, at, i) => view.getInt8(at + 2 + i)),
  Q1_0: plain({ d: 2, qs: 16 }, 128, (view, at, i) => ((view.getUint8(at + 2 + (i >> 3)) >> (i & 7)) & 1 ? 1 : -1)),
  Q2_0: plain({ d: 2, qs: 16 }, 64, (view, at, i) => ((view.getUint8(at + 2 + (i >> 2)) >> (2 * (i & 3))) & 3) - 1),
  Q2_K: {
    fields: { scales: 16, qs: 64, d: 2, dmin: 2 },
    groupSize: 16,
    read: (view, offset) => {
      const [d, dmin] = [half(view, offset + 80), half(view, offset + 82)];
      const scaleCodes = each(16, (g) => view.getUint8(offset + g) & 15);
      const minimumCodes = each(16, (g) => view.getUint8(offset + g) >> 4);
      return {
        factors: { d, dmin },
        scaleCodes,
        minimumCodes,
        scales: scaleCodes.map((code) => d * code),
        offsets: minimumCodes.map((code) => -dmin * code),
        quants: each(256, (i) => pair(view, offset + 16, i)),
      };
    },
  },
  Q3_K: {
    fields: { hmask: 32, qs: 64, scales: 12, d: 2 },
    groupSize: 16,
    read: (view, offset) => {
      const d = half(view, offset + 108);
      const scaleCodes = each(16, (g) => q3Scale(view, offset + 96, g));
      return {
        factors: { d },
        scaleCodes,
        scales: scaleCodes.map((code) => d * code),
        quants: each(256, (i) => {
          const third = (view.getUint8(offset + (i & 31)) >> (i >> 5)) & 1;
          return (pair(view, offset + 32, i) | (third << 2)) - 4;
        }),
      };
    },
  },
  Q4_K: fourBits({ d: 2, dmin: 2, scales: 12, qs: 128 }, 16),
  Q5_K: fourBits({ d: 2, dmin: 2, scales: 12, qh: 32, qs: 128 }, 48, 16),
  Q6_K: {
    fields: { ql: 128, qh: 64, scales: 16, d: 2 },
    groupSize: 16,
    read: (view, offset) => {
      const d = half(view, offset + 208);
      const scaleCodes = each(16, (g) => view.getInt8(offset + 192 + g));
      return {
        factors: { d },
        scaleCodes,
        scales: scaleCodes.map((code) => d * code),
        quants: each(256, (i) => {
          const run = (i >> 5) & 3;
          const low = view.getUint8(offset + (i >> 7) * 64 + (run & 1) * 32 + (i & 31)) >> (run >= 2 ? 4 : 0);
          return ((low & 15) | (pair(view, offset + 128, i) << 4)) - 32;
        }),
      };
    },
  },
};

/** How a block of that type is made; undefined for types without blocks, and for those without a decoder. */
export function blockLayout(type: GgmlTypeName): BlockLayout | undefined {
  return LAYOUTS[type];
}
