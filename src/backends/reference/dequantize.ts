/**
 * Weights to f32, one block after the other, as the formats are defined: block structs and `dequantize_row_*` of
 * ggml-quants.c. Slow and plain on purpose: the fast kernels are held against this.
 */

import type { GgmlTypeName } from '../../formats/ggml-types.ts';
import { bfloatToFloat } from '../half.ts';
import { type BlockReader, half, nibble32 } from './block-reader.ts';
import { CODE_BOOK_READERS } from './dequantize-books.ts';

const READERS: Partial<Record<GgmlTypeName, BlockReader>> = {
  ...CODE_BOOK_READERS,
  F32: (view, offset, out, at) => {
    out[at] = view.getFloat32(offset, true);
  },
  F16: (view, offset, out, at) => {
    out[at] = half(view, offset);
  },
  BF16: (view, offset, out, at) => {
    out[at] = bfloatToFloat(view.getUint16(offset, true));
  },
  // f16 d, 16 bytes: low nibbles are values 0–15, high ones 16–31; d · (q − 8).
  Q4_0: (view, offset, out, at) => {
    const d = half(view, offset);
    for (let i = 0; i < 16; i++) {
      const byte = view.getUint8(offset + 2 + i);
      out[at + i] = d * ((byte & 15) - 8);
      out[at + 16 + i] = d * ((byte >> 4) - 8);
    }
  },
  // f16 d, f16 m, nibbles as in Q4_0; d · q + m.
  Q4_1: (view, offset, out, at) => {
    const d = half(view, offset);
    const m = half(view, offset + 2);
    for (let i = 0; i < 32; i++) out[at + i] = d * nibble32(view, offset + 4, i) + m;
  },
  // f16 d, u32 of fifth bits, nibbles as in Q4_0; d · (q − 16).
  Q5_0: (view, offset, out, at) => {
    const d = half(view, offset);
    const fifth = view.getUint32(offset + 2, true);
    for (let i = 0; i < 32; i++) {
      out[at + i] = d * ((nibble32(view, offset + 6, i) | (((fifth >>> i) & 1) << 4)) - 16);
    }
  },
  // f16 d, f16 m, u32 of fifth bits, nibbles as in Q4_0; d · q + m.
  Q5_1: (view, offset, out, at) => {
    const d = half(view, offset);
    const m = half(view, offset + 2);
    const fifth = view.getUint32(offset + 4, true);
    for (let i = 0; i < 32; i++) {
      out[at + i] = d * (nibble32(view, offset + 8, i) | (((fifth >>> i) & 1) << 4)) + m;
    }
  },
  // f16 d, 16 bytes of bits; d when set, −d when not.
  Q1_0: (view, offset, out, at) => {
    const d = half(view, offset);
    for (let i = 0; i < 128; i++) out[at + i] = (view.getUint8(offset + 2 + (i >> 3)) >> (i & 7)) & 1 ? d : -d;
  },
  // f16 d, 16 bytes of bit pairs; d · (q − 1).
  Q2_0: (view, offset, out, at) => {
    const d = half(view, offset);
    for (let i = 0; i < 64; i++) {
      out[at + i] = d * (((view.getUint8(offset + 2 + (i >> 2)) >> (2 * (i & 3))) & 3) - 1);
    }
  },
  // f16 d, 32 signed bytes; d · q.
  Q8_0: (view, offset, out, at) => {
    const d = half(view, offset);
    for (let i = 0; i < 32; i++) out[at + i] = d * view.getInt8(offset + 2 + i);
  },
  // 16 bytes of scale and minimum nibbles, 64 of bit pairs, f16 d, f16 dmin; d · sc · q − dmin · m.
  Q2_K: (view, offset, out, at) => {
    const d = half(view, offset + 80);
    const dmin = half(view, offset + 82);
    for (let i = 0; i < 256; i++) {
      // Halves of 128; in each, four runs of 32 share the bytes, a bit pair each.
      const packed = view.getUint8(offset + (i >> 4));
      const q = (view.getUint8(offset + 16 + (i >> 7) * 32 + (i & 31)) >> (2 * ((i >> 5) & 3))) & 3;
      out[at + i] = d * (packed & 15) * q - dmin * (packed >> 4);
    }
  },
  // 32 bytes of third bits, 64 of bit pairs as in Q2_K, 12 of 6-bit scales, f16 d; d · (sc − 32) · (q − 4).
  Q3_K: (view, offset, out, at) => {
    const d = half(view, offset + 108);
    for (let i = 0; i < 256; i++) {
      const low = (view.getUint8(offset + 32 + (i >> 7) * 32 + (i & 31)) >> (2 * ((i >> 5) & 3))) & 3;
      const third = (view.getUint8(offset + (i & 31)) >> (i >> 5)) & 1;
      out[at + i] = d * q3Scale(view, offset + 96, i >> 4) * ((low | (third << 2)) - 4);
    }
  },
  // f16 d, f16 dmin, 12 bytes of 6-bit scales and minima, 128 bytes of nibbles; d · sc · q − dmin · m.
  Q4_K: (view, offset, out, at) => {
    const d = half(view, offset);
    const dmin = half(view, offset + 2);
    for (let sub = 0; sub < 8; sub++) {
      const [scale, minimum] = scaleMinimum(view, offset + 4, sub);
      const nibbles = offset + 16 + (sub >> 1) * 32;
      for (let i = 0; i < 32; i++) {
        const q = (view.getUint8(nibbles + i) >> (4 * (sub & 1))) & 15;
        out[at + sub * 32 + i] = d * scale * q - dmin * minimum;
      }
    }
  },
  // As Q4_K, with 32 bytes of fifth bits before the nibbles: bit `sub` of byte i belongs to value i of sub-block sub.
  Q5_K: (view, offset, out, at) => {
    const d = half(view, offset);
    const dmin = half(view, offset + 2);
    for (let sub = 0; sub < 8; sub++) {
      const [scale, minimum] = scaleMinimum(view, offset + 4, sub);
      const nibbles = offset + 48 + (sub >> 1) * 32;
      for (let i = 0; i < 32; i++) {
        const low = (view.getUint8(nibbles + i) >> (4 * (sub & 1))) & 15;
        const high = (view.getUint8(offset + 16 + i) >> sub) & 1;
        out[at + sub * 32 + i] = d * scale * (low | (high << 4)) - dmin * minimum;
      }
    }
  },
  // 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 signed scales, f16 d; d · sc · (q − 32).
  Q6_K: (view, offset, out, at) => {
    const d = half(view, offset + 208);
    for (let i = 0; i < 256; i++) {
      // Two halves of 128; in each, four runs of 32 share the bytes: nibble low/high, bit pair 0 to 3.
      const part = i >> 7;
      const run = (i >> 5) & 3;
      const low = view.getUint8(offset + part * 64 + (run & 1) * 32 + (i & 31)) >> (run >= 2 ? 4 : 0);
      const high = view.getUint8(offset + 128 + part * 32 + (i & 31)) >> (2 * run);
      const q = (low & 15) | ((high & 3) << 4);
      out[at + i] = d * view.getInt8(offset + 192 + (i >> 4)) * (q - 32);
    }
  },
};

/** Scale of sub-block `sub`, 6 bits less 32, from the 12 packed bytes of Q3_K. */
export function q3Scale(view: DataView, offset: number, sub: number): number {
  const low = (view.getUint8(offset + (sub & 7)) >> (sub < 8 ? 0 : 4)) & 15;
  const high = (view.getUint8(offset + 8 + (sub & 3)) >> (2 * (sub >> 2))) & 3;
  return (low | (high << 4)) - 32;
}

/** Scale and minimum of sub-block `sub`, 6 bits each, from the 12 packed bytes of Q4_K and Q5_K. */
export function scaleMinimum(view: DataView, offset: number, sub: number): [number, number] {
  const byte = (index: number): number => view.getUint8(offset + index);
  if (sub < 4) return [byte(sub) & 63, byte(sub + 4) & 63];
  return [(byte(sub + 4) & 15) | ((byte(sub - 4) >> 6) << 4), (byte(sub + 4) >> 4) | ((byte(sub) >> 6) << 4)];
}

/** Types that {@link dequantize} knows. */
export const REFERENCE_TYPES: ReadonlySet<string> = /* @__PURE__ */ new Set(Object.keys(READERS));

/** `count` values from byte `offset` on; offset and count lie on block borders. */
export function dequantize(
  type: { readonly name: GgmlTypeName; readonly blockSize: number; readonly blockBytes: number },
  bytes: DataView,
  offset: number,
  count: number,
  out: Float32Array,
): void {
  const read = READERS[type.name];
  if (read === undefined) throw new Error(`no reference reader for ${type.name}`);
  for (let at = 0, block = offset; at < count; at += type.blockSize, block += type.blockBytes)
    read(bytes, block, out, at);
}
