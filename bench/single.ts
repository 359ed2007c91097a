/** Benchmarks of one figure each, which run in processes of their own: parts of the table. */

import { spawnSync } from 'node:child_process';
import type { BandwidthMeasurement } from './bandwidth.ts';
import type { BatchMeasurement } from './batch.ts';
import type { KernelRates } from './kernels.ts';
import type { LoadMeasurement } from './load.ts';
import type { LongContextMeasurement } from './long-context.ts';
import { compiled } from './repository.ts';
import { showSpread } from './statistics.ts';
import type { TracingRow } from './tracing.ts';

export interface SingleTask {
  readonly node: string;
  /** A model file. */
  readonly model: string;
  readonly threads: number;
  readonly rounds: number;
}

export interface SingleRow {
  /** What the figure is. */
  readonly title: string;
  readonly figure: number;
  /** What it should reach: `figure` at least, or at most where less is better. */
  readonly reach: number;
  readonly lessIsBetter: boolean;
  /** What the figure comes from. */
  readonly detail: string;
  /** All that was measured. */
  readonly measured: unknown;
}

interface Single<Measured> {
  readonly script: string;
  /** Its first words on the command line; the model by default. */
  readonly words?: readonly string[];
  /** Takes no threads and rounds. */
  readonly alone?: true;
  row(measured: Measured): Omit<SingleRow, 'measured'>;
}

const context: Single<LongContextMeasurement> = {
  script: 'bench/long-context.js',
  row: ({ position, start, far, ratio }) => ({
    title: `decode at position ${position} against position 0`,
    figure: ratio,
    reach: 0.6,
    lessIsBetter: false,
    detail: `${showSpread(far)} of ${showSpread(start)} tok/s`,
  }),
};

const load: Single<LoadMeasurement> = {
  script: 'bench/load.js',
  row: ({ read, load: ready, ratio }) => ({
    title: 'load to ready against reading the file once',
    figure: ratio,
    reach: 2.5,
    lessIsBetter: true,
    detail: `${showSpread(ready, 0)} of ${showSpread(read, 0)} ms`,
  }),
};

const batch: Single<BatchMeasurement> = {
  script: 'bench/batch.js',
  row: ({ kernel, sequences, alone, together, ratio }) => ({
    title: `tokens of ${sequences} sequences together against one`,
    figure: ratio,
    reach: kernel === 'relaxed' ? 2 : 1.3,
    lessIsBetter: false,
    detail: `${showSpread(together)} of ${showSpread(alone)} tok/s`,
  }),
};

const tracing: Single<{ readonly rows: readonly TracingRow[] }> = {
  script: 'bench/tracing.js',
  words: ['--model', 'demo'],
  row: ({ rows }) => {
    const { cost, decode } = rows.find(({ level }) => level === 'layer')!;
    return {
      title: 'time that a trace of level layer adds to a token of the demo',
      figure: cost,
      reach: 0.05,
      lessIsBetter: true,
      detail: `${showSpread(decode)} of ${showSpread(rows[0]!.decode)} tok/s`,
    };
  },
};

const bandwidth: Single<BandwidthMeasurement> = {
  script: 'bench/bandwidth.js',
  row: ({ decode, read, ratio }) => ({
    title: "share of the machine's read bandwidth that decoding moves",
    figure: ratio,
    reach: 0.5,
    lessIsBetter: false,
    detail: `${showSpread(decode)} of ${showSpread(read)} GB/s`,
  }),
};

const kernels: Single<KernelRates> = {
  script: 'bench/kernels.js',
  words: ['best', 'Q4_K', 'Q6_K', 'Q8_0', 'Q4_0'],
  alone: true,
  row: ({ variant, limits, prefill }) => {
    const [slowest, rate] = Object.entries(prefill).reduce((a, b) => (b[1] < a[1] ? b : a));
    return {
      title: `prefill kernel (${variant}) against dots of the same instructions in the first cache`,
      figure: prefill.Q4_K! / limits.dots,
      reach: 0.6,
      lessIsBetter: false,
      detail: `Q4_K: ${prefill.Q4_K!.toFixed(1)} of ${limits.dots.toFixed(1)} G MAC/s; ${slowest}: ${rate.toFixed(1)}`,
    };
  },
};

export const SINGLES = { context, load, batch, tracing, bandwidth, kernels } as const;
export type SinglePart = keyof typeof SINGLES;

/** @throws Error with what the process wrote to stderr when it fails */
export function measureSingle(part: SinglePart, { node, model, threads, rounds }: SingleTask): SingleRow {
  const single = SINGLES[part] as Single<unknown>;
  const how = single.alone ? [] : ['--threads', `${threads}`, '--rounds', `${rounds}`];
  const words = [...(single.words ?? ['--model', model]), ...how, '--json'];
  const child = spawnSync(node, [compiled(single.script), ...words], { encoding: 'utf8', maxBuffer: 1 << 26 });
  if (child.status !== 0) {
    throw new Error(
      `${single.script} ended with ${child.signal ?? child.status}: ${child.stderr.trim() || 'no output'}`,
    );
  }
  const measured: unknown = JSON.parse(child.stdout);
  return { ...single.row(measured), measured };
}
