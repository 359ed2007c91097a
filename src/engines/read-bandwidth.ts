/** How fast this machine's kernel threads read memory: the limit that reading weights can reach. */

import { createInterpreter } from '../backends/wasm/interpreter.ts';
import { KERNELS } from '../backends/wasm/kernels.ts';
import { CALL, CALL_WORDS } from '../backends/wasm/program.ts';
import { WorkerRunner } from '../backends/wasm/runner.ts';
import { createTimesBuffer, readTimes } from '../backends/wasm/step-clock.ts';
import { instantiate } from '../backends/wasm/tasks.ts';
import type { Platform } from '../platform/platform.ts';
import { CONTROL } from '../scheduling/control.ts';

export interface ReadBandwidth {
  /** 10⁹ bytes a second: the fastest of several passes over all of them. */
  readonly gb_per_sec: number;
  readonly bytes: number;
  readonly threads: number;
}

/** More than the caches of a machine hold. */
const BYTES = 256 << 20;
/** What stays free beside it. */
const RESERVE_BYTES = 128 << 20;
const ITEM_BYTES = 1 << 16;
const DATA = 1 << 20;
const SCRATCH_BYTES = 64;
const LAYOUT = { programPointer: 4096, countersPointer: 8192, scratchPointers: [16384], scratchBytes: SCRATCH_BYTES };
/** The first passes run in code that is not yet optimised. */
const WARM_PASSES = 3;
const MEASURED_PASSES = 8;

/** @returns undefined without threads on shared memory, or where there is too little free memory */
export async function readBandwidth(
  platform: Pick<Platform, 'availableMemory' | 'createPool' | 'loadKernels' | 'supportsSharedMemory'>,
  threads: number,
): Promise<ReadBandwidth | undefined> {
  const available = platform.availableMemory();
  if (!platform.supportsSharedMemory()) return undefined;
  if (available !== undefined && available < BYTES + RESERVE_BYTES) return undefined;
  const module = await platform.loadKernels('simd-shared');
  const pages = (DATA + BYTES) / 65536;
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  // Pages that nobody has written all are one page of zeros.
  new Uint8Array(memory.buffer, DATA).fill(1);
  const words = new Int32Array(memory.buffer, LAYOUT.programPointer, CALL_WORDS);
  const items = BYTES / ITEM_BYTES;
  words.set([KERNELS.indexOf('read_bytes'), 0, 0, items, Math.max(1, Math.floor(items / (threads * 32)))]);
  words.set([DATA, ITEM_BYTES], CALL.ARGUMENTS);
  const banks = await instantiate(module, [memory]);
  const { control } = createInterpreter(banks, LAYOUT, 0, threads);
  control[CONTROL.PROGRAM_LENGTH] = CALL_WORDS;
  const setups = Array.from({ length: threads }, (_, worker) => ({
    module,
    memories: [memory],
    layout: LAYOUT,
    worker,
    workers: threads,
  }));
  const pool = await platform.createPool(threads);
  const times = createTimesBuffer(threads, 1, true);
  const runner = new WorkerRunner(pool, control, (sequence) =>
    setups.map((setup) => ({ kind: 'session', setup, sequence, times })),
  );
  const counters = new Int32Array(memory.buffer, LAYOUT.countersPointer, 1);
  let best = Number.POSITIVE_INFINITY;
  try {
    for (let pass = 0; pass < WARM_PASSES + MEASURED_PASSES; pass++) {
      counters.fill(0);
      const start = performance.now();
      await runner.run(undefined, times);
      const all = readTimes(times, 1, start);
      const begin = Math.min(...all.map((thread) => thread.begin[0]!));
      const end = Math.max(...all.map((thread) => thread.end[0]!));
      if (pass >= WARM_PASSES) best = Math.min(best, end - begin);
    }
    await runner.rest();
  } finally {
    await pool.dispose();
  }
  return { gb_per_sec: BYTES / best / 1e6, bytes: BYTES, threads };
}
