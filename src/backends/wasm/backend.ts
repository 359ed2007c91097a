/** Executes passes with the WebAssembly kernels: on worker threads over shared memory, or alone on plain memory. */

import { AprError } from '../../errors.ts';
import type { ByteSource } from '../../formats/byte-source.ts';
import type { Backend, PassInputs } from '../../graph/backend.ts';
import type { PassRecord } from '../../graph/command.ts';
import type { PassObserver } from '../../graph/observer.ts';
import { type RopeParameters, ropeTable } from '../../graph/rope.ts';
import { CONTROL } from '../../scheduling/control.ts';
import type { KernelPool } from '../../scheduling/kernel-pool.ts';
import { addressOf, arenaBytes, assemble } from './compile.ts';
import { createInterpreter, type Interpreter, type InterpreterLayout } from './interpreter.ts';
import type { Layout } from './layout.ts';
import type { LoadJob } from './loader.ts';
import { type Lowered, lower, type Placement } from './lower.ts';
import { CALL_WORDS } from './program.ts';
import { type Bank, type KernelTask, load, type WorkerSetup } from './tasks.ts';

export interface WasmBackendParts {
  readonly kernel: 'simd' | 'relaxed';
  readonly module: WebAssembly.Module;
  /** Instances of this thread, one a bank. */
  readonly banks: readonly Bank[];
  readonly layout: Layout;
  readonly placement: Placement;
  /** Every rotation that a pass uses, in the order of their tables. */
  readonly ropes: readonly RopeParameters[];
  readonly maxRows: number;
  readonly maxOutputs: number;
  readonly observedRows: number;
  readonly kvCacheBytes: number;
  readonly scratchBytes: number;
  /** Absent: this thread computes, on plain memory. */
  readonly pool?: KernelPool<KernelTask>;
  readonly threads: number;
}

interface Program {
  readonly words: Int32Array<ArrayBuffer>;
  readonly lowered: Lowered;
}

/** Programs kept compiled: decode, and the shapes of prefill passes met last. */
const KEPT_PROGRAMS = 8;

export class WasmBackend implements Backend {
  readonly name = 'cpu';
  readonly kernel: 'simd' | 'relaxed';
  readonly threads: number;
  readonly maxRows: number;
  readonly maxOutputs: number;
  readonly observedRows: number;
  readonly kvCacheBytes: number;
  readonly #parts: WasmBackendParts;
  readonly #control: Int32Array;
  readonly #interpreterLayout: InterpreterLayout;
  readonly #arenaPointers: readonly number[];
  readonly #programs = new Map<PassRecord, Program>();
  #current: Program | undefined;
  #local: Interpreter | undefined;
  #session: { readonly ended: Promise<unknown>; readonly failure: Promise<never> } | undefined;
  #failure: AprError | undefined;

  constructor(parts: WasmBackendParts) {
    this.#parts = parts;
    this.kernel = parts.kernel;
    this.threads = parts.threads;
    this.maxRows = parts.maxRows;
    this.maxOutputs = parts.maxOutputs;
    this.observedRows = parts.observedRows;
    this.kvCacheBytes = parts.kvCacheBytes;
    const { layout, banks } = parts;
    const first = banks[0]!.memory.buffer;
    this.#control = new Int32Array(first, 0, 256);
    this.#arenaPointers = banks.map(() => layout.arenaPointer);
    this.#interpreterLayout = {
      programPointer: layout.programPointer,
      countersPointer: layout.countersPointer,
      scratchPointers: banks.map(() => layout.scratchPointer),
      scratchBytes: parts.scratchBytes,
    };
    for (const { memory } of banks) {
      const pairs = new Int32Array(memory.buffer, layout.inputs.identity, parts.maxRows * 2);
      for (let row = 0; row < parts.maxRows; row++) pairs.fill(row, row * 2, row * 2 + 2);
    }
  }

  /** Brings the weights in place. */
  async load(options: {
    readonly jobs: readonly LoadJob[];
    readonly source: ByteSource;
    readonly stagingBytes: number;
    readonly onLoaded?: (bytes: number) => void;
    readonly signal?: AbortSignal;
  }): Promise<void> {
    const { pool, threads, layout, banks } = this.#parts;
    const { onLoaded, signal } = options;
    const tasks = Array.from({ length: threads }, (_, worker) => ({
      kind: 'load' as const,
      setup: this.#setup(worker),
      jobs: options.jobs,
      source: options.source.locator,
      sourceName: options.source.name,
      stagingPointer: layout.arenaPointer + worker * options.stagingBytes,
    }));
    const stop = (): void => {
      Atomics.store(this.#control, CONTROL.ABORT, 1);
    };
    signal?.addEventListener('abort', stop, { once: true });
    const report = (): void => onLoaded?.(Atomics.load(this.#control, CONTROL.LOADED_KIB) * 1024);
    const timer = onLoaded === undefined ? undefined : setInterval(report, 50);
    try {
      if (pool === undefined) await load(tasks[0]!, banks, readerOf(options.source));
      // The first failure ends the load, but no thread may still write when the memory is given up.
      else throwFirst(await Promise.allSettled(stopOnFailure(pool.run(tasks), stop)));
    } finally {
      clearInterval(timer);
      signal?.removeEventListener('abort', stop);
    }
    if (signal?.aborted) throw new AprError('ABORTED', `loading ${options.source.name} was aborted`);
    report();
  }

  /** Memories that the model is spread over. */
  get bankCount(): number {
    return this.#parts.banks.length;
  }

  begin(): void {
    if (this.#failure !== undefined) throw this.#failure;
    const { pool, threads, banks } = this.#parts;
    if (pool === undefined) {
      this.#local ??= createInterpreter(banks, this.#interpreterLayout, 0, 1);
      return;
    }
    Atomics.store(this.#control, CONTROL.STATE, 0);
    const sequence = Atomics.load(this.#control, CONTROL.SEQUENCE);
    const runs = pool.run(
      Array.from({ length: threads }, (_, worker) => ({
        kind: 'session' as const,
        setup: this.#setup(worker),
        sequence,
      })),
    );
    const failure = Promise.all(runs).then(
      () => new Promise<never>(() => {}),
      (reason: unknown) => {
        this.#failure ??= AprError.from(reason);
        // Release the workers that wait for the one that failed.
        this.#parts.banks[0]!.exports.barrier_abort(CONTROL.BARRIER * 4, 1);
        this.#signalEnd();
        throw this.#failure;
      },
    );
    failure.catch(() => {}); // reported by the pass that is running, or by the next begin
    this.#session = { ended: Promise.allSettled(runs), failure };
  }

  async end(): Promise<void> {
    if (this.#session === undefined) return;
    this.#signalEnd();
    await this.#session.ended;
    this.#session = undefined;
  }

  async execute(
    record: PassRecord,
    inputs: PassInputs,
    observer?: PassObserver,
    signal?: AbortSignal,
  ): Promise<Float32Array> {
    const program = this.#program(record, observer);
    if (program !== this.#current) {
      const { layout, banks } = this.#parts;
      new Int32Array(banks[0]!.memory.buffer, layout.programPointer, program.words.length).set(program.words);
      Atomics.store(this.#control, CONTROL.PROGRAM_LENGTH, program.words.length);
      this.#current = program;
    }
    this.#writeInputs(inputs);
    if (this.#parts.pool === undefined) this.#local!.run();
    else await this.#runOnWorkers(program.words.length / CALL_WORDS, signal);
    for (const { activation, buffer } of observer === undefined ? [] : program.lowered.taps) {
      const { name, layer, width, rows } = activation;
      const values = this.#floats(buffer.bank, addressOf(buffer, this.#arenaPointers), width * rows).slice();
      observer!.onTap({ name, layer, shape: [width, rows], positions: Array.from(inputs.positions), values });
    }
    const { logits } = program.lowered;
    return this.#floats(logits.bank, addressOf(logits, this.#arenaPointers), record.logits.width * record.logits.rows);
  }

  async dispose(): Promise<void> {
    this.#failure ??= new AprError('DISPOSED', 'the engine was disposed');
    this.#signalEnd();
    await this.#parts.pool?.dispose();
    this.#programs.clear();
  }

  #signalEnd(): void {
    Atomics.store(this.#control, CONTROL.STATE, 1);
    Atomics.add(this.#control, CONTROL.SEQUENCE, 1);
    Atomics.notify(this.#control, CONTROL.SEQUENCE);
  }

  async #runOnWorkers(calls: number, signal: AbortSignal | undefined): Promise<void> {
    const session = this.#session;
    if (session === undefined) throw new Error('execute outside of begin and end');
    const { layout, banks } = this.#parts;
    const control = this.#control;
    new Int32Array(banks[0]!.memory.buffer, layout.countersPointer, calls).fill(0);
    Atomics.store(control, CONTROL.DONE, 0);
    const sequence = Atomics.add(control, CONTROL.SEQUENCE, 1) + 1;
    Atomics.notify(control, CONTROL.SEQUENCE);
    const stop = (): void => banks[0]!.exports.barrier_abort(CONTROL.BARRIER * 4, 1);
    signal?.addEventListener('abort', stop, { once: true });
    try {
      for (;;) {
        const finished = Atomics.load(control, CONTROL.FINISHED);
        if (finished === sequence) break;
        const wait = Atomics.waitAsync(control, CONTROL.FINISHED, finished);
        if (wait.async) await Promise.race([wait.value, session.failure]);
      }
    } finally {
      signal?.removeEventListener('abort', stop);
    }
    if (signal?.aborted) {
      // Every worker has left the pass: the barrier may be made new.
      control.fill(0, CONTROL.BARRIER, CONTROL.BARRIER + 3);
      throw new AprError('ABORTED', 'the generation was aborted');
    }
  }

  #program(record: PassRecord, observer: PassObserver | undefined): Program {
    const known = observer === undefined ? this.#programs.get(record) : undefined;
    if (known !== undefined) return known;
    const { layout, banks } = this.#parts;
    const lowered = this.#lower(record, observer);
    const needed = Math.max(...arenaBytes(lowered, banks.length));
    const words = assemble(lowered, this.#arenaPointers);
    if (needed > layout.arenaBytes || words.length * 4 > layout.countersPointer - layout.programPointer) {
      throw new Error(`a pass of ${record.rows} rows needs ${needed} bytes of ${layout.arenaBytes}`);
    }
    const program = { words, lowered };
    if (observer === undefined) {
      const oldest = this.#programs.keys().next().value;
      if (this.#programs.size >= KEPT_PROGRAMS && oldest !== undefined) this.#programs.delete(oldest);
      this.#programs.set(record, program);
    }
    return program;
  }

  #lower(record: PassRecord, observer: PassObserver | undefined): Lowered {
    return lower(record, this.#parts.placement, observer && ((name, layer) => observer.wants(name, layer)));
  }

  #writeInputs(inputs: PassInputs): void {
    const { layout, banks, ropes } = this.#parts;
    const rows = inputs.positions.length;
    ropes.forEach((rope, i) => {
      ropeTable(rope, inputs.positions, this.#floats(0, layout.ropeTables[i]!, rows * rope.dims));
    });
    banks.forEach(({ memory }, bank) => {
      for (const name of ['tokens', 'positions', 'sequences', 'outputRows'] as const) {
        new Int32Array(memory.buffer, layout.inputs[name], inputs[name].length).set(inputs[name]);
      }
      if (bank === 0) return;
      ropes.forEach((rope, i) => {
        const pointer = layout.ropeTables[i]!;
        this.#floats(bank, pointer, rows * rope.dims).set(this.#floats(0, pointer, rows * rope.dims));
      });
    });
  }

  #floats(bank: number, pointer: number, count: number): Float32Array {
    return new Float32Array(this.#parts.banks[bank]!.memory.buffer, pointer, count);
  }

  #setup(worker: number): WorkerSetup {
    const { module, banks, threads } = this.#parts;
    return {
      module,
      memories: banks.map(({ memory }) => memory),
      layout: this.#interpreterLayout,
      worker,
      workers: threads,
    };
  }
}

/** Reads a source in this thread, for a backend without a pool. */
function readerOf(source: ByteSource): (target: Uint8Array, offset: number) => Promise<void> {
  return async (target, offset) => target.set(await source.read(offset, target.length));
}

/** Calls `stop` as soon as one promise rejects; returns the same promises. */
function stopOnFailure(runs: readonly Promise<void>[], stop: () => void): readonly Promise<void>[] {
  for (const run of runs) run.catch(stop);
  return runs;
}

function throwFirst(results: readonly PromiseSettledResult<void>[]): void {
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw AprError.from(failed.reason, 'LOAD_FAILED');
}
