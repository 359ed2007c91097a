/** Rotary position embedding: which pairs turn, and how fast. */

export interface RopeParameters {
  /** `interleaved` turns (2i, 2i + 1), as Llama's files are laid out; `halves` turns (i, i + dims / 2). */
  readonly pairing: 'interleaved' | 'halves';
  /** Values of each head that turn, even; the rest passes through. */
  readonly dims: number;
  /** Radians a position for each of the dims / 2 pairs, scaling included. */
  readonly frequencies: Float64Array;
  /** Factor on sine and cosine: YaRN's or LongRoPE's attention factor, 1 otherwise. */
  readonly magnitude: number;
}

/** `attentionFactor` is a further factor on sine and cosine, 1 by default. */
export type RopeScaling =
  | { readonly type: 'none'; readonly attentionFactor?: number }
  | { readonly type: 'linear'; readonly factor: number; readonly attentionFactor?: number }
  /** As linear, and the file must have tensors with divisors for each pair. */
  | { readonly type: 'longrope'; readonly factor: number; readonly attentionFactor?: number }
  | {
      readonly type: 'yarn';
      readonly factor: number;
      /** Context length before the extension. */
      readonly originalContextLength: number;
      readonly betaFast: number;
      readonly betaSlow: number;
      /** Share of the extrapolated frequency in the ramp, 1 by default. */
      readonly extFactor: number;
      readonly attentionFactor: number;
    };

/**
 * Frequencies of `dims / 2` pairs: base^(−2i / dims), divided by `factors[i]` where a file has them (Llama 3's
 * `rope_freqs.weight`), then scaled. YaRN: Peng et al. 2023, "YaRN: Efficient Context Window Extension of Large
 * Language Models", section 3.2, with the attention factor 0.1 · ln(factor) + 1.
 */
export function ropeParameters(
  pairing: RopeParameters['pairing'],
  dims: number,
  base: number,
  scaling: RopeScaling,
  factors?: ArrayLike<number>,
): RopeParameters {
  const pairs = dims / 2;
  const frequencies = new Float64Array(pairs);
  for (let i = 0; i < pairs; i++) frequencies[i] = base ** ((-2 * i) / dims) / (factors?.[i] ?? 1);
  let magnitude = scaling.attentionFactor ?? 1;
  if (scaling.type === 'linear' || scaling.type === 'longrope') {
    for (let i = 0; i < pairs; i++) frequencies[i] = frequencies[i]! / scaling.factor;
  } else if (scaling.type === 'yarn') {
    const { factor, extFactor } = scaling;
    const low = Math.max(0, Math.floor(correctionDim(scaling.betaFast)));
    const high = Math.min(dims - 1, Math.ceil(correctionDim(scaling.betaSlow)));
    for (let i = 0; i < pairs; i++) {
      // 1 for fast pairs, which keep their frequency, 0 for slow ones, which are interpolated.
      const ramp = 1 - Math.min(1, Math.max(0, (i - low) / Math.max(0.001, high - low)));
      const keep = ramp * extFactor;
      frequencies[i] = frequencies[i]! * ((1 - keep) / factor + keep);
    }
    if (extFactor !== 0) magnitude *= 1 + 0.1 * Math.log(Math.max(1, factor));

    /** Pair that turns `rotations` times within the original context. */
    function correctionDim(rotations: number): number {
      const { originalContextLength } = scaling as { originalContextLength: number };
      return (dims * Math.log(originalContextLength / (rotations * 2 * Math.PI))) / (2 * Math.log(base));
    }
  }
  return { pairing, dims, frequencies, magnitude };
}

/** Cosine and sine of every row and pair: [positions.length × dims / 2 × 2], f32. */
export function ropeTable(rope: RopeParameters, positions: ArrayLike<number>, out: Float32Array): void {
  const { frequencies, magnitude } = rope;
  const pairs = frequencies.length;
  for (let row = 0; row < positions.length; row++) {
    const position = positions[row]!;
    for (let i = 0; i < pairs; i++) {
      const angle = position * frequencies[i]!;
      out[2 * (row * pairs + i)] = Math.cos(angle) * magnitude;
      out[2 * (row * pairs + i) + 1] = Math.sin(angle) * magnitude;
    }
  }
}
