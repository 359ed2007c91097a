/** What the code of a Worker sees of it, and what a kernel thread sends back. */

import type { AprErrorRecord } from '../../errors.ts';

/** The part of DedicatedWorkerGlobalScope that is used here; TypeScript's types are those of a page. */
export interface WorkerScope {
  addEventListener(type: string, listener: (event: Event) => void): void;
  removeEventListener(type: string, listener: (event: Event) => void): void;
  postMessage(message: unknown, transfer?: Transferable[]): void;
}

export function workerScope(): WorkerScope {
  return globalThis as unknown as WorkerScope;
}

/** The answer of a kernel thread to one task. */
export interface KernelReply {
  readonly done: true;
  readonly error: AprErrorRecord | undefined;
}

export function kernelReply(error: AprErrorRecord | undefined): KernelReply {
  return { done: true, error };
}
