/** What must have happened in a run, counted where it happened. */

import type { PassSample } from './sample.ts';

export interface Counters {
  readonly passes: number;
  /** Rows that went through the model. */
  readonly positions: number;
  /** Passes that computed logits. */
  readonly head_runs: number;
  readonly attention_runs: number;
  /** Tokens that were chosen, an end token included. */
  readonly sampled: number;
}

export interface CounterExpectation {
  /** Of the prompt, and of these in the cache already. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** In the answer. */
  readonly generatedTokens: number;
  /** Whether an end token was chosen behind the answer. */
  readonly ended: boolean;
  readonly layers: number;
}

/** Counts what the threads have timed: a step that no thread did does not count. */
export function countPasses(samples: Iterable<PassSample>, sampled: number): Counters {
  let [passes, positions, heads, attentions] = [0, 0, 0, 0];
  for (const { record, steps, done } of samples) {
    passes++;
    positions += record.rows;
    const computed = new Set<number>();
    const missed = new Set<number>();
    steps.forEach(({ command }, step) => {
      (Number.isNaN(done[step]) ? missed : computed).add(command);
    });
    for (const index of computed) {
      if (missed.has(index)) continue;
      const command = record.commands[index];
      if (command === undefined) continue;
      if (command.op === 'attention') attentions++;
      if (command.op !== 'storeKv' && command.dst === record.logits) heads++;
    }
  }
  return { passes, positions, head_runs: heads, attention_runs: attentions, sampled };
}

/**
 * What does not fit, as sentences; empty for a healthy run. With P prompt tokens, C of them cached, and S tokens chosen,
 * P − C + S − 1 positions go through the model, since the last one chosen is never fed back.
 */
export function violations(counters: Counters, expected: CounterExpectation): string[] {
  const { promptTokens, cachedTokens, generatedTokens, ended, layers } = expected;
  const { passes, positions, head_runs, attention_runs, sampled } = counters;
  const found: string[] = [];
  const check = (what: string, value: number, should: number, why: string): void => {
    if (value !== should) found.push(`${what}: counted ${value}, expected ${should} (${why})`);
  };
  const answer = generatedTokens + (ended ? 1 : 0);
  check('chosen tokens', sampled, answer, `${generatedTokens} in the answer${ended ? ' and the end token' : ''}`);
  const cached = cachedTokens === 0 ? '' : ` - ${cachedTokens} cached`;
  check(
    'positions through the model',
    positions,
    promptTokens - cachedTokens + Math.max(0, answer - 1),
    `${promptTokens} of the prompt${cached} + ${Math.max(0, answer - 1)} fed back`,
  );
  check('runs of the output head', head_runs, Math.max(1, answer), 'one for each chosen token');
  check('runs of attention', attention_runs, layers * passes, `${layers} layers x ${passes} passes`);
  return found;
}
