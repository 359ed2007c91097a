/** What the runtime needs from the platform under it. One folder beside this file implements it for each. */

import type { KernelTask } from '../backends/wasm/tasks.ts';
import type { ByteSource } from '../formats/byte-source.ts';
import type { ModelSource } from '../formats/model-source.ts';
import type { KernelPool } from '../scheduling/kernel-pool.ts';

/** The four builds of the kernels: instructions, and kind of memory that they import. */
export type KernelBuild = `${'simd' | 'relaxed'}-${'shared' | 'plain'}`;

export interface OpenOptions {
  /** Whether threads are going to read the source too, besides the caller. Default false. */
  readonly threads?: boolean;
  readonly signal?: AbortSignal;
  /** Told the bytes that are there, while a server that cannot send ranges sends the whole file first. */
  readonly onDownload?: (bytes: number, total: number | undefined) => void;
}

export interface Platform {
  /**
   * Opens a path, an address, the name of a model that comes with apr, a Blob or bytes: whatever the platform has.
   * @throws AprError NOT_FOUND, BAD_FORMAT, IO, ABORTED
   */
  openSource(source: ModelSource, options?: OpenOptions): Promise<ByteSource>;
  /** Threads to use when nobody says how many. */
  defaultThreads(): number;
  /** Bytes that can still be allocated, undefined where the platform does not tell. */
  availableMemory(): number | undefined;
  /** Whether relaxed SIMD works here without a flag, and correctly. */
  supportsRelaxedSimd(): boolean;
  supportsSharedMemory(): boolean;
  /** Why there is no shared memory and what to do about it, as the end of a sentence. */
  readonly sharedMemoryAdvice: string;
  loadKernels(build: KernelBuild): Promise<WebAssembly.Module>;
  /** A pool of `threads` threads of its own. */
  createPool(threads: number): KernelPool<KernelTask> | Promise<KernelPool<KernelTask>>;
}
