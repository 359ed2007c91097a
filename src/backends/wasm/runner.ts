/** Who runs the program that lies in bank 0: worker threads, or this thread. */

import { AprError } from '../../errors.ts';
import { abortBarrier, barrierState, resetBarrier } from '../../scheduling/barrier.ts';
import { CONTROL } from '../../scheduling/control.ts';
import type { KernelPool } from '../../scheduling/kernel-pool.ts';
import { nextTurn } from '../../scheduling/turn.ts';
import { changeOf } from '../../scheduling/wait.ts';
import type { Interpreter } from './interpreter.ts';
import { createStepClock, type TimesBuffer } from './step-clock.ts';
import type { KernelTask, SessionTask } from './tasks.ts';

export interface Runner {
  /**
   * Runs one pass; with `times`, every thread writes its times into it.
   * @throws AprError INFERENCE, ABORTED by the signal, DISPOSED
   */
  run(signal: AbortSignal | undefined, times?: TimesBuffer): Promise<void>;
  /** No pass follows for now. */
  rest(): Promise<void>;
  /** Ends a pass that is running, and every later one, with this error. */
  fail(error: AprError): void;
}

/** This thread computes at most so long before it lets others have a turn. */
const SLICE_MS = 30;
/** A session without a pass ends after this time: a consumer that walked away must not keep the process alive. */
const IDLE_MS = 50;
/**
 * After so long without a step of a pass done, the threads are taken to have lost one another. A step takes seconds at
 * most, also with the largest matrices on a slow machine.
 */
const STALL_MS = 120_000;
/** How often the host looks by itself whether a pass has finished, should a notification get lost. */
const PULSE_MS = 100;

export class LocalRunner implements Runner {
  readonly #interpreter: Interpreter;
  #failure: AprError | undefined;

  constructor(interpreter: Interpreter) {
    this.#interpreter = interpreter;
  }

  async run(signal: AbortSignal | undefined, times?: TimesBuffer): Promise<void> {
    this.#interpreter.restart();
    const clock = times === undefined ? undefined : createStepClock(times, 0);
    try {
      do {
        await nextTurn();
        if (this.#failure !== undefined) throw this.#failure;
        if (signal?.aborted) throw new AprError('ABORTED', 'the generation was aborted');
      } while (!this.#interpreter.runFor(SLICE_MS, clock));
    } catch (error) {
      if (error instanceof AprError) throw error;
      // A kernel trapped: what it has left behind cannot be trusted.
      this.#failure = AprError.from(error);
      throw this.#failure;
    }
  }

  async rest(): Promise<void> {}

  fail(error: AprError): void {
    this.#failure ??= error;
  }
}

interface Session {
  readonly times: TimesBuffer | undefined;
  /** Settles when every thread has left the session. */
  readonly ended: Promise<unknown>;
}

/** The tasks of a session that begins behind the pass of that number. */
export type SessionTasks = (sequence: number, times: TimesBuffer | undefined) => SessionTask[];

/** A session opens with a pass: one task on each thread, which runs passes until the session ends. */
export class WorkerRunner implements Runner {
  readonly #pool: KernelPool<KernelTask>;
  readonly #control: Int32Array;
  readonly #stallMs: number;
  readonly #tasks: SessionTasks;
  #session: Session | undefined;
  #idle: ReturnType<typeof setTimeout> | undefined;
  #failure: AprError | undefined;
  /** Lets the pass that is running look at what has happened. */
  #wake: (() => void) | undefined;

  constructor(pool: KernelPool<KernelTask>, control: Int32Array, tasks: SessionTasks, stallMs = STALL_MS) {
    this.#stallMs = stallMs;
    this.#pool = pool;
    this.#control = control;
    this.#tasks = tasks;
  }

  async run(signal: AbortSignal | undefined, times?: TimesBuffer): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    clearTimeout(this.#idle);
    await this.#open(times);
    if (this.#failure !== undefined) throw this.#failure;
    const control = this.#control;
    Atomics.store(control, CONTROL.DONE, 0);
    const sequence = (Atomics.add(control, CONTROL.SEQUENCE, 1) + 1) | 0;
    Atomics.notify(control, CONTROL.SEQUENCE);
    const stop = (): void => abortBarrier(control);
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
    const watch = createWatch(control, this.#stallMs);
    const pulse = setInterval(() => this.#wake?.(), PULSE_MS);
    try {
      for (;;) {
        if (this.#failure !== undefined) throw this.#failure;
        const lost = watch();
        if (lost !== undefined) {
          this.fail(lost);
          throw lost;
        }
        const finished = Atomics.load(control, CONTROL.FINISHED);
        if (finished === sequence) break;
        const change = changeOf(control, CONTROL.FINISHED, finished);
        if (change === undefined) continue;
        // No Promise.race with something that outlives the pass: each race would leave a reaction on it.
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
          void change.then(() => resolve());
        });
      }
    } finally {
      clearInterval(pulse);
      this.#wake = undefined;
      signal?.removeEventListener('abort', stop);
    }
    // Also behind a pass that was aborted: others may hold the engine open, and never come back.
    this.#idle = setTimeout(() => void this.rest(), IDLE_MS);
    (this.#idle as { unref?: () => void }).unref?.();
    if (signal?.aborted) {
      // Every worker has left the pass: the barrier may be made new.
      resetBarrier(control);
      throw new AprError('ABORTED', 'the generation was aborted');
    }
  }

  async rest(): Promise<void> {
    clearTimeout(this.#idle);
    const session = this.#session;
    if (session === undefined) return;
    this.#signalEnd();
    await session.ended;
    if (this.#session === session) this.#session = undefined;
  }

  fail(error: AprError): void {
    this.#failure ??= error;
    clearTimeout(this.#idle);
    // Release the workers that wait for one another.
    abortBarrier(this.#control);
    this.#signalEnd();
    // What waits for the word for ever would keep the memory for ever.
    Atomics.notify(this.#control, CONTROL.FINISHED);
    this.#wake?.();
  }

  /** The open session; one that is just ending is waited for, since its workers still look at the control words. */
  async #open(times: TimesBuffer | undefined): Promise<void> {
    if (this.#session !== undefined && Atomics.load(this.#control, CONTROL.STATE) === 0) {
      if (this.#session.times === times) return;
      // Whether its passes are timed, and where to, a thread learns with its session.
      this.#signalEnd();
    }
    await this.#session?.ended;
    Atomics.store(this.#control, CONTROL.STATE, 0);
    const runs = this.#pool.run(this.#tasks(Atomics.load(this.#control, CONTROL.SEQUENCE), times));
    // The pass that is running, or the next one, reports it.
    for (const run of runs) run.catch((reason: unknown) => this.fail(AprError.from(reason)));
    this.#session = { times, ended: Promise.allSettled(runs) };
  }

  #signalEnd(): void {
    Atomics.store(this.#control, CONTROL.STATE, 1);
    Atomics.add(this.#control, CONTROL.SEQUENCE, 1);
    Atomics.notify(this.#control, CONTROL.SEQUENCE);
  }
}

/**
 * Looks at the words by which threads meet, and gives an error when they have stayed as they are for `stallMs`. A pass
 * that never ends is a fault of ours: the words are what finding it takes.
 */
function createWatch(control: Int32Array, stallMs: number): () => AprError | undefined {
  const state = (): string => [Atomics.load(control, CONTROL.DONE), ...barrierState(control)].join(', ');
  let last = state();
  let since = performance.now();
  return () => {
    const now = state();
    if (now !== last) {
      last = now;
      since = performance.now();
    }
    const waited = performance.now() - since;
    if (waited < stallMs) return undefined;
    const seconds = Math.round(waited / 1000);
    const message =
      `the kernel threads have lost one another: none got further for ${seconds} s (done, arrived, generation: ${now}); ` +
      'please report this, and create a new engine';
    return new AprError('INFERENCE', message, { seconds, meeting: now });
  };
}
