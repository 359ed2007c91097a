/** Rotary position embedding: which pairs turn, and how fast. */

export interface RopeParameters {
  /** `interleaved` turns (2i, 2i + 1), as Llama's files are laid out; `halves` turns (i, i + dims / 2). */
  readonly pairing: 'interleaved' | 'halves';
  /** Values of each head that turn; the rest passes through. */
  readonly dims: number;
  /** Radians a position for each of the dims / 2 pairs, scaling included. */
  readonly frequencies: Float64Array;
  /** Factor on sine and cosine (YaRN's attention factor), 1 otherwise. */
  readonly magnitude: number;
}
