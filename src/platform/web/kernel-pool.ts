/** Kernel threads as Workers of a page. */

import type { KernelTask } from '../../backends/wasm/tasks.ts';
import { AprError } from '../../errors.ts';
import type { KernelPool } from '../../scheduling/kernel-pool.ts';
import type { KernelReply } from './worker-scope.ts';

/** What the pool needs of a Worker. */
export type KernelThread = Pick<Worker, 'postMessage' | 'terminate' | 'addEventListener'>;

interface Running {
  readonly task: KernelTask;
  readonly resolve: () => void;
  readonly reject: (error: AprError) => void;
}

/**
 * A pool of exactly `threads` Workers; each task of a set occupies one until it answers.
 * @throws AprError LOAD_FAILED when the browser refuses to make a Worker
 */
export function createKernelPool(threads: number, createWorker: () => KernelThread): KernelPool<KernelTask> {
  /** The first death; a Worker does not come back. */
  let failure: AprError | undefined;
  const running: (Running | undefined)[] = Array.from({ length: threads });
  const workers: KernelThread[] = [];
  const terminate = (): void => {
    for (const worker of workers) worker.terminate();
  };
  const rejectAll = (errorOf: (task: KernelTask) => AprError): void => {
    running.forEach((entry, i) => {
      running[i] = undefined;
      entry?.reject(errorOf(entry.task));
    });
  };
  try {
    for (let i = 0; i < threads; i++) {
      const worker = createWorker();
      workers.push(worker);
      worker.addEventListener('message', (event) => {
        const entry = running[i];
        running[i] = undefined;
        const { error } = (event as MessageEvent<KernelReply>).data;
        if (error === undefined) entry?.resolve();
        else entry?.reject(AprError.from(error));
      });
      for (const type of ['error', 'messageerror'] as const) {
        worker.addEventListener(type, (event) => {
          // Without a message: the script of the Worker could not be fetched or parsed.
          const { message, filename } = event as Partial<ErrorEvent>;
          const reason =
            message || (type === 'error' ? 'its script could not be loaded' : 'a message was not readable');
          const where = filename ? ` in ${filename}` : '';
          failure ??= died('INFERENCE', '', reason + where);
          rejectAll((task) =>
            task.kind === 'load' ? died('LOAD_FAILED', ' while loading', reason + where) : failure!,
          );
        });
      }
    }
  } catch (cause) {
    terminate();
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new AprError('LOAD_FAILED', `the browser refused to start a kernel thread: ${reason}`, {}, { cause });
  }
  return {
    run: (tasks) =>
      tasks.map(
        (task, i) =>
          new Promise<void>((resolve, reject) => {
            if (failure !== undefined) return reject(failure);
            const worker = workers[i];
            if (worker === undefined || running[i] !== undefined) {
              throw new RangeError(`${tasks.length} tasks for ${threads} threads, or a thread that is not free`);
            }
            running[i] = { task, resolve, reject };
            worker.postMessage(task);
          }),
      ),
    dispose: async () => {
      const disposed = new AprError('DISPOSED', 'the engine was disposed');
      failure = disposed;
      terminate();
      rejectAll(() => disposed);
    },
  };
}

function died(code: 'LOAD_FAILED' | 'INFERENCE', when: string, reason: string): AprError {
  return new AprError(code, `a kernel thread died${when} (${reason}); create a new engine`);
}
