/** Kernel threads as Piscina workers. */

import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import type { KernelTask } from '../../backends/wasm/tasks.ts';
import { AprError, type AprErrorRecord } from '../../errors.ts';
import type { KernelPool } from '../../scheduling/kernel-pool.ts';

/** A pool of exactly `threads` threads; each task of a set occupies one until the set is done. */
export function createKernelPool(threads: number): KernelPool<KernelTask> & { readonly piscina: Piscina } {
  const piscina = new Piscina({
    filename: fileURLToPath(new URL('../../../workers/kernel.js', import.meta.url)),
    minThreads: threads,
    maxThreads: threads,
    concurrentTasksPerWorker: 1,
    idleTimeout: Number.POSITIVE_INFINITY,
    recordTiming: false,
  });
  let disposed = false;
  return {
    piscina,
    run: (tasks) =>
      tasks.map(async (task) => {
        let error: AprErrorRecord | undefined;
        try {
          error = (await piscina.run(task)) as AprErrorRecord | undefined;
        } catch (cause) {
          if (disposed) throw new AprError('DISPOSED', 'the engine was disposed', {}, { cause });
          const reason = cause instanceof Error ? cause.message : String(cause);
          const [code, when] =
            task.kind === 'load' ? (['LOAD_FAILED', ' while loading'] as const) : (['INFERENCE', ''] as const);
          throw new AprError(code, `a kernel thread died${when} (${reason}); create a new engine`, {}, { cause });
        }
        if (error != null) throw AprError.from(error);
      }),
    dispose: async () => {
      disposed = true;
      await piscina.destroy();
    },
  };
}
