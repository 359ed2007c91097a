/** Finding a byte string among many that lie packed in one buffer. */

import type { StringArray } from '../formats/metadata.ts';

/**
 * Open-addressing hash table over the strings of an array. It stores positions only, so that a vocabulary of 150,000
 * tokens costs 2 MB and no JavaScript strings. Empty strings are not found.
 */
export class ByteStringTable {
  /** Bytes of the longest string. */
  readonly maxLength: number;
  readonly #strings: StringArray;
  /** Index + 1; 0 is free. */
  readonly #slots: Int32Array;
  // Drawn anew for each table: a file cannot be made up to collide with a hash that it does not know.
  readonly #seed = Math.floor(Math.random() * 2 ** 32);

  /** @param counts which one of equal strings is found */
  constructor(strings: StringArray, counts: 'first' | 'last') {
    this.#strings = strings;
    this.#slots = new Int32Array(slotCount(strings.length));
    let maxLength = 0;
    for (let index = 0; index < strings.length; index++) {
      const start = strings.starts[index]!;
      const end = strings.ends[index]!;
      if (end === start) continue;
      maxLength = Math.max(maxLength, end - start);
      const slot = this.#slot(strings.bytes, start, end);
      if (counts === 'last' || this.#slots[slot] === 0) this.#slots[slot] = index + 1;
    }
    this.maxLength = maxLength;
  }

  /** Index of the string that equals `bytes[start … end)`, or -1. */
  find(bytes: Uint8Array, start: number, end: number): number {
    if (end - start > this.maxLength) return -1;
    return this.#slots[this.#slot(bytes, start, end)]! - 1;
  }

  /** Where that string is, or would be put. */
  #slot(bytes: Uint8Array, start: number, end: number): number {
    // FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/
    let hash = this.#seed;
    for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
    const mask = this.#slots.length - 1;
    let slot = scramble(hash) & mask;
    for (;;) {
      const index = this.#slots[slot]! - 1;
      if (index < 0 || this.#equals(index, bytes, start, end)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #equals(index: number, bytes: Uint8Array, start: number, end: number): boolean {
    const { bytes: own, starts, ends } = this.#strings;
    const base = starts[index]!;
    const length = end - start;
    if (ends[index]! - base !== length) return false;
    for (let at = 0; at < length; at++) {
      if (own[base + at] !== bytes[start + at]) return false;
    }
    return true;
  }
}

/** Slots of a table for that many entries: a power of two, at most half full. */
export function slotCount(entries: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(8, entries * 2)));
}

/** Spreads the bits of a hash (the last steps of MurmurHash3, by Austin Appleby). */
export function scramble(value: number): number {
  let hash = value ^ (value >>> 16);
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  hash = Math.imul(hash, 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
