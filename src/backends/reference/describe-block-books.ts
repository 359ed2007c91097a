/** The types of dequantize-books.ts taken apart; a quant is what the book or the grid says. */

import type { GgmlTypeName } from '../../formats/ggml-types.ts';
import { type Grid, gridOf } from '../grids.ts';
import { type BlockLayout, each } from './block-layout.ts';
import { half, nibble32 } from './block-reader.ts';
import { E2M1, evenSigns, IQ4, iq1mScale, signed, ternaryDigit } from './dequantize-books.ts';

const nibble = (view: DataView, at: number, i: number): number => (view.getUint8(at + (i >> 1)) >> (4 * (i & 1))) & 15;

/** Blocks of 256 with d first, groups whose scale is d times (bias + code) · factor, and signed values of a grid. */
function gridded(
  name: 'IQ2_XXS' | 'IQ2_XS' | 'IQ2_S' | 'IQ3_XXS' | 'IQ3_S',
  fields: BlockLayout['fields'],
  groupSize: number,
  scale: (code: number) => number,
  code: (view: DataView, offset: number, group: number) => number,
  quant: (grid: Grid, view: DataView, offset: number, i: number) => number,
): Partial<Record<GgmlTypeName, BlockLayout>> {
  const read: BlockLayout['read'] = (view, offset) => {
    const d = half(view, offset);
    const grid = gridOf(name);
    const scaleCodes = each(256 / groupSize, (group) => code(view, offset, group));
    return {
      factors: { d },
      scaleCodes,
      scales: scaleCodes.map((stored) => d * scale(stored)),
      quants: each(256, (i) => quant(grid, view, offset, i)),
    };
  };
  return { [name]: { fields, groupSize, read } };
}

export const BOOK_DESCRIPTIONS: Partial<Record<GgmlTypeName, BlockLayout>> = {
  IQ4_NL: {
    fields: { d: 2, qs: 16 },
    groupSize: 32,
    read: (view, offset) => {
      const d = half(view, offset);
      return { factors: { d }, scales: [d], quants: each(32, (i) => IQ4[nibble32(view, offset + 2, i)]!) };
    },
  },
  MXFP4: {
    fields: { e: 1, qs: 16 },
    groupSize: 32,
    read: (view, offset) => {
      const e = view.getUint8(offset);
      const quants = each(32, (i) => E2M1[nibble32(view, offset + 1, i)]!);
      return { factors: { e }, scales: [2 ** (e - 128)], quants };
    },
  },
  IQ4_XS: {
    fields: { d: 2, scales_h: 2, scales_l: 4, qs: 128 },
    groupSize: 32,
    read: (view, offset) => {
      const d = half(view, offset);
      const upper = view.getUint16(offset + 2, true);
      const scaleCodes = each(8, (sub) => (nibble(view, offset + 4, sub) | (((upper >> (2 * sub)) & 3) << 4)) - 32);
      return {
        factors: { d },
        scaleCodes,
        scales: scaleCodes.map((code) => d * code),
        quants: each(256, (i) => IQ4[nibble32(view, offset + 8 + (i >> 5) * 16, i & 31)]!),
      };
    },
  },
  TQ1_0: {
    fields: { qs: 48, qh: 4, d: 2 },
    groupSize: 256,
    read: (view, offset) => {
      const d = half(view, offset + 52);
      const quants = each(256, (i) => {
        if (i < 160) return ternaryDigit(view, offset + (i & 31), i >> 5) - 1;
        if (i < 240) return ternaryDigit(view, offset + 32 + (i & 15), (i - 160) >> 4) - 1;
        return ternaryDigit(view, offset + 48 + (i & 3), (i - 240) >> 2) - 1;
      });
      return { factors: { d }, scales: [d], quants };
    },
  },
  TQ2_0: {
    fields: { qs: 64, d: 2 },
    groupSize: 256,
    read: (view, offset) => {
      const d = half(view, offset + 64);
      const quants = each(
        256,
        (i) => ((view.getUint8(offset + (i >> 7) * 32 + (i & 31)) >> (2 * ((i >> 5) & 3))) & 3) - 1,
      );
      return { factors: { d }, scales: [d], quants };
    },
  },
  ...gridded(
    'IQ2_XXS',
    { d: 2, qs: 64 },
    32,
    (code) => (0.5 + code) * 0.25,
    (view, offset, group) => view.getUint32(offset + 2 + group * 8 + 4, true) >>> 28,
    (grid, view, offset, i) => {
      const indices = offset + 2 + (i >> 5) * 8;
      const signs = evenSigns((view.getUint32(indices + 4, true) >>> (7 * ((i >> 3) & 3))) & 127);
      return signed(grid, view.getUint8(indices + ((i >> 3) & 3)), i & 7, signs);
    },
  ),
  ...gridded(
    'IQ2_XS',
    { d: 2, qs: 64, scales: 8 },
    16,
    (code) => (0.5 + code) * 0.25,
    (view, offset, group) => nibble(view, offset + 66, group),
    (grid, view, offset, i) => {
      const word = view.getUint16(offset + 2 + 2 * (i >> 3), true);
      return signed(grid, word & 511, i & 7, evenSigns(word >> 9));
    },
  ),
  ...gridded(
    'IQ2_S',
    { d: 2, qs: 32, signs: 32, qh: 8, scales: 8 },
    16,
    (code) => (0.5 + code) * 0.25,
    (view, offset, group) => nibble(view, offset + 74, group),
    (grid, view, offset, i) => {
      const entry = i >> 3;
      const upper = (view.getUint8(offset + 66 + (entry >> 2)) >> (2 * (entry & 3))) & 3;
      const index = view.getUint8(offset + 2 + entry) | (upper << 8);
      return signed(grid, index, i & 7, view.getUint8(offset + 34 + entry));
    },
  ),
  ...gridded(
    'IQ3_XXS',
    { d: 2, qs: 64, scales_and_signs: 32 },
    32,
    (code) => (0.5 + code) * 0.5,
    (view, offset, group) => view.getUint32(offset + 66 + 4 * group, true) >>> 28,
    (grid, view, offset, i) => {
      const rest = view.getUint32(offset + 66 + 4 * (i >> 5), true);
      const signs = evenSigns((rest >>> (7 * ((i >> 3) & 3))) & 127) >> (i & 4);
      return signed(grid, view.getUint8(offset + 2 + (i >> 2)), i & 3, signs);
    },
  ),
  ...gridded(
    'IQ3_S',
    { d: 2, qs: 64, qh: 8, signs: 32, scales: 4 },
    32,
    (code) => 1 + 2 * code,
    (view, offset, group) => nibble(view, offset + 106, group),
    (grid, view, offset, i) => {
      const entry = i >> 2;
      const ninth = (view.getUint8(offset + 66 + (entry >> 3)) >> (entry & 7)) & 1;
      const signs = view.getUint8(offset + 74 + (i >> 3)) >> (i & 4);
      return signed(grid, view.getUint8(offset + 2 + entry) | (ninth << 8), i & 3, signs);
    },
  ),
  IQ1_S: {
    fields: { d: 2, qs: 32, qh: 16 },
    groupSize: 32,
    read: (view, offset) => {
      const d = half(view, offset);
      const grid = gridOf('IQ1_S');
      const word = (group: number): number => view.getUint16(offset + 34 + 2 * group, true);
      const scaleCodes = each(8, (group) => (word(group) >> 12) & 7);
      const scales = scaleCodes.map((code) => d * (2 * code + 1));
      return {
        factors: { d },
        scaleCodes,
        scales,
        offsets: scales.map((scale, group) => scale * (word(group) & 0x8000 ? -0.125 : 0.125)),
        quants: each(256, (i) => {
          const upper = (word(i >> 5) >> (3 * ((i >> 3) & 3))) & 7;
          return signed(grid, view.getUint8(offset + 2 + (i >> 3)) | (upper << 8), i & 7, 0);
        }),
      };
    },
  },
  IQ1_M: {
    fields: { qs: 32, qh: 16, scales: 8 },
    // Two groups of 8 share a scale, but not an offset.
    groupSize: 8,
    read: (view, offset) => {
      const d = iq1mScale(view, offset + 48);
      const grid = gridOf('IQ1_M');
      const scaleCodes = each(32, (group) => {
        const word = view.getUint16(offset + 48 + 2 * (group >> 3), true);
        return (word >> (3 * ((group >> 1) & 3))) & 7;
      });
      const scales = scaleCodes.map((code) => d * (2 * code + 1));
      const upper = (group: number): number => nibble(view, offset + 32, group);
      return {
        factors: { d },
        scaleCodes,
        scales,
        offsets: scales.map((scale, group) => scale * (upper(group) & 8 ? -0.125 : 0.125)),
        quants: each(256, (i) => {
          const group = i >> 3;
          return signed(grid, view.getUint8(offset + group) | ((upper(group) & 7) << 8), i & 7, 0);
        }),
      };
    },
  },
};
