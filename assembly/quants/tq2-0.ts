/**
 * TQ2_0: 256 columns, value d · (q − 1).
 *
 * Native, 66 bytes:  0 bit pairs [64]: pair j of byte 32 p + i is for column 128 p + 32 j + i | 64 d f16
 * Group, 1056 bytes: ternary.ts
 */

import { f32_from_f16 } from '../simd/half';
import { store_shifted } from './codes';
import { RUN, RUNS, store_d } from './ternary';

export const NATIVE: usize = 66;
export { BLOCK, decode, dequantize, unpack } from './ternary';

export function repack(block: usize, native: usize, row: i32): void {
  for (let run = 0; run < 8; run++) {
    const bytes = native + ((run >> 2) << 5);
    store_shifted(block + RUNS + <usize>run * RUN, row, 2, bytes, (run & 3) << 1, 0x0303030303030303);
  }
  store_d(block, row, load<u16>(native, 64));
}

export function dequantize_native(out: usize, native: usize): void {
  const d = f32_from_f16(load<u16>(native, 64));
  for (let k = 0; k < 256; k++) {
    const q: i32 = (load<u8>(native + ((k >> 7) << 5) + (k & 31)) >> (((k >> 5) & 3) << 1)) & 3;
    store<f32>(out + (k << 2), d * <f32>(q - 1));
  }
}
