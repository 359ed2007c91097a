/**
 * Where kernel workers wait for each other, over four words of their control block, zero at first.
 *
 * Not written in WebAssembly: `memory.atomic.wait32` as V8's first compiler made it until V8 11.3 (Node 20) zeroes the
 * local variable beside its operands on x64, so that a worker which had slept left too early.
 */

import { CONTROL } from './control.ts';

/** Words from CONTROL.BARRIER on. */
const ARRIVED = CONTROL.BARRIER;
/** Goes up when all have arrived, and with an abort. */
const GENERATION = CONTROL.BARRIER + 1;
/** Workers that sleep, or are about to. */
const SLEEPERS = CONTROL.BARRIER + 3;

/** How often a worker looks before it sleeps: some tens of microseconds. */
export const SPIN = 4000;
/** Only a bound: who completes or aborts a generation wakes the sleepers. */
const SLEEP_MS = 100;

/**
 * Blocks until all `workers` have called it; false when the barrier was aborted, before or meanwhile. May be entered
 * again at once. A worker alone never waits: its memory need not be shared, and its thread need not be one that may
 * block.
 */
export function meet(control: Int32Array, workers: number, spin = SPIN): boolean {
  if (workers <= 1) {
    Atomics.add(control, GENERATION, 1);
    return !aborted(control);
  }
  // Cannot change before this worker has arrived, but for an abort.
  const generation = Atomics.load(control, GENERATION);
  if (aborted(control)) return false;
  if (Atomics.add(control, ARRIVED, 1) === workers - 1) {
    // Before the generation changes: whoever sees the new one may arrive anew.
    Atomics.store(control, ARRIVED, 0);
    advance(control);
    return !aborted(control);
  }
  for (let i = 0; i < spin; i++) {
    if (Atomics.load(control, GENERATION) !== generation) return !aborted(control);
  }
  // Announced before the generation is looked at again: whoever changes it later sees a sleeper.
  Atomics.add(control, SLEEPERS, 1);
  while (Atomics.load(control, GENERATION) === generation) Atomics.wait(control, GENERATION, generation, SLEEP_MS);
  Atomics.sub(control, SLEEPERS, 1);
  return !aborted(control);
}

/** Makes every {@link meet} that waits, and every later one, return false. */
export function abortBarrier(control: Int32Array): void {
  Atomics.store(control, CONTROL.ABORT, 1);
  // A new generation, so that nobody falls asleep after having looked at the abort word too early.
  advance(control);
}

/** Makes the barrier new. Nobody may be in it. */
export function resetBarrier(control: Int32Array): void {
  for (const word of [ARRIVED, GENERATION, CONTROL.ABORT, SLEEPERS]) Atomics.store(control, word, 0);
}

/** For people: who arrived, and how often all have met. Changes whenever a worker gets further. */
export function barrierState(control: Int32Array): readonly [arrived: number, generation: number] {
  return [Atomics.load(control, ARRIVED), Atomics.load(control, GENERATION)];
}

function advance(control: Int32Array): void {
  Atomics.add(control, GENERATION, 1);
  if (Atomics.load(control, SLEEPERS) !== 0) Atomics.notify(control, GENERATION);
}

function aborted(control: Int32Array): boolean {
  return Atomics.load(control, CONTROL.ABORT) !== 0;
}
