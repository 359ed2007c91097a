/**
 * Where workers wait for each other. Three i32 words of shared memory, zero at first:
 *
 *   0  workers that arrived
 *   4  generation: goes up by 2 when all arrived; bit 0 says that somebody sleeps
 *   8  abort code, 0 while all is well
 */

const GENERATION: usize = 4;
const ABORT: usize = 8;

/** Nanoseconds of one sleep. Only a bound: who completes or aborts a generation wakes the sleepers. */
const SLEEP: i64 = 100_000_000;

/**
 * Returns 0 when all `workers` have called it, 1 when the barrier was aborted, before or meanwhile. Looks `spin` times
 * before it sleeps. May be entered again at once. With one worker it never waits, so that it works on memory that is
 * not shared, and on threads that must not block.
 */
export function barrier(control: usize, workers: i32, spin: i32): i32 {
  if (workers <= 1) return aborted(control);
  // Cannot change before this worker has arrived, but for bit 0 and an abort.
  const generation = atomic.load<i32>(control, GENERATION) & ~1;
  if (aborted(control)) return 1;
  if (atomic.add<i32>(control, 1) == workers - 1) {
    // Before the generation changes: whoever sees the new one may arrive anew.
    atomic.store<i32>(control, 0);
    advance(control, generation);
    return aborted(control);
  }
  for (let i = 0; i < spin; i++) {
    if ((atomic.load<i32>(control, GENERATION) & ~1) != generation) return aborted(control);
  }
  while (!aborted(control)) {
    const seen = atomic.cmpxchg<i32>(control, generation, generation | 1, GENERATION);
    if ((seen & ~1) != generation) break;
    atomic.wait<i32>(control + GENERATION, generation | 1, SLEEP);
  }
  return aborted(control);
}

/** Makes every call that waits, and every later one, return 1. A code of 0 counts as 1. */
export function barrier_abort(control: usize, code: i32): void {
  atomic.store<i32>(control, code == 0 ? 1 : code, ABORT);
  // A new generation, so that nobody can fall asleep after having looked at the abort word too early.
  advance(control, atomic.load<i32>(control, GENERATION) & ~1);
}

function advance(control: usize, generation: i32): void {
  if (atomic.xchg<i32>(control, generation + 2, GENERATION) & 1) atomic.notify(control + GENERATION, -1);
}

function aborted(control: usize): i32 {
  return atomic.load<i32>(control, ABORT) != 0 ? 1 : 0;
}
