/** The runtime on Node, and on Deno, Bun and Electron where they behave like it. */

import { readFile } from 'node:fs/promises';
import { availableParallelism, freemem } from 'node:os';
import { AprError } from '../../errors.ts';
import type { KernelBuild, Platform } from '../platform.ts';
import { bundledModelPath } from './bundled-models.ts';
import { openFileSource } from './file-source.ts';
import { createKernelPool } from './kernel-pool.ts';

/** `i32x4.relaxed_dot_i8x16_i7x16_add_s` of three zero vectors: validates only where relaxed SIMD is on. */
const RELAXED_PROBE = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 20, 1, 18, 0, 65, 0, 253, 15, 65, 0, 253, 15, 65, 0,
  253, 15, 253, 147, 2, 26, 11,
]);

export const nodePlatform: Platform = {
  openSource: (location) => openFileSource(bundledModelPath(location) ?? location),
  defaultThreads: () => availableParallelism(),
  // Counts what the page cache would give back, and a container's limit; older Node tells free memory only.
  availableMemory: () => (process as { availableMemory?: () => number }).availableMemory?.() ?? freemem(),
  supportsRelaxedSimd: () => {
    // V8 before 12 has relaxed SIMD behind a flag, and its baseline compiler doubles products: never use it there.
    const v8 = process.versions.v8;
    if (v8 !== undefined && Number.parseInt(v8, 10) < 12) return false;
    return WebAssembly.validate(RELAXED_PROBE);
  },
  supportsSharedMemory: () => typeof SharedArrayBuffer !== 'undefined',
  loadKernels: async (build: KernelBuild) => {
    const url = new URL(`../../../assembly/${build}.wasm`, import.meta.url);
    let bytes: Uint8Array<ArrayBuffer>;
    try {
      bytes = new Uint8Array(await readFile(url));
    } catch (cause) {
      throw new AprError(
        'LOAD_FAILED',
        `the kernel module ${build}.wasm is missing from this installation`,
        {},
        { cause },
      );
    }
    return WebAssembly.compile(bytes);
  },
  createPool: createKernelPool,
};
