/**
 * IQ2_S: 256 columns, eight at a time an entry of a grid of magnitudes 8, 25, 43, with signs; value
 * d · (2 sc + 1) / 8 · magnitude.
 *
 * Native, 82 bytes:  0 d f16 | 2 lower bytes of the grid indices, one for 8 columns [32] | 34 signs [32]
 *                   66 upper bit pairs of the indices [8] | 74 sc of each 16 columns, 4 bits, low nibble first [8]
 * Group, 1824 bytes: codes-3.ts, scales 2 sc + 1; codes 0, 1, 2 are the magnitudes, 4, 5, 6 negative ones
 */

import { f32_from_f16 } from '../simd/half';
import { book_value } from './codes';
import { decode_3, dequantize_3, store_codes_3, store_d_3, store_scale_3, unpack_3 } from './codes-3';
import { grid_8, signs_at } from './iq-grid';
import { IQ2_BOOK } from './iq2-book';

export const NATIVE: usize = 82;
export { BLOCK } from './codes-3';

/** Codes of octet `octet` (0 … 31), one a byte. */
function codes(native: usize, grid: usize, octet: i32): u64 {
  const upper: i32 = (load<u8>(native + (octet >> 2), 66) >> ((octet & 3) << 1)) & 3;
  const entry = <i32>load<u8>(native + octet, 2) | (upper << 8);
  return grid_8(grid, entry) | signs_at(load<u8>(native + octet, 34), 2);
}

/** 2 sc + 1 of sub-block j of 16 columns. */
function native_scale(native: usize, j: i32): i32 {
  return 2 * ((<i32>load<u8>(native + (j >> 1), 74) >> ((j & 1) << 2)) & 15) + 1;
}

export function repack(block: usize, native: usize, row: i32, grid: usize): void {
  for (let run = 0; run < 8; run++) {
    store_codes_3(
      block,
      row,
      run,
      codes(native, grid, run << 2),
      codes(native, grid, (run << 2) + 1),
      codes(native, grid, (run << 2) + 2),
      codes(native, grid, (run << 2) + 3),
    );
  }
  for (let j = 0; j < 16; j++) store_scale_3(block, row, j, native_scale(native, j));
  store_d_3(block, row, load<u16>(native));
}

export function dequantize(out: usize, block: usize, row: i32): void {
  dequantize_3(out, block, row, IQ2_BOOK, 0.125);
}

export function dequantize_native(out: usize, native: usize, grid: usize): void {
  const d = f32_from_f16(load<u16>(native)) * 0.125;
  for (let k = 0; k < 256; k++) {
    const code = <i32>((codes(native, grid, k >> 3) >> <u64>((k & 7) << 3)) & 7);
    const scale = d * <f32>native_scale(native, k >> 4);
    store<f32>(out + (k << 2), scale * <f32>(book_value(IQ2_BOOK, 0, code) - 64));
  }
}

export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  decode_3(scratch, group, x, step, width, IQ2_BOOK, 0.125);
}

export function unpack(tile: usize, block: usize): void {
  unpack_3(tile, block, IQ2_BOOK, 0.125);
}
