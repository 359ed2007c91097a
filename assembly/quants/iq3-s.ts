/**
 * IQ3_S: 256 columns, four at a time an entry of a grid of magnitudes 1, 3, 5, 7, 9, 11, 13, 15, with signs;
 * value d · (2 sc + 1) · magnitude.
 *
 * Native, 110 bytes:  0 d f16 | 2 lower bytes of the grid indices, one for 4 columns [64] | 66 their ninth bits [8]
 *                    74 signs [32] | 106 sc of each 32 columns, 4 bits, low nibble first [4]
 * Group, 2240 bytes: codes-4.ts, scales 2 sc + 1; codes 0 … 7 are the magnitudes, 8 … 15 negative ones
 */

import { f32_from_f16 } from '../simd/half';
import { book_value, held_book } from './codes';
import { decode_4, dequantize_4, SHIFT, store_codes_4, store_d_4, store_scale_4, unpack_4 } from './codes-4';
import { grid_4, signs_at } from './iq-grid';

export const NATIVE: usize = 110;
export { BLOCK } from './codes-4';

/** The values plus 64. */
const BOOK_LOW: u64 = 0x4f4d4b4947454341;
const BOOK_HIGH: u64 = 0x31333537393b3d3f;
const FACTOR: f32 = 1;

/** Codes of octet `octet` (0 … 31), one a byte. */
function codes(native: usize, grid: usize, octet: i32): u64 {
  const ninth: i32 = <i32>load<u8>(native + (octet >> 2), 66) >> ((octet & 3) << 1);
  const at = native + (octet << 1);
  const first = <i32>load<u8>(at, 2) | ((ninth & 1) << 8);
  const second = <i32>load<u8>(at, 3) | ((ninth & 2) << 7);
  return grid_4(grid, first, second) | signs_at(load<u8>(native + octet, 74), 3);
}

/** 2 sc + 1 of sub-block j of 32 columns. */
function native_scale(native: usize, j: i32): i32 {
  return 2 * ((<i32>load<u8>(native + (j >> 1), 106) >> ((j & 1) << 2)) & 15) + 1;
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
