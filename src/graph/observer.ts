/** Looking on at a run without changing it: activations, times of passes, stretches of the host's own work. */

import type { PassRecord } from './command.ts';

/** One named activation of one pass, copied out behind the operation that produced it. */
export interface Tap {
  /** GGUF-style name, for example `blk.0.attn_norm`. */
  readonly name: string;
  readonly layer: number | undefined;
  /** Values a row, rows. */
  readonly shape: readonly [number, number];
  /** Positions of the pass's rows. */
  readonly positions: readonly number[];
  readonly values: Float32Array;
}

/** What a backend ran for a pass, in order: one kernel call, or one command where there are no kernels. */
export interface PassStep {
  /** Index of the command that it computes, or part of it. */
  readonly command: number;
  /** Name of the kernel or operation. */
  readonly kernel: string;
  /** The matrix that it reads, as it lies in memory. */
  readonly weight?: StepWeight;
}

export interface StepWeight {
  /** Tensor type, such as `Q4_K`. */
  readonly type: string;
  /** Bytes that the step reads of a matrix; of one expert's where `experts` are chosen. */
  readonly bytes: number;
  /** Set for a product with chosen experts: how many matrices were read only the routing tells. */
  readonly perExpert?: true;
}

/**
 * When each thread did each step. Milliseconds of the host's `performance.now()`: every thread reads its own and adds
 * the difference of the two threads' `performance.timeOrigin`, which a runtime takes from one monotonic clock. NaN for
 * what a thread did not reach.
 */
export interface ThreadTimes {
  /** The thread took up the pass. */
  readonly woke: number;
  /** Behind the barrier before the step, if it has one. [steps] */
  readonly begin: Float64Array;
  /** Nothing of the step was left to take. [steps] */
  readonly end: Float64Array;
}

/** Times of one pass, all measured; milliseconds of the host's `performance.now()`. */
export interface PassTiming {
  readonly record: PassRecord;
  /** Positions of the rows. */
  readonly positions: readonly number[];
  /** The same array for every pass that runs the same program. */
  readonly steps: readonly PassStep[];
  readonly threads: readonly ThreadTimes[];
  /** The host began, gave the pass to the threads, had it back, and was done with the copies for {@link Tap}s. */
  readonly start: number;
  readonly handed: number;
  readonly returned: number;
  readonly end: number;
}

export type SpanName =
  | 'header'
  | 'tokenizer'
  | 'chat_template'
  | 'contract'
  | 'kernels'
  | 'weights'
  | 'self_check'
  | 'load'
  | 'template'
  | 'tokenize'
  | 'warm_up'
  | 'prefill'
  | 'record'
  | 'sample'
  | 'detokenize';

/** A stretch of the host's own work. Milliseconds of `performance.now()`. */
export interface Span {
  readonly name: SpanName;
  readonly start: number;
  readonly end: number;
  /** What it was about, for people. */
  readonly details?: Readonly<Record<string, string | number>>;
}

export interface PassObserver {
  /** Whether this activation shall be copied out; asked once for each shape of pass. Absent: none is. */
  wants?(name: string, layer: number | undefined): boolean;
  /**
   * Set where `wants` says yes to routing (what `topK` computes) at most: it is small, so that passes are as long as
   * without an observer.
   */
  readonly routingOnly?: boolean;
  onTap?(tap: Tap): void;
  /** Present: passes are timed. Called behind the pass's taps. */
  onPass?(timing: PassTiming): void;
  /** Present: the host's own work is timed. Called when a stretch has ended; an outer one comes after its parts. */
  onSpan?(span: Span): void;
}

/** Does the work, and tells the observer, if it wants to know, when that was. */
export function spanned<T>(
  observer: PassObserver | undefined,
  name: SpanName,
  work: () => T,
  details?: (result: T) => Span['details'],
): T {
  if (observer?.onSpan === undefined) return work();
  const start = performance.now();
  const result = work();
  const end = performance.now();
  observer.onSpan({ name, start, end, ...(details === undefined ? {} : { details: details(result) }) });
  return result;
}

/** The same for work that takes turns. */
export async function spannedAsync<T>(
  observer: PassObserver | undefined,
  name: SpanName,
  work: () => Promise<T>,
): Promise<T> {
  if (observer?.onSpan === undefined) return work();
  const start = performance.now();
  const result = await work();
  observer.onSpan({ name, start, end: performance.now() });
  return result;
}

/** Rows of a pass at most, so that what the observer wants to keep of it fits into memory. */
export function rowsOfPass(
  backend: { readonly maxRows: number; readonly observedRows: number },
  observer: PassObserver | undefined,
): number {
  if (observer?.wants === undefined || observer.routingOnly === true) return backend.maxRows;
  return Math.min(backend.maxRows, backend.observedRows);
}
