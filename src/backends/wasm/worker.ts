/** What a kernel thread does with each task, whatever the platform makes threads of. */

import { AprError, type AprErrorRecord } from '../../errors.ts';
import type { SourceLocator } from '../../formats/byte-source.ts';
import type { ReadInto } from './loader.ts';
import { type Bank, instantiate, type KernelTask, load, serve } from './tasks.ts';

/** Opens a source in this thread. */
export type OpenReader = (source: SourceLocator, name: string) => { readonly readInto: ReadInto; close(): void };

/** Does tasks of one engine. An error is returned instead of thrown: what crosses threads would lose its code. */
export function createKernelWorker(openReader: OpenReader): (task: KernelTask) => Promise<AprErrorRecord | undefined> {
  /** Kept from task to task: a pool, and so a thread, belongs to one engine. */
  let banks: readonly Bank[] | undefined;
  return async (task) => {
    try {
      banks ??= await instantiate(task.setup.module, task.setup.memories);
      if (task.kind === 'session') {
        serve(task, banks);
        return undefined;
      }
      const reader = openReader(task.source, task.sourceName);
      try {
        await load(task, banks, reader.readInto);
      } finally {
        reader.close();
      }
      return undefined;
    } catch (error) {
      return AprError.from(error).toRecord();
    }
  };
}
