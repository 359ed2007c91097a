/** Brings all weights in place: on the threads of a pool, or in this thread. */

import { AprError } from '../../errors.ts';
import type { ByteSource } from '../../formats/byte-source.ts';
import { CONTROL, controlOf } from '../../scheduling/control.ts';
import type { KernelPool } from '../../scheduling/kernel-pool.ts';
import type { LoadJob } from './loader.ts';
import { type Bank, type KernelTask, type LoadTask, load, type WorkerSetup } from './tasks.ts';

export interface WeightLoading {
  readonly banks: readonly Bank[];
  /** Absent: this thread loads. */
  readonly pool: KernelPool<KernelTask> | undefined;
  readonly setups: readonly WorkerSetup[];
  readonly jobs: readonly LoadJob[];
  readonly source: ByteSource;
  /** Staging area of the first worker's first lane; the others follow. */
  readonly stagingPointer: number;
  /** Of one lane. */
  readonly stagingBytes: number;
  /** See {@link LoadTask.lanes}. */
  readonly lanes: number;
  /** Told the bytes in place so far. */
  readonly onLoaded?: (bytes: number) => void;
  readonly signal?: AbortSignal;
}

const REPORT_MS = 50;

/** @throws AprError IO, BAD_FORMAT, LOAD_FAILED, ABORTED, and what `onLoaded` throws; no thread writes any more then */
export async function loadWeights(loading: WeightLoading): Promise<void> {
  const { banks, pool, setups, jobs, source, onLoaded, signal } = loading;
  const control = controlOf(banks[0]!.memory);
  let failure: { readonly error: unknown } | undefined;
  const stop = (): void => {
    Atomics.store(control, CONTROL.ABORT, 1);
  };
  const fail = (error: unknown): void => {
    failure ??= { error };
    stop();
  };
  const report = (bytes: number): void => {
    try {
      onLoaded?.(bytes);
    } catch (error) {
      fail(error);
    }
  };
  const tasks = setups.map(
    (setup, worker): LoadTask => ({
      kind: 'load',
      setup,
      jobs,
      source: source.locator,
      sourceName: source.name,
      stagingPointer: loading.stagingPointer + worker * loading.lanes * loading.stagingBytes,
      stagingBytes: loading.stagingBytes,
      lanes: loading.lanes,
    }),
  );
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop, { once: true });
  const beat = (): void => report(Atomics.load(control, CONTROL.LOADED_KIB) * 1024);
  const timer = onLoaded === undefined ? undefined : setInterval(beat, REPORT_MS);
  try {
    const runs = pool === undefined ? [load(tasks[0]!, banks, readerOf(source))] : pool.run(tasks);
    // The first failure in time is the cause; all threads are waited for before the memory is given up.
    await Promise.all(runs.map((run) => run.catch(fail)));
  } finally {
    clearInterval(timer);
    signal?.removeEventListener('abort', stop);
  }
  if (failure !== undefined) throw failure.error instanceof Error ? failure.error : AprError.from(failure.error);
  if (signal?.aborted) throw new AprError('ABORTED', `loading ${source.name} was aborted`);
  report(jobs.reduce((sum, { byteLength }) => sum + byteLength, 0));
  if (failure !== undefined) throw (failure as { error: unknown }).error;
}

function readerOf(source: ByteSource): (target: Uint8Array, offset: number) => Promise<void> {
  return async (target, offset) => target.set(await source.read(offset, target.length));
}
