/** Seeded random numbers: the same file from the same seed on every machine. */

export interface Random {
  /** 32 random bits. */
  bits(): number;
  /** Uniform in [low, high). */
  between(low: number, high: number): number;
  /** A whole number from 0 to `count` − 1. */
  below(count: number): number;
  /** Overwrites all words. */
  fill(words: Uint32Array): void;
}

/** xoshiro128++ (Blackman and Vigna 2019, "Scrambled linear pseudorandom number generators"), seeded by splitmix32. */
export function createRandom(seed: number): Random {
  let mixed = seed >>> 0;
  const splitmix = (): number => {
    mixed = (mixed + 0x9e3779b9) >>> 0;
    let z = mixed;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  };
  let [a, b, c, d] = [splitmix(), splitmix(), splitmix(), splitmix()];
  const bits = (): number => {
    const sum = (a + d) | 0;
    const result = (((sum << 7) | (sum >>> 25)) + a) >>> 0;
    const shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = (d << 11) | (d >>> 21);
    return result;
  };
  return {
    bits,
    between: (low, high) => low + (high - low) * (bits() / 2 ** 32),
    below: (count) => Math.floor((bits() / 2 ** 32) * count),
    fill(words) {
      for (let i = 0; i < words.length; i++) words[i] = bits();
    },
  };
}
