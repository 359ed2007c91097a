/** What every thread did during one pass. */

import type { PassTiming } from '../graph/observer.ts';
import { type Part, partsOf } from './parts.ts';

export interface TimelineSlice {
  readonly kernel: string;
  readonly part: Part;
  readonly layer: number | undefined;
  /** Microseconds since the host began the pass. */
  readonly start_us: number;
  readonly duration_us: number;
}

export interface Timeline {
  readonly phase: 'prefill' | 'decode';
  readonly rows: number;
  readonly position: number;
  /** From the host's begin to when it had the pass back. */
  readonly duration_us: number;
  /** One list a thread; between two slices it waited. */
  readonly threads: readonly (readonly TimelineSlice[])[];
}

export function timelineOf(timing: PassTiming, phase: Timeline['phase']): Timeline {
  const { record, steps, positions, start, returned } = timing;
  const parts = partsOf(record);
  const threads = timing.threads.map(({ begin, end }) => {
    const slices: TimelineSlice[] = [];
    steps.forEach(({ command, kernel }, step) => {
      const part = parts[command];
      if (part === undefined || Number.isNaN(end[step])) return;
      slices.push({
        kernel,
        part: part.part,
        layer: part.layer,
        start_us: (begin[step]! - start) * 1000,
        duration_us: (end[step]! - begin[step]!) * 1000,
      });
    });
    return slices;
  });
  const duration_us = (returned - start) * 1000;
  return { phase, rows: record.rows, position: positions[0] ?? 0, duration_us, threads };
}
