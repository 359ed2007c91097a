/**
 * Times of a pass's steps, written by every thread where the host can read them. Nobody looks at a clock but through
 * this, and only a timed pass has one.
 *
 *   thread t, from float64 t · stride on: when it took up the pass, then begin and end of each step
 */

import type { ThreadTimes } from '../../graph/observer.ts';

export interface TimesBuffer {
  readonly buffer: SharedArrayBuffer | ArrayBuffer;
  /** Float64 values of one thread. */
  readonly stride: number;
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
    origin: performance.timeOrigin,
  };
}

/** The clock of one thread, made in that thread. */
export function createStepClock({ buffer, stride, origin }: TimesBuffer, thread: number): StepClock {
  const times = new Float64Array(buffer, thread * stride * 8, stride);
  const shift = performance.timeOrigin - origin;
  let last = 0;
  const now = (): number => {
    last = performance.now() + shift;
    return last;
  };
  return {
    wake: () => {
      times[0] = now();
    },
    begin: (index, waited) => {
      times[1 + 2 * index] = waited ? now() : last;
    },
    end: (index) => {
      times[2 + 2 * index] = now();
    },
  };
}

/** Forgets the times of a program of `steps` steps, so that what a thread leaves out stays NaN. */
export function clearTimes({ buffer, stride }: TimesBuffer, steps: number): void {
  const all = new Float64Array(buffer);
  for (let at = 0; at < all.length; at += stride) all.fill(Number.NaN, at, at + 1 + 2 * steps);
}

/** A copy of what the threads wrote for a program of `steps` steps. */
export function readTimes({ buffer, stride }: TimesBuffer, steps: number): ThreadTimes[] {
  const all = new Float64Array(buffer);
  return Array.from({ length: all.length / stride }, (_, thread) => {
    const at = thread * stride;
    const begin = new Float64Array(steps);
    const end = new Float64Array(steps);
    for (let step = 0; step < steps; step++) {
      begin[step] = all[at + 1 + 2 * step]!;
      end[step] = all[at + 2 + 2 * step]!;
    }
    return { woke: all[at]!, begin, end };
  });
}
