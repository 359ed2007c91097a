/**
 * IQ1_M: 256 columns, eight at a time an entry of a grid of −1, 0, 1; value d · (2 sc + 1) · (g + delta), delta ±1/8.
 *
 * Native, 56 bytes:  0 lower bytes of the grid indices, one for 8 columns [32] | 32 for each 8 columns 4 bits, low nibble
 *                    first: the index's upper 3 bits, and whether delta is negative [16] | 48 for each 64 columns u16:
 *                    sc of 3 bits for each 16, and in the upper 4 bits a part of d, the lowest part first [4]
 * Group, 1376 bytes: iq1.ts, scales 2 sc + 1
 */

import { f32_from_f16 } from '../simd/half';
import { grid_8 } from './iq-grid';
import { iq1_value, store_codes, store_row, store_scale } from './iq1';

export const NATIVE: usize = 56;
export { BLOCK, decode, dequantize, unpack } from './iq1';

/** d, binary16. */
function native_d(native: usize): u32 {
  const parts = load<u64>(native, 48) & 0xf000f000f000f000;
  return (<u32>(parts >> 12) & 15) | (<u32>(parts >> 24) & 0xf0) | (<u32>(parts >> 36) & 0xf00) | <u32>(parts >> 48);
}

/** Codes g + 1 of octet `octet` (0 … 31), one a byte. */
function codes(native: usize, grid: usize, octet: i32): u64 {
  const nibble: i32 = <i32>load<u8>(native + (octet >> 1), 32) >> ((octet & 1) << 2);
  const entry = <i32>load<u8>(native + octet) | ((nibble & 7) << 8);
  return grid_8(grid, entry);
}

/** Whether the delta of an octet is negative. */
function negative(native: usize, octet: i32): bool {
  return ((load<u8>(native + (octet >> 1), 32) >> ((octet & 1) << 2)) & 8) != 0;
}

/** 2 sc + 1 of sub-block j of 16 columns. */
function native_scale(native: usize, j: i32): i32 {
  return 2 * ((<i32>load<u16>(native + ((j >> 2) << 1), 48) >> (3 * (j & 3))) & 7) + 1;
}

export function repack(block: usize, native: usize, row: i32, grid: usize): void {
  let deltas: u32 = 0;
  for (let octet = 0; octet < 32; octet++) deltas = (deltas << 1) | (negative(native, octet) ? 1 : 0);
  store_row(block, row, native_d(native), deltas);
  for (let run = 0; run < 8; run++) {
    store_codes(
      block,
      row,
      run,
      codes(native, grid, run << 2),
      codes(native, grid, (run << 2) + 1),
      codes(native, grid, (run << 2) + 2),
      codes(native, grid, (run << 2) + 3),
    );
  }
  for (let j = 0; j < 16; j++) store_scale(block, row, j, native_scale(native, j));
}

export function dequantize_native(out: usize, native: usize, grid: usize): void {
  const d = f32_from_f16(native_d(native)) * 0.125;
  for (let k = 0; k < 256; k++) {
    const code = <i32>((codes(native, grid, k >> 3) >> <u64>((k & 7) << 3)) & 7);
    const scale = d * <f32>native_scale(native, k >> 4);
    store<f32>(out + (k << 2), scale * iq1_value(code, negative(native, k >> 3)));
  }
}
