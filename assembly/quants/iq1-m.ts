/**
 * IQ1_M: 256 columns, eight at a time an entry of a grid of −1, 0, 1; value d · (2 sc + 1) · (g + delta), delta ±1/8.
 *
 * Native, 56 bytes:  0 lower bytes of the grid indices, one for 8 columns [32] | 32 for each 8 columns 4 bits, low nibble
 *                    first: the index's upper 3 bits, and whether delta is negative [16] | 48 for each 64 columns u16:
 *                    sc of 3 bits for each 16, and in the upper 4 bits a part of d, the lowest part first [4]
 * Group, 1824 bytes: codes-3.ts, scales 2 sc + 1; codes g + 1, with 4 added where delta is negative
 */

import { f32_from_f16 } from '../simd/half';
import { book_value } from './codes';
import { decode_3, dequantize_3, store_codes_3, store_d_3, store_scale_3, unpack_3 } from './codes-3';
import { grid_8 } from './iq-grid';
import { IQ1_BOOK } from './iq1-book';

export const NATIVE: usize = 56;
export { BLOCK } from './codes-3';

/** d, binary16. */
function native_d(native: usize): u32 {
  const parts = load<u64>(native, 48) & 0xf000f000f000f000;
  return (<u32>(parts >> 12) & 15) | (<u32>(parts >> 24) & 0xf0) | (<u32>(parts >> 36) & 0xf00) | <u32>(parts >> 48);
}

/** Codes of octet `octet` (0 … 31), one a byte. */
function codes(native: usize, grid: usize, octet: i32): u64 {
  const nibble: i32 = <i32>load<u8>(native + (octet >> 1), 32) >> ((octet & 1) << 2);
  const entry = <i32>load<u8>(native + octet) | ((nibble & 7) << 8);
  const negative: u64 = nibble & 8 ? 0x0404040404040404 : 0;
  return grid_8(grid, entry) | negative;
}

/** 2 sc + 1 of sub-block j of 16 columns. */
function native_scale(native: usize, j: i32): i32 {
  return 2 * ((<i32>load<u16>(native + ((j >> 2) << 1), 48) >> (3 * (j & 3))) & 7) + 1;
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
  store_d_3(block, row, native_d(native));
}

export function dequantize(out: usize, block: usize, row: i32): void {
  dequantize_3(out, block, row, IQ1_BOOK, 0.125);
}

export function dequantize_native(out: usize, native: usize, grid: usize): void {
  const d = f32_from_f16(native_d(native)) * 0.125;
  for (let k = 0; k < 256; k++) {
    const code = <i32>((codes(native, grid, k >> 3) >> <u64>((k & 7) << 3)) & 7);
    const scale = d * <f32>native_scale(native, k >> 4);
    store<f32>(out + (k << 2), scale * <f32>(book_value(IQ1_BOOK, 0, code) - 64));
  }
}

export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  decode_3(scratch, group, x, step, width, IQ1_BOOK, 0.125);
}

export function unpack(tile: usize, block: usize): void {
  unpack_3(tile, block, IQ1_BOOK, 0.125);
}
