/** What the host asks of a kernel worker. Plain data: tasks cross threads. */

import type { SourceLocator } from '../../formats/byte-source.ts';
import { CONTROL, controlOf } from '../../scheduling/control.ts';
import { createInterpreter, type InterpreterLayout } from './interpreter.ts';
import type { KernelExports } from './kernels.ts';
import { type LoadJob, type ReadInto, runJobs } from './loader.ts';
import { createStepClock, type TimesBuffer } from './step-clock.ts';

export interface WorkerSetup {
  readonly module: WebAssembly.Module;
  readonly memories: readonly WebAssembly.Memory[];
  readonly layout: InterpreterLayout;
  readonly worker: number;
  readonly workers: number;
}

/** Reads and repacks weights until the jobs are done. */
export interface LoadTask {
  readonly kind: 'load';
  readonly setup: WorkerSetup;
  readonly jobs: readonly LoadJob[];
  readonly source: SourceLocator;
  readonly sourceName: string;
  readonly stagingPointer: number;
  /** Bytes of the staging area of one lane; they lie one behind the other. */
  readonly stagingBytes: number;
  /** Jobs that one thread has under way at once, so that it computes while it waits for what it reads. */
  readonly lanes: number;
}

/** Lanes that pay: a file is read without waiting, a Blob through another process, a server is far away. */
export function lanesFor(source: SourceLocator): number {
  switch (source.kind) {
    case 'file':
    case 'memory':
      return 1;
    case 'blob':
      return 2;
    case 'url':
      return 4;
    case 'parts':
      return Math.max(1, ...source.parts.map(({ locator }) => lanesFor(locator)));
  }
}

/** Runs passes until the session ends. */
export interface SessionTask {
  readonly kind: 'session';
  readonly setup: WorkerSetup;
  /** CONTROL.SEQUENCE before the first pass. */
  readonly sequence: number;
  /** Where this session's times go; absent: no thread looks at a clock. */
  readonly times?: TimesBuffer;
}

export type KernelTask = LoadTask | SessionTask;

export interface Bank {
  readonly exports: KernelExports;
  readonly memory: WebAssembly.Memory;
}

/** One instance of the kernels for each memory. */
export async function instantiate(
  module: WebAssembly.Module,
  memories: readonly WebAssembly.Memory[],
): Promise<Bank[]> {
  return Promise.all(
    memories.map(async (memory) => {
      const { exports } = await WebAssembly.instantiate(module, { env: { memory } });
      return { exports: exports as unknown as KernelExports, memory };
    }),
  );
}

/** Does a load task. `readInto` reads its source; stops early when the host raised the abort word. */
export async function load(task: LoadTask, banks: readonly Bank[], readInto: ReadInto): Promise<void> {
  const control = controlOf(banks[0]!.memory);
  const aborted = (): boolean => Atomics.load(control, CONTROL.ABORT) !== 0;
  const { jobs, lanes, stagingPointer, stagingBytes } = task;
  const runs = Array.from({ length: lanes }, (_, lane) =>
    runJobs(jobs, banks, stagingPointer + lane * stagingBytes, readInto, aborted).catch((error: unknown) => {
      Atomics.store(control, CONTROL.ABORT, 1);
      throw error;
    }),
  );
  // No lane writes any more when this is over, and the first failure is the one that is told.
  const first = Promise.all(runs);
  first.catch(() => {}); // awaited below
  await Promise.allSettled(runs);
  await first;
}

/** Longest sleep of a worker between two looks at whether a pass has come. */
const SLEEP_MS = 100;

/** Does a session task: sleeps until a pass comes, runs it with the others, says so, until the session ends. */
export function serve(task: SessionTask, banks: readonly Bank[]): void {
  const { layout, worker, workers } = task.setup;
  const interpreter = createInterpreter(banks, layout, worker, workers);
  const { control } = interpreter;
  const clock = task.times === undefined ? undefined : createStepClock(task.times, worker);
  let seen = task.sequence;
  for (;;) {
    // With a bound on the sleep: should a notification get lost, a look at the word makes up for it.
    while (Atomics.load(control, CONTROL.SEQUENCE) === seen) Atomics.wait(control, CONTROL.SEQUENCE, seen, SLEEP_MS);
    seen = Atomics.load(control, CONTROL.SEQUENCE);
    if (Atomics.load(control, CONTROL.STATE) !== 0) return;
    interpreter.run(clock);
    if (Atomics.add(control, CONTROL.DONE, 1) === workers - 1) {
      Atomics.store(control, CONTROL.FINISHED, seen);
      Atomics.notify(control, CONTROL.FINISHED);
    }
  }
}
