/** The runtime on Node, and on Deno, Bun and Electron where they behave like it. */

import { readFile } from 'node:fs/promises';
import { availableParallelism, freemem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { AprError } from '../../errors.ts';
import { blobSource } from '../../formats/blob-source.ts';
import type { ByteSource } from '../../formats/byte-source.ts';
import { memorySource } from '../../formats/memory-source.ts';
import { type ModelSource, nameOfSource } from '../../formats/model-source.ts';
import { openUrlSource } from '../../formats/url-source.ts';
import type { KernelBuild, OpenOptions, Platform } from '../platform.ts';
import { relaxedSimdWorks } from '../relaxed-simd.ts';
import { bundledModelPath } from './bundled-models.ts';
import { openFileSource } from './file-source.ts';

export const nodePlatform: Platform = {
  openSource: openNodeSource,
  defaultThreads: () => availableParallelism(),
  // Counts what the page cache would give back, and a container's limit; older Node tells free memory only.
  availableMemory: () => (process as { availableMemory?: () => number }).availableMemory?.() ?? freemem(),
  supportsRelaxedSimd: () => {
    // V8 before 12 has relaxed SIMD behind a flag, and its baseline compiler doubles products: never use it there.
    const v8 = process.versions.v8;
    if (v8 !== undefined && Number.parseInt(v8, 10) < 12) return false;
    return relaxedSimdWorks();
  },
  supportsSharedMemory: () => typeof SharedArrayBuffer !== 'undefined',
  sharedMemoryAdvice: 'this platform has no SharedArrayBuffer',
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
  // Imported when there is something to run: who only reads a file needs no library of threads.
  createPool: async (threads) => (await import('./kernel-pool.ts')).createKernelPool(threads),
};

async function openNodeSource(source: ModelSource, options: OpenOptions = {}): Promise<ByteSource> {
  if (typeof source === 'string') return openFileSource(bundledModelPath(source) ?? source);
  if (source instanceof URL) {
    return source.protocol === 'file:' ? openFileSource(fileURLToPath(source)) : openUrlSource(source, options);
  }
  const name = nameOfSource(source);
  if (!(source instanceof Uint8Array)) return blobSource(name, source);
  if (options.threads !== true || source.buffer instanceof SharedArrayBuffer) return memorySource(name, source);
  // One copy that all threads share, instead of one for each.
  const shared = new Uint8Array(new SharedArrayBuffer(source.length));
  shared.set(source);
  return memorySource(name, shared);
}
