/** Waits for a word of shared memory without blocking this thread for long. */

import { nextTurn } from './turn.ts';

/** So long does a thread sleep that has no better way to wait; then everything else has its turn. */
const SLEEP_MS = 4;

/**
 * Resolves when somebody notifies the word, or some time later; the caller looks again. Undefined when it does not hold
 * `value` any more.
 */
export function changeOf(words: Int32Array, index: number, value: number): Promise<unknown> | undefined {
  if (typeof Atomics.waitAsync === 'function') {
    const wait = Atomics.waitAsync(words, index, value);
    return wait.async ? wait.value : undefined;
  }
  return Atomics.load(words, index) === value ? sleep(words, index, value) : undefined;
}

/** For browsers that have no waitAsync yet. Their Workers may sleep, their pages may not. */
async function sleep(words: Int32Array, index: number, value: number): Promise<void> {
  await nextTurn();
  try {
    Atomics.wait(words, index, value, SLEEP_MS);
  } catch {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
