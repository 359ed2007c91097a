/** The runtime in a page or one of its Workers, and on hosts that offer nothing but the web's interfaces. */

import { AprError } from '../../errors.ts';
import { blobSource } from '../../formats/blob-source.ts';
import type { ByteSource } from '../../formats/byte-source.ts';
import { memorySource } from '../../formats/memory-source.ts';
import { type ModelSource, nameOfSource } from '../../formats/model-source.ts';
import { openUrlSource } from '../../formats/url-source.ts';
import type { OpenOptions, Platform } from '../platform.ts';
import { relaxedSimdWorks } from '../relaxed-simd.ts';
import { createKernelPool } from './kernel-pool.ts';
import { type KernelModules, loadKernels } from './kernels.ts';

export interface WebPlatformOptions {
  /** Kernel modules from another place than beside the package's files. */
  readonly kernels?: KernelModules;
  /** Address of the script of kernel threads, `workers/web-kernel.js` of this package, where it is not found by itself. */
  readonly kernelWorker?: string | URL;
}

/** Why threads cannot share memory here; undefined where they can. */
export function sharedMemoryProblem(): string | undefined {
  if (globalThis.crossOriginIsolated === false) {
    return 'this page is not cross-origin isolated (serve it with the headers Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp)';
  }
  if (typeof SharedArrayBuffer === 'undefined') return 'this platform has no SharedArrayBuffer';
  if (typeof Worker === 'undefined') return 'this platform has no Workers';
  return undefined;
}

export function createWebPlatform(options: WebPlatformOptions = {}): Platform {
  return {
    openSource: openWebSource,
    defaultThreads: () => globalThis.navigator?.hardwareConcurrency ?? 1,
    // A page is not told.
    availableMemory: () => undefined,
    supportsRelaxedSimd: relaxedSimdWorks,
    supportsSharedMemory: () => sharedMemoryProblem() === undefined,
    sharedMemoryAdvice: sharedMemoryProblem() ?? 'it was switched off',
    loadKernels: (build) => loadKernels(build, options.kernels),
    createPool: (threads) => createKernelPool(threads, () => startKernelThread(options.kernelWorker)),
  };
}

function startKernelThread(script: string | URL | undefined): Worker {
  if (script !== undefined) return new Worker(script, { type: 'module', name: 'apr kernel' });
  // In one expression, since that is what bundlers find.
  return new Worker(new URL('../../../workers/web-kernel.js', import.meta.url), { type: 'module', name: 'apr kernel' });
}

async function openWebSource(source: ModelSource, options: OpenOptions = {}): Promise<ByteSource> {
  if (typeof source === 'string' || source instanceof URL) return openUrlSource(addressOf(source), options);
  const name = nameOfSource(source);
  if (!(source instanceof Uint8Array)) return blobSource(name, source);
  const sharing = typeof SharedArrayBuffer !== 'undefined' && source.buffer instanceof SharedArrayBuffer;
  if (options.threads !== true || sharing) return memorySource(name, source);
  // One copy that all threads read, instead of one for each.
  return blobSource(name, new Blob([source as Uint8Array<ArrayBuffer>]));
}

/** A relative address is one of the page, or of the Worker's script. */
function addressOf(source: string | URL): URL {
  if (source instanceof URL) return source;
  try {
    return new URL(source, globalThis.location?.href);
  } catch (cause) {
    throw new AprError('USAGE', `${source}: is no address, expected a URL, a Blob or bytes`, { source }, { cause });
  }
}
