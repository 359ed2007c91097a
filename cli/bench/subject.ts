/** What is measured: an engine that can take in a prompt and go on from it. */

/** Tokens a second of one measurement. */
export interface Subject {
  /** Takes in a prompt of these tokens, of which it holds nothing yet. */
  prefill(prompt: readonly number[]): Promise<number>;
  /** From a prompt of one token, `count` passes of one token each. */
  decode(first: number, count: number): Promise<number>;
  dispose(): Promise<void>;
}

/**
 * Ordinary tokens, the same for every engine and every time. The first one says which repetition it is: with it the
 * prompts share no prefix, and nothing of one can be left over from the one before.
 */
export function promptOf(length: number, repetition: number, vocabularySize: number): number[] {
  // Special tokens tend to come last.
  const ordinary = Math.max(1, Math.floor(0.9 * vocabularySize));
  return Array.from({ length }, (_, i) => (i === 0 ? 7 * repetition : 1000 + 37 * i) % ordinary);
}

export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  const median = sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
  return { median, least: sorted[0] ?? Number.NaN, most: sorted.at(-1) ?? Number.NaN };
}
