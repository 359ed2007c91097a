/**
 * TQ1_0: 256 columns, value d · (q − 1). A byte is 256/243 of a number of five base-3 digits, rounded up, so that digit n
 * is the integer part of 3 · frac(byte · 3^n / 256).
 *
 * Native, 54 bytes:  0 [32] bytes: digit n of byte i is for column 32 n + i
 *                   32 [16] bytes: digit n of byte i is for column 160 + 16 n + i
 *                   48 [4] bytes of four digits: digit n of byte i is for column 240 + 4 n + i | 52 d f16
 * Group, 1056 bytes: ternary.ts, bit pairs in place of base 3 (22 % more)
 */

import { f32_from_f16 } from '../simd/half';
import { store_run } from './codes';
import { RUN, RUNS, store_d } from './ternary';

export const NATIVE: usize = 54;
export { BLOCK, decode, dequantize, unpack } from './ternary';

/** 3^n, n below 5. */
function power(n: i32): i32 {
  let value = 1;
  for (let i = 0; i < n; i++) value *= 3;
  return value;
}

/** q of column k. */
function digit(native: usize, k: i32): i32 {
  let byte: i32;
  let n: i32;
  if (k < 160) {
    byte = load<u8>(native + (k & 31));
    n = k >> 5;
  } else if (k < 240) {
    byte = load<u8>(native + (k & 15), 32);
    n = (k - 160) >> 4;
  } else {
    byte = load<u8>(native + (k & 3), 48);
    n = (k - 240) >> 2;
  }
  return (((byte * power(n)) & 255) * 3) >> 8;
}

/** q of eight bytes, one a byte, for the digits that `powers` (3^n in i16 lanes) name. */
function digits(bytes: u64, powers: v128): u64 {
  const wide = i16x8.extend_low_i8x16_u(i64x2.splat(bytes));
  const fraction = v128.and(i16x8.mul(wide, powers), i16x8.splat(255));
  const q = i16x8.shr_u(i16x8.mul(fraction, i16x8.splat(3)), 8);
  return <u64>i64x2.extract_lane(i8x16.narrow_i16x8_u(q, q), 0);
}

/** q of columns k … k + 7, k a multiple of 8. */
function octet(native: usize, k: i32): u64 {
  if (k < 160) return digits(load<u64>(native + (k & 31)), i16x8.splat(<i16>power(k >> 5)));
  if (k < 240) return digits(load<u64>(native + (k & 15), 32), i16x8.splat(<i16>power((k - 160) >> 4)));
  // Four columns of one digit, four of the next one.
  const four: u64 = load<u32>(native, 48);
  const powers = i16x8(1, 1, 1, 1, 3, 3, 3, 3);
  return digits(four | (four << 32), i16x8.mul(powers, i16x8.splat(k == 240 ? 1 : 9)));
}

export function repack(block: usize, native: usize, row: i32): void {
  for (let run = 0; run < 8; run++) {
    const k = run << 5;
    store_run(
      block + RUNS + <usize>run * RUN,
      row,
      2,
      octet(native, k),
      octet(native, k + 8),
      octet(native, k + 16),
      octet(native, k + 24),
    );
  }
  store_d(block, row, load<u16>(native, 52));
}

export function dequantize_native(out: usize, native: usize): void {
  const d = f32_from_f16(load<u16>(native, 52));
  for (let k = 0; k < 256; k++) store<f32>(out + (k << 2), d * <f32>(digit(native, k) - 1));
}
