/**
 * Weights to f32, one block after the other, as the formats are defined: block structs and `dequantize_row_*` of
 * ggml-quants.c. Slow and plain on purpose: the fast kernels are held against this.
 */

import type { GgmlTypeName } from '../../formats/ggml-types.ts';
import { bfloatToFloat, halfToFloat } from '../half.ts';

/** Writes the values of one block at `offset` to `out` from `at` on. */
type BlockReader = (view: DataView, offset: number, out: Float32Array, at: number) => void;

const half = (view: DataView, offset: number): number => halfToFloat(view.getUint16(offset, true));

const READERS: Partial<Record<GgmlTypeName, BlockReader>> = {
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
  // f16 d, 32 signed bytes; d · q.
  Q8_0: (view, offset, out, at) => {
    const d = half(view, offset);
    for (let i = 0; i < 32; i++) out[at + i] = d * view.getInt8(offset + 2 + i);
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

/** Scale and minimum of sub-block `sub`, 6 bits each, from the 12 packed bytes of Q4_K and Q5_K. */
function scaleMinimum(view: DataView, offset: number, sub: number): [number, number] {
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
