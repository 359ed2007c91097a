/** What the runtime needs from the platform under it. One folder beside this file implements it for each. */

import type { KernelTask } from '../backends/wasm/tasks.ts';
import type { ByteSource } from '../formats/byte-source.ts';
import type { KernelPool } from '../scheduling/kernel-pool.ts';

/** The four builds of the kernels: instructions, and kind of memory that they import. */
export type KernelBuild = `${'simd' | 'relaxed'}-${'shared' | 'plain'}`;

export interface Platform {
  /**
   * Opens a path, an address or the name of a model that comes with apr, whatever of these the platform has.
   * @throws AprError NOT_FOUND, BAD_FORMAT, IO
   */
  openSource(location: string): Promise<ByteSource>;
  /** Threads to use when nobody says how many. */
  defaultThreads(): number;
  /** Bytes that can still be allocated, undefined where the platform does not tell. */
  availableMemory(): number | undefined;
  /** Whether relaxed SIMD works here without a flag, and correctly. */
  supportsRelaxedSimd(): boolean;
  supportsSharedMemory(): boolean;
  loadKernels(build: KernelBuild): Promise<WebAssembly.Module>;
  /** A pool of `threads` threads of its own. */
  createPool(threads: number): KernelPool<KernelTask>;
}
