/**
 * Grids and signs of the IQ1, IQ2 and IQ3 types. A grid is given by the host, since the modules have no data: u16
 * entries, each eight indices of 2 bits (four of 3 for IQ3) into the few values that the grid is made of, the first value
 * in the lowest bits (src/backends/grids.ts). It is read at load only: in a group every weight has a code of its own.
 */

import { spread, spread_pairs } from './codes';

/** Entry of a grid of eight values: eight indices, one a byte. */
export function grid_8(grid: usize, entry: i32): u64 {
  return spread_pairs(load<u16>(grid + ((<usize>entry) << 1)));
}

/** Two entries of a grid of four values: eight indices, one a byte. */
export function grid_4(grid: usize, first: i32, second: i32): u64 {
  return four(load<u16>(grid + ((<usize>first) << 1))) | (four(load<u16>(grid + ((<usize>second) << 1))) << 32);
}

function four(entry: u32): u64 {
  return <u64>((entry & 7) | ((entry & 0x38) << 5) | ((entry & 0x1c0) << 10) | ((entry & 0xe00) << 15));
}

/** Eight signs from the seven that are kept: their number of minus signs is even (`ksigns_iq2xs` of ggml-common.h). */
export function even_signs(seven: u32): u32 {
  return seven | ((popcnt<u32>(seven) & 1) << 7);
}

/** Signs, one a bit, to bit `place` of eight bytes. */
export function signs_at(signs: u32, place: u64): u64 {
  return spread(signs & 255) << place;
}
