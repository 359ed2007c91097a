/**
 * Times of a pass's steps, written by every thread where the host can read them. Nobody looks at a clock but through
 * this, and only a timed pass has one.
 *
 *   thread t, from float64 t · stride on: when it took up the pass | begin of each step | end of each step
 */

import type { ThreadTimes } from '../../graph/observer.ts';

export interface TimesBuffer {
  readonly buffer: SharedArrayBuffer | ArrayBuffer;
  /** Float64 values of one thread. */
  readonly stride: number;
  /** Steps that there is room for. */
  readonly capacity: number;
  /** `performance.timeOrigin` of the host: what is written are milliseconds of its `performance.now()`. */
  readonly origin: number;
}

export interface StepClock {
  /** The thread takes up the pass. */
  wake(): void;
  /** Step `index` begins; it follows the last one at once unless the thread has `waited`. */
  begin(index: number, waited: boolean): void;
  end(index: number): void;
}

/** Room for the times of `threads` threads and programs of up to `steps` steps. */
export function createTimesBuffer(threads: number, steps: number, shared: boolean): TimesBuffer {
  // Whole cache lines: threads must not write into each other's.
  const stride = Math.ceil((1 + 2 * steps) / 8) * 8;
  const bytes = threads * stride * 8;
  return {
    buffer: shared ? new SharedArrayBuffer(bytes) : new ArrayBuffer(bytes),
    stride,
    capacity: steps,
    origin: performance.timeOrigin,
  };
}

/** The clock of one thread, made in that thread. */
export function createStepClock({ buffer, stride, capacity, origin }: TimesBuffer, thread: number): StepClock {
  const times = new Float64Array(buffer, thread * stride * 8, stride);
  const ends = 1 + capacity;
  // The global is a getter: asked once, a look at the clock takes a quarter less.
  const clock = performance;
  const shift = clock.timeOrigin - origin;
  let last = 0;
  const now = (): number => {
    last = clock.now() + shift;
    return last;
  };
  return {
    wake: () => {
      times[0] = now();
    },
    begin: (index, waited) => {
      times[1 + index] = waited ? now() : last;
    },
    end: (index) => {
      times[ends + index] = now();
    },
  };
}

/**
 * A copy of what the threads wrote for a program of `steps` steps. What is older than `since`, the begin of the pass, a
 * thread has left from another one: NaN.
 */
export function readTimes({ buffer, stride, capacity }: TimesBuffer, steps: number, since: number): ThreadTimes[] {
  const all = new Float64Array(buffer);
  const copy = (from: number): Float64Array => {
    const times = all.slice(from, from + steps);
    for (let step = 0; step < steps; step++) if (!(times[step]! >= since)) times[step] = Number.NaN;
    return times;
  };
  return Array.from({ length: all.length / stride }, (_, thread) => {
    const at = thread * stride;
    const woke = all[at]! >= since ? all[at]! : Number.NaN;
    return { woke, begin: copy(at + 1), end: copy(at + 1 + capacity) };
  });
}
