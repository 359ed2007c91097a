/**
 * Words (int32) of the control block at the start of bank 0, by which the host and the kernel workers meet. Words
 * that different sides write stand on different cache lines.
 */
export const CONTROL = {
  /** Number of the pass to run; the host adds one to start it. */
  SEQUENCE: 0,
  /** Workers that finished the pass. */
  DONE: 16,
  /** Set to SEQUENCE by the last worker that finishes. */
  FINISHED: 32,
  /** 0 while passes come, 1 when the session shall end. */
  STATE: 1,
  /** Words of the program. */
  PROGRAM_LENGTH: 2,
  /** Next job of the load list. */
  NEXT_JOB: 48,
  /** KiB of weights in place. */
  LOADED_KIB: 64,
  /** Four words of the barrier: workers that arrived, generation, abort, sleepers (barrier.ts). */
  BARRIER: 80,
  ABORT: 82,
} as const;

export const CONTROL_BYTES = 1024;

/** The control block at the start of bank 0's memory. */
export function controlOf(memory: WebAssembly.Memory): Int32Array {
  return new Int32Array(memory.buffer, 0, CONTROL_BYTES / 4);
}
