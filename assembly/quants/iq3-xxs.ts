/**
 * IQ3_XXS: 256 columns, four at a time an entry of a grid of magnitudes 4, 12, 20, 28, 36, 44, 52, 62, with signs;
 * value d · (2 sc + 1) / 4 · magnitude.
 *
 * Native, 98 bytes:  0 d f16 | 2 grid indices, one for 4 columns [64] | 66 for each 32 columns u32: four times 7 signs,
 *                    the eighth being their parity, and sc in the upper 4 bits [8]
 * Group, 2240 bytes: codes-4.ts, scales 2 sc + 1; codes 0 … 7 are the magnitudes, 8 … 15 negative ones
 */

import { f32_from_f16 } from '../simd/half';
import { book_value, held_book } from './codes';
import { decode_4, dequantize_4, SHIFT, store_codes_4, store_d_4, store_scale_4, unpack_4 } from './codes-4';
import { even_signs, grid_4, signs_at } from './iq-grid';

export const NATIVE: usize = 98;
export { BLOCK } from './codes-4';

/** The values plus 64. */
const BOOK_LOW: u64 = 0x7e746c645c544c44;
const BOOK_HIGH: u64 = 0x020c141c242c343c;
const FACTOR: f32 = 0.25;

/** Codes of octet `octet` (0 … 31), one a byte. */
function codes(native: usize, grid: usize, octet: i32): u64 {
  const signs = even_signs((load<u32>(native + ((octet >> 2) << 2), 66) >> (7 * (octet & 3))) & 127);
  const at = native + (octet << 1);
  return grid_4(grid, load<u8>(at, 2), load<u8>(at, 3)) | signs_at(signs, 3);
}

/** 2 sc + 1 of sub-block j of 32 columns. */
function native_scale(native: usize, j: i32): i32 {
  return 2 * <i32>(load<u32>(native + (j << 2), 66) >> 28) + 1;
}

export function repack(block: usize, native: usize, row: i32, grid: usize): void {
  for (let run = 0; run < 8; run++) {
    store_codes_4(
      block,
      row,
      run,
      codes(native, grid, run << 2),
      codes(native, grid, (run << 2) + 1),
      codes(native, grid, (run << 2) + 2),
      codes(native, grid, (run << 2) + 3),
    );
    store_scale_4(block, row, run, native_scale(native, run));
  }
  store_d_4(block, row, f32_from_f16(load<u16>(native)) * FACTOR);
}

export function dequantize(out: usize, block: usize, row: i32): void {
  dequantize_4(out, block, row, BOOK_LOW, BOOK_HIGH, 64);
}

export function dequantize_native(out: usize, native: usize, grid: usize): void {
  const d = f32_from_f16(load<u16>(native)) * FACTOR;
  for (let k = 0; k < 256; k++) {
    const code = <i32>((codes(native, grid, k >> 3) >> <u64>((k & 7) << 3)) & 15);
    const scale = d * <f32>native_scale(native, k >> 5);
    store<f32>(out + (k << 2), scale * <f32>(book_value(BOOK_LOW, BOOK_HIGH, code) - 64));
  }
}

export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  decode_4(scratch, group, x, step, width, held_book(scratch, BOOK_LOW, BOOK_HIGH), SHIFT);
}

export function unpack(tile: usize, block: usize): void {
  unpack_4(tile, block, BOOK_LOW, BOOK_HIGH);
}
