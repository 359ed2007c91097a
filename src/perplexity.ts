/**
 * Perplexity of a text, computed as llama.cpp's `llama-perplexity` does: the text's tokens (with BOS where the file asks
 * for it) are cut into windows of N without overlap; the first half of each is context, every token of the second half
 * but the window's first is scored; where the file asks for BOS, it replaces each window's first token.
 */

import type { Engine } from './engine.ts';
import { AprError } from './errors.ts';
import { logprobsOf } from './sampling/index.ts';

export interface PerplexityOptions {
  /** Tokens of a window, even, at most the engine's context length. */
  readonly window: number;
  readonly signal?: AbortSignal;
  readonly onWindow?: (progress: PerplexityProgress) => void;
}

export interface PerplexityProgress {
  readonly windows: number;
  readonly totalWindows: number;
  /** Of what has been scored so far. */
  readonly perplexity: number;
}

export interface Perplexity {
  readonly perplexity: number;
  /** Mean negative logarithm of the scored tokens' probabilities. */
  readonly natsPerToken: number;
  readonly scoredTokens: number;
  /** Tokens that went through the model. */
  readonly evaluatedTokens: number;
  readonly windows: number;
  /** Measured over all windows. */
  readonly elapsedMs: number;
  readonly tokensPerSecond: number;
}

/** @throws AprError USAGE when the text is shorter than two windows, CONTEXT_EXCEEDED, INFERENCE, ABORTED */
export async function perplexityOf(engine: Engine, text: string, options: PerplexityOptions): Promise<Perplexity> {
  const { window, onWindow, signal } = options;
  if (!Number.isInteger(window) || window < 4 || window % 2 !== 0) {
    throw new AprError('USAGE', `the window is ${window} tokens, expected an even whole number from 4`);
  }
  const plain = engine.tokenize(text);
  const tokens = engine.tokenize(text, { addSpecial: true });
  const bos = tokens.length > plain.length ? tokens[0] : undefined;
  const totalWindows = Math.floor(tokens.length / window);
  if (totalWindows < 2) {
    throw new AprError(
      'USAGE',
      `the text has ${tokens.length} tokens, expected at least two windows of ${window}; give a longer text or a ` +
        'smaller --context-length',
      { tokens: tokens.length, window },
    );
  }
  const first = window / 2;
  let nats = 0;
  let scoredTokens = 0;
  const start = performance.now();
  for (let index = 0; index < totalWindows; index++) {
    const input = tokens.slice(index * window, (index + 1) * window);
    if (bos !== undefined) input[0] = bos;
    await engine.forward(input, {
      ...(signal === undefined ? {} : { signal }),
      onLogits: (position, logits) => {
        if (position < first || position === window - 1) return;
        nats -= logprobsOf(logits, input[position + 1]!, 0).chosen;
        scoredTokens++;
      },
    });
    onWindow?.({ windows: index + 1, totalWindows, perplexity: Math.exp(nats / scoredTokens) });
  }
  const elapsedMs = performance.now() - start;
  const evaluatedTokens = totalWindows * window;
  return {
    perplexity: Math.exp(nats / scoredTokens),
    natsPerToken: nats / scoredTokens,
    scoredTokens,
    evaluatedTokens,
    windows: totalWindows,
    elapsedMs,
    tokensPerSecond: (evaluatedTokens * 1000) / elapsedMs,
  };
}
