/** What executes a recorded pass. */

import type { PassRecord } from './command.ts';
import type { PassObserver } from './observer.ts';

export interface PassInputs {
  /** Token ids, one a row. */
  readonly tokens: Int32Array;
  /** Position of each row in its sequence. */
  readonly positions: Int32Array;
  /** Cache slot of each row. */
  readonly sequences: Int32Array;
  /** Rows whose logits are wanted, ascending. */
  readonly outputRows: Int32Array;
}

export interface Backend {
  readonly name: 'cpu' | 'reference';
  readonly kernel: 'simd' | 'relaxed' | 'scalar';
  readonly threads: number;
  /** Bytes reserved for keys and values. */
  readonly kvCacheBytes: number;
  /** Tokens of one prefill pass at most. */
  readonly maxRows: number;
  /** Rows of one pass at most when all of them want logits. */
  readonly maxOutputs: number;
  /** Rows of one pass at most when an observer wants activations; see {@link rowsOfPass}. */
  readonly observedRows: number;
  /**
   * Says that no pass follows for now: an idle backend uses no CPU and does not keep the process alive. It comes to rest
   * by itself a short while after the last pass.
   */
  rest(): Promise<void>;
  /**
   * Runs one pass.
   * @returns logits [outputs × vocabulary], a view that the next pass overwrites; empty for a pass without outputs
   * @throws AprError INFERENCE when a computation failed, ABORTED by the signal, DISPOSED; the cache of the pass's rows
   *   is undefined then
   */
  execute(record: PassRecord, inputs: PassInputs, observer?: PassObserver, signal?: AbortSignal): Promise<Float32Array>;
  dispose(): Promise<void>;
}
