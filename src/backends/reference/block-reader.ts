import { halfToFloat } from '../half.ts';

/** Writes the values of one block at `offset` to `out` from `at` on. */
export type BlockReader = (view: DataView, offset: number, out: Float32Array, at: number) => void;

export const half = (view: DataView, offset: number): number => halfToFloat(view.getUint16(offset, true));

/** Nibble of value i of a block of 32: low nibbles are values 0–15, high ones 16–31. */
export function nibble32(view: DataView, offset: number, i: number): number {
  return (view.getUint8(offset + (i & 15)) >> (i < 16 ? 0 : 4)) & 15;
}
