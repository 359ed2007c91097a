/** The task of every kernel thread (a Piscina worker): loads weights, then runs passes, one session at a time. */

import { type Bank, instantiate, type KernelTask, load, serve } from '../src/backends/wasm/tasks.ts';
import { AprError, type AprErrorRecord } from '../src/errors.ts';
import { openReader } from '../src/platform/node/reader.ts';

/** Kept from task to task: a pool, and so a thread, belongs to one engine. */
let banks: readonly Bank[] | undefined;

/** Returns an error instead of throwing it: Piscina would drop its code. */
export default async function run(task: KernelTask): Promise<AprErrorRecord | undefined> {
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
}
