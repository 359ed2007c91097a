/** Starts the Worker in which a page's engine lives. */

import type { KernelModule, KernelModules } from './kernels.ts';
import type { WebPlatformOptions } from './platform.ts';

/** A Worker that waits for calls, as src/engines/remote.ts wants it. */
export interface EngineWorker {
  readonly endpoint: Worker;
  readonly death: Promise<never>;
  terminate(): void;
}

/**
 * @param script address of `workers/web-engine.js` of this package, or a Worker that runs it; where it is not found by
 *   itself
 */
export function startEngineWorker(
  script: string | URL | Worker | undefined,
  options: WebPlatformOptions,
): EngineWorker {
  const worker = script instanceof Worker ? script : start(script);
  const death = new Promise<never>((_, reject) => {
    worker.addEventListener('error', ({ message, filename }) => {
      // Without a message: the script, or something that it imports, could not be fetched.
      const where = filename ? ` in ${filename}` : '';
      reject(new Error(message ? message + where : 'its script or one of its imports could not be loaded'));
    });
    worker.addEventListener('messageerror', () => reject(new Error('a message was not readable')));
  });
  worker.postMessage({
    ...(options.kernels === undefined ? {} : { kernels: sendable(options.kernels) }),
    ...(options.kernelWorker === undefined ? {} : { kernelWorker: absolute(options.kernelWorker) }),
  } satisfies WebPlatformOptions);
  return { endpoint: worker, death, terminate: () => worker.terminate() };
}

function start(script: string | URL | undefined): Worker {
  if (script !== undefined) return new Worker(script, { type: 'module', name: 'apr engine' });
  // In one expression, since that is what bundlers find.
  return new Worker(new URL('../../../workers/web-engine.js', import.meta.url), { type: 'module', name: 'apr engine' });
}

/** Addresses of the page made absolute, since in the Worker they would be relative to its script. */
function sendable(kernels: KernelModules): KernelModules {
  const entries = Object.entries(kernels).map(([build, module]): [string, KernelModule] => [
    build,
    typeof module === 'string' || module instanceof URL ? absolute(module) : module,
  ]);
  return Object.fromEntries(entries);
}

export function absolute(address: string | URL): string {
  return new URL(address, globalThis.document?.baseURI ?? globalThis.location?.href).href;
}
