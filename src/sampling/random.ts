/** Random numbers that a seed determines on every platform. */

/** xoshiro128** by David Blackman and Sebastiano Vigna (https://prng.di.unimi.it), seeded through SplitMix32. */
export class Random {
  readonly #state = new Uint32Array(4);

  /** @param seed a whole number from 0 to 2^53 − 1 */
  constructor(seed: number) {
    let mixed = (seed >>> 0) ^ Math.imul(Math.floor(seed / 2 ** 32), 0x85ebca6b);
    for (let i = 0; i < 4; i++) {
      mixed = (mixed + 0x9e3779b9) | 0;
      let word = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
      word = Math.imul(word ^ (word >>> 15), 0x735a2d97);
      this.#state[i] = word ^ (word >>> 15);
    }
    // The state must not be all zero; SplitMix32 is one-to-one, so that at most one word is.
  }

  /** 32 random bits. */
  next(): number {
    const s = this.#state;
    const result = Math.imul(rotated(Math.imul(s[1]!, 5), 7), 9) >>> 0;
    const t = s[1]! << 9;
    s[2]! ^= s[0]!;
    s[3]! ^= s[1]!;
    s[1]! ^= s[2]!;
    s[0]! ^= s[3]!;
    s[2]! ^= t;
    s[3] = rotated(s[3]!, 11);
    return result;
  }

  /** From 0 up to but not including 1, in steps of 2^-53. */
  uniform(): number {
    const high = this.next() >>> 5;
    const low = this.next() >>> 6;
    return (high * 2 ** 26 + low) / 2 ** 53;
  }
}

function rotated(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

/** A seed that nobody knows in advance. */
export function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]!;
}
