/** Types whose codes are looked up in a book or in a grid, and the ternary ones. Source as in dequantize.ts. */

import type { GgmlTypeName } from '../../formats/ggml-types.ts';
import { type Grid, gridOf } from '../grids.ts';
import { halfToFloat } from '../half.ts';
import { type BlockReader, half, nibble32 } from './block-reader.ts';

/** `kvalues_iq4nl` of ggml-common.h. */
export const IQ4 = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113] as const;
/** `kvalues_mxfp4` of ggml-common.h: twice the values of E2M1. */
export const E2M1 = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12] as const;

/** Eight signs from the seven that are kept: their number of minus signs is even. */
export function evenSigns(seven: number): number {
  let parity = 0;
  for (let bits = seven; bits !== 0; bits >>= 1) parity ^= bits & 1;
  return seven | (parity << 7);
}

/** Magnitude of value i of a grid's entry, with the sign that is bit i of `signs`. */
export function signed(grid: Grid, entry: number, i: number, signs: number): number {
  const magnitude = grid.values[(grid.entries[entry]! >> (i * grid.bits)) & ((1 << grid.bits) - 1)]!;
  return (signs >> i) & 1 ? -magnitude : magnitude;
}

/** Base-3 digit n of a byte of TQ1_0, which is 256/243 of the number, rounded up. */
export function ternaryDigit(view: DataView, at: number, n: number): number {
  return (((view.getUint8(at) * 3 ** n) & 255) * 3) >> 8;
}

/** The f16 of IQ1_M: a quarter in the upper bits of each of its four u16 of scales. */
export function iq1mScale(view: DataView, scales: number): number {
  const word = (n: number): number => view.getUint16(scales + 2 * n, true);
  return halfToFloat((word(0) >> 12) | ((word(1) >> 8) & 0xf0) | ((word(2) >> 4) & 0xf00) | (word(3) & 0xf000));
}

export const CODE_BOOK_READERS: Partial<Record<GgmlTypeName, BlockReader>> = {
  // f16 d, nibbles as in Q4_0; d · book[q].
  IQ4_NL: (view, offset, out, at) => {
    const d = half(view, offset);
    for (let i = 0; i < 32; i++) out[at + i] = d * IQ4[nibble32(view, offset + 2, i)]!;
  },
  // An exponent, nibbles as in Q4_0; 2^(e − 128) · book[q].
  MXFP4: (view, offset, out, at) => {
    const d = 2 ** (view.getUint8(offset) - 128);
    for (let i = 0; i < 32; i++) out[at + i] = d * E2M1[nibble32(view, offset + 1, i)]!;
  },
  // f16 d, u16 of upper scale bits, 4 bytes of lower ones, 8 sub-blocks of 16 bytes of nibbles as in Q4_0.
  IQ4_XS: (view, offset, out, at) => {
    const d = half(view, offset);
    const upper = view.getUint16(offset + 2, true);
    for (let sub = 0; sub < 8; sub++) {
      const low = (view.getUint8(offset + 4 + (sub >> 1)) >> (4 * (sub & 1))) & 15;
      const scale = (low | (((upper >> (2 * sub)) & 3) << 4)) - 32;
      for (let i = 0; i < 32; i++) {
        out[at + sub * 32 + i] = d * scale * IQ4[nibble32(view, offset + 8 + sub * 16, i)]!;
      }
    }
  },
  // 48 bytes of five base-3 digits, 4 bytes of four, f16 d; d · (q − 1). A byte is 256/243 of its number, rounded up.
  TQ1_0: (view, offset, out, at) => {
    const d = half(view, offset + 52);
    const digit = (byte: number, n: number): number => ternaryDigit(view, offset + byte, n);
    for (let i = 0; i < 160; i++) out[at + i] = d * (digit(i & 31, i >> 5) - 1);
    for (let i = 0; i < 80; i++) out[at + 160 + i] = d * (digit(32 + (i & 15), i >> 4) - 1);
    for (let i = 0; i < 16; i++) out[at + 240 + i] = d * (digit(48 + (i & 3), i >> 2) - 1);
  },
  // 64 bytes of bit pairs as in Q2_K, f16 d; d · (q − 1).
  TQ2_0: (view, offset, out, at) => {
    const d = half(view, offset + 64);
    for (let i = 0; i < 256; i++) {
      out[at + i] = d * (((view.getUint8(offset + (i >> 7) * 32 + (i & 31)) >> (2 * ((i >> 5) & 3))) & 3) - 1);
    }
  },
  // f16 d, 8 times: four grid indices, u32 of four times 7 signs and a scale above them.
  IQ2_XXS: (view, offset, out, at) => {
    const d = half(view, offset);
    const grid = gridOf('IQ2_XXS');
    for (let sub = 0; sub < 8; sub++) {
      const indices = offset + 2 + sub * 8;
      const rest = view.getUint32(indices + 4, true);
      const scale = d * (0.5 + (rest >>> 28)) * 0.25;
      for (let i = 0; i < 32; i++) {
        const signs = evenSigns((rest >>> (7 * (i >> 3))) & 127);
        out[at + sub * 32 + i] = scale * signed(grid, view.getUint8(indices + (i >> 3)), i & 7, signs);
      }
    }
  },
  // f16 d, 32 u16 of a 9-bit grid index and 7 signs, 8 bytes of scale nibbles, one for 16 values.
  IQ2_XS: (view, offset, out, at) => {
    const d = half(view, offset);
    const grid = gridOf('IQ2_XS');
    for (let i = 0; i < 256; i++) {
      const word = view.getUint16(offset + 2 + 2 * (i >> 3), true);
      const scale = (view.getUint8(offset + 66 + (i >> 5)) >> (4 * ((i >> 4) & 1))) & 15;
      out[at + i] = d * (0.5 + scale) * 0.25 * signed(grid, word & 511, i & 7, evenSigns(word >> 9));
    }
  },
  // f16 d, 32 low bytes of grid indices, 32 bytes of signs, 8 of the indices' upper bit pairs, 8 of scale nibbles.
  IQ2_S: (view, offset, out, at) => {
    const d = half(view, offset);
    const grid = gridOf('IQ2_S');
    for (let i = 0; i < 256; i++) {
      const entry = i >> 3;
      const upper = (view.getUint8(offset + 66 + (entry >> 2)) >> (2 * (entry & 3))) & 3;
      const scale = (view.getUint8(offset + 74 + (i >> 5)) >> (4 * ((i >> 4) & 1))) & 15;
      const index = view.getUint8(offset + 2 + entry) | (upper << 8);
      out[at + i] = d * (0.5 + scale) * 0.25 * signed(grid, index, i & 7, view.getUint8(offset + 34 + entry));
    }
  },
  // f16 d, 64 grid indices of four values, 8 u32 of four times 7 signs and a scale above them.
  IQ3_XXS: (view, offset, out, at) => {
    const d = half(view, offset);
    const grid = gridOf('IQ3_XXS');
    for (let i = 0; i < 256; i++) {
      const rest = view.getUint32(offset + 66 + 4 * (i >> 5), true);
      const signs = evenSigns((rest >>> (7 * ((i >> 3) & 3))) & 127) >> (i & 4);
      const value = signed(grid, view.getUint8(offset + 2 + (i >> 2)), i & 3, signs);
      out[at + i] = d * (0.5 + (rest >>> 28)) * 0.5 * value;
    }
  },
  // f16 d, 64 low bytes of grid indices, 8 of their ninth bits, 32 of signs, 4 of scale nibbles.
  IQ3_S: (view, offset, out, at) => {
    const d = half(view, offset);
    const grid = gridOf('IQ3_S');
    for (let i = 0; i < 256; i++) {
      const entry = i >> 2;
      const ninth = (view.getUint8(offset + 66 + (entry >> 3)) >> (entry & 7)) & 1;
      const signs = view.getUint8(offset + 74 + (i >> 3)) >> (i & 4);
      const scale = (view.getUint8(offset + 106 + (i >> 6)) >> (4 * ((i >> 5) & 1))) & 15;
      const index = view.getUint8(offset + 2 + entry) | (ninth << 8);
      out[at + i] = d * (1 + 2 * scale) * signed(grid, index, i & 3, signs);
    }
  },
  // f16 d, 32 low bytes of grid indices, 8 u16: four times 3 upper bits, 3 bits of scale, the sign of delta.
  IQ1_S: (view, offset, out, at) => {
    const d = half(view, offset);
    const grid = gridOf('IQ1_S');
    for (let i = 0; i < 256; i++) {
      const word = view.getUint16(offset + 34 + 2 * (i >> 5), true);
      const index = view.getUint8(offset + 2 + (i >> 3)) | (((word >> (3 * ((i >> 3) & 3))) & 7) << 8);
      const delta = word & 0x8000 ? -0.125 : 0.125;
      out[at + i] = d * (2 * ((word >> 12) & 7) + 1) * (signed(grid, index, i & 7, 0) + delta);
    }
  },
  // 32 low bytes of grid indices, 16 bytes: two times 3 upper bits and the sign of delta, 4 u16: four times 3 bits of
  // scale, one for 16 values, and a quarter of the f16 d.
  IQ1_M: (view, offset, out, at) => {
    const word = (n: number): number => view.getUint16(offset + 48 + 2 * n, true);
    const d = iq1mScale(view, offset + 48);
    const grid = gridOf('IQ1_M');
    for (let i = 0; i < 256; i++) {
      const upper = (view.getUint8(offset + 32 + (i >> 4)) >> (4 * ((i >> 3) & 1))) & 15;
      const index = view.getUint8(offset + (i >> 3)) | ((upper & 7) << 8);
      const scale = (word(i >> 6) >> (3 * ((i >> 4) & 3))) & 7;
      out[at + i] = d * (2 * scale + 1) * (signed(grid, index, i & 7, 0) + (upper & 8 ? -0.125 : 0.125));
    }
  },
};
