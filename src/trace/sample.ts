/**
 * A timed pass on one line: the threads' times of each step as the moments at which the last thread was done with it.
 * What lies between two of them is the step's share of the wall clock, whoever computed and whoever waited.
 */

import type { PassRecord } from '../graph/command.ts';
import type { PassStep, PassTiming, ThreadTimes } from '../graph/observer.ts';
import type { TracePhase } from './events.ts';

/** Milliseconds of the host's `performance.now()`. */
export interface PassSample {
  readonly phase: TracePhase;
  readonly record: PassRecord;
  readonly steps: readonly PassStep[];
  readonly position: number;
  /** The host began; the first thread had it. */
  readonly start: number;
  readonly taken: number;
  /** When the last thread was done with each step; NaN for a step that no thread did. [steps] */
  readonly done: Float64Array;
  /** The host had it back; taps were copied. */
  readonly returned: number;
  readonly end: number;
  /** What each thread computed and waited between `taken` and the last step's end. [threads] */
  readonly busy: Float64Array;
  readonly waiting: Float64Array;
  /** Whether every time of every thread lies within the pass: otherwise the threads' clocks do not agree. */
  readonly aligned: boolean;
  /** Kept where each thread shall be shown. */
  readonly threads?: readonly ThreadTimes[];
}

/** Clocks of two threads are read at two moments: they may disagree by so much, in milliseconds. */
const TOLERANCE_MS = 0.02;

export function samplePass(timing: PassTiming, phase: TracePhase, keepThreads: boolean): PassSample {
  const { record, steps, threads, positions, start, handed, returned, end } = timing;
  const taken = threads.reduce((least, { woke }) => Math.min(least, woke), Number.POSITIVE_INFINITY);
  const done = new Float64Array(steps.length);
  let last = taken;
  for (let step = 0; step < steps.length; step++) {
    let latest = Number.NaN;
    for (const thread of threads) {
      const time = thread.end[step]!;
      if (!(time <= latest)) latest = Number.isNaN(time) ? latest : time;
    }
    if (latest < last) latest = last;
    done[step] = latest;
    if (!Number.isNaN(latest)) last = latest;
  }
  const busy = new Float64Array(threads.length);
  const waiting = new Float64Array(threads.length);
  let aligned = taken >= handed - TOLERANCE_MS && last <= returned + TOLERANCE_MS;
  threads.forEach((thread, index) => {
    let at = thread.woke;
    let waited = at - taken;
    let worked = 0;
    for (let step = 0; step < steps.length; step++) {
      const begin = thread.begin[step]!;
      const stop = thread.end[step]!;
      if (Number.isNaN(begin) || Number.isNaN(stop)) continue;
      if (begin < at || stop < begin) aligned = false;
      waited += begin - at;
      worked += stop - begin;
      at = stop;
    }
    busy[index] = worked;
    waiting[index] = waited + (last - at);
  });
  return {
    phase,
    record,
    steps,
    position: positions[0] ?? 0,
    start,
    taken,
    done,
    returned,
    end,
    busy,
    waiting,
    aligned,
    ...(keepThreads ? { threads } : {}),
  };
}

export interface CommandTime {
  /** Index in the record. */
  readonly command: number;
  readonly start: number;
  readonly end: number;
}

/** When each command was computed, one that no step computed left out. */
export function commandTimes({ steps, done, taken }: PassSample): CommandTime[] {
  const times: { command: number; start: number; end: number }[] = [];
  let last = taken;
  steps.forEach(({ command }, step) => {
    const time = done[step]!;
    if (Number.isNaN(time)) return;
    const before = times.at(-1);
    if (before?.command === command) before.end = time;
    else times.push({ command, start: last, end: time });
    last = time;
  });
  return times;
}
