/** The task of every kernel thread (a Piscina worker): loads weights, then runs passes, one session at a time. */

import { type Bank, instantiate, type KernelTask, load, serve } from '../src/backends/wasm/tasks.ts';
import { AprError, type AprErrorRecord } from '../src/errors.ts';
import { openReader } from '../src/platform/node/reader.ts';

/** Instances for the engine that owns this thread, kept from task to task. */
let instances: { readonly memory: WebAssembly.Memory; readonly banks: readonly Bank[] } | undefined;

/** Returns an error instead of throwing it: Piscina would drop its code. */
export default async function run(task: KernelTask): Promise<AprErrorRecord | undefined> {
  try {
    const { module, memories } = task.setup;
    // A shared memory arrives as another object over the same buffer each time.
    if (instances === undefined || instances.memory.buffer !== memories[0]!.buffer) {
      instances = { memory: memories[0]!, banks: await instantiate(module, memories) };
    }
    if (task.kind === 'session') {
      serve(task, instances.banks);
      return undefined;
    }
    const reader = openReader(task.source, task.sourceName);
    try {
      await load(task, instances.banks, reader.readInto);
    } finally {
      reader.close();
    }
    return undefined;
  } catch (error) {
    return AprError.from(error).toRecord();
  }
}
