/**
 * Q3_K: 256 columns in 16 sub-blocks of 16, value d · (sc − 32) · (q − 4).
 *
 * Native, 110 bytes:  0 third bits [32]: bit j of byte i is for column 32 j + i
 *                    32 bit pairs [64]: pair j of byte 32 p + i is for column 128 p + 32 j + i
 *                    96 scales [12]: low nibbles of 0–7, high nibbles 8–15 in bytes 0–7; the upper pairs of j, j + 4,
 *                       j + 8 and j + 12 in byte 8 + j | 108 d f16
 * Group, 1824 bytes: codes-3.ts, scales less 32
 */

import { f32_from_f16 } from '../simd/half';
import { decode_3, dequantize_3, store_codes_3, store_d_3, store_scale_3, unpack_3 } from './codes-3';

export const NATIVE: usize = 110;
export { BLOCK } from './codes-3';

/** q − 4 + 64. */
const BOOK: u64 = 0x434241403f3e3d3c;

function native_scale(native: usize, j: i32): i32 {
  const low: i32 = (load<u8>(native + (j & 7), 96) >> ((j >> 3) << 2)) & 15;
  const high: i32 = (load<u8>(native + (j & 3), 104) >> ((j >> 2) << 1)) & 3;
  return (low | (high << 4)) - 32;
}

/** Codes of octet `octet` (0 … 3) of run `run`. */
function codes(native: usize, run: i32, octet: i32): u64 {
  const pairs = load<u64>(native + ((run >> 2) << 5) + (octet << 3), 32) >> <u64>((run & 3) << 1);
  const thirds = load<u64>(native + (octet << 3)) >> <u64>run;
  return (pairs & 0x0303030303030303) | ((thirds & 0x0101010101010101) << 2);
}

export function repack(block: usize, native: usize, row: i32): void {
  for (let run = 0; run < 8; run++) {
    store_codes_3(
      block,
      row,
      run,
      codes(native, run, 0),
      codes(native, run, 1),
      codes(native, run, 2),
      codes(native, run, 3),
    );
  }
  for (let j = 0; j < 16; j++) store_scale_3(block, row, j, native_scale(native, j));
  store_d_3(block, row, load<u16>(native, 108));
}

export function dequantize(out: usize, block: usize, row: i32): void {
  dequantize_3(out, block, row, BOOK, 1);
}

export function dequantize_native(out: usize, native: usize): void {
  const d = f32_from_f16(load<u16>(native, 108));
  for (let k = 0; k < 256; k++) {
    const low: i32 = (load<u8>(native + ((k >> 7) << 5) + (k & 31), 32) >> (((k >> 5) & 3) << 1)) & 3;
    const third: i32 = (load<u8>(native + (k & 31)) >> (k >> 5)) & 1;
    store<f32>(out + (k << 2), d * <f32>native_scale(native, k >> 4) * <f32>((low | (third << 2)) - 4));
  }
}

export function decode(scratch: usize, group: usize, x: usize, step: usize, width: i32): void {
  decode_3(scratch, group, x, step, width, BOOK, 1);
}

export function unpack(tile: usize, block: usize): void {
  unpack_3(tile, block, BOOK, 1);
}
