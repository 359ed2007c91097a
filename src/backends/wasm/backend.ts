/** Executes passes with the WebAssembly kernels: on worker threads over shared memory, or alone on plain memory. */

import { AprError } from '../../errors.ts';
import type { Backend, PassInputs } from '../../graph/backend.ts';
import type { PassRecord } from '../../graph/command.ts';
import type { PassObserver, PassStep } from '../../graph/observer.ts';
import { type RopeParameters, ropeTable } from '../../graph/rope.ts';
import { CONTROL, controlOf } from '../../scheduling/control.ts';
import type { KernelPool } from '../../scheduling/kernel-pool.ts';
import { addressOf, arenaBytes, assemble } from './compile.ts';
import { createInterpreter } from './interpreter.ts';
import type { Layout } from './layout.ts';
import { type Lowered, lower, type Placement } from './lower.ts';
import { CALL_WORDS } from './program.ts';
import { LocalRunner, type Runner, WorkerRunner } from './runner.ts';
import { createTimesBuffer, readTimes, type TimesBuffer } from './step-clock.ts';
import { stepsOf } from './steps.ts';
import type { Bank, KernelTask, WorkerSetup } from './tasks.ts';

export interface WasmBackendParts {
  readonly kernel: 'simd' | 'relaxed';
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
  /** Absent: this thread computes, on plain memory. */
  readonly pool: KernelPool<KernelTask> | undefined;
  /** What each worker needs to know. */
  readonly setups: readonly WorkerSetup[];
}

interface Program {
  readonly words: Int32Array<ArrayBuffer>;
  readonly lowered: Lowered;
  /** What its calls are, once somebody has asked. */
  steps?: readonly PassStep[];
}

/** Programs kept compiled, those used last. */
const KEPT_PROGRAMS = 24;

/** What a backend holds until it is disposed. */
interface Live {
  readonly parts: WasmBackendParts;
  readonly control: Int32Array;
  readonly arenaPointers: readonly number[];
  readonly runner: Runner;
}

export class WasmBackend implements Backend {
  readonly name = 'cpu';
  readonly kernel: 'simd' | 'relaxed';
  readonly threads: number;
  readonly maxRows: number;
  readonly maxOutputs: number;
  readonly observedRows: number;
  readonly kvCacheBytes: number;
  /** Memories that the model is spread over. */
  readonly bankCount: number;
  /** Undefined once disposed: then nothing holds the memories any more. */
  #live: Live | undefined;
  /** By the record and what an observer wants of it. */
  readonly #programs = new Map<string, Program>();
  readonly #recordNumbers = new WeakMap<PassRecord, number>();
  #records = 0;
  /** What an observer wants of a record, asked once. */
  readonly #wanted = new WeakMap<object, WeakMap<PassRecord, string>>();
  #current: Program | undefined;
  #times: TimesBuffer | undefined;

  constructor(parts: WasmBackendParts) {
    const { layout, banks, pool, setups } = parts;
    this.kernel = parts.kernel;
    this.threads = setups.length;
    this.maxRows = parts.maxRows;
    this.maxOutputs = parts.maxOutputs;
    this.observedRows = parts.observedRows;
    this.kvCacheBytes = parts.kvCacheBytes;
    this.bankCount = banks.length;
    const first = banks[0]!;
    const control = controlOf(first.memory);
    const runner =
      pool === undefined
        ? new LocalRunner(createInterpreter(banks, setups[0]!.layout, 0, 1))
        : new WorkerRunner(pool, control, (sequence, times) =>
            setups.map((setup) => ({ kind: 'session', setup, sequence, ...(times === undefined ? {} : { times }) })),
          );
    this.#live = { parts, control, runner, arenaPointers: banks.map(() => layout.arenaPointer) };
    for (const { memory } of banks) {
      const pairs = new Int32Array(memory.buffer, layout.inputs.identity, parts.maxRows * 2);
      for (let row = 0; row < parts.maxRows; row++) pairs.fill(row, row * 2, row * 2 + 2);
    }
  }

  async execute(
    record: PassRecord,
    inputs: PassInputs,
    observer?: PassObserver,
    signal?: AbortSignal,
  ): Promise<Float32Array> {
    const live = this.#live;
    if (live === undefined) throw disposed();
    const { parts, control, arenaPointers, runner } = live;
    const timed = observer?.onPass !== undefined;
    const start = timed ? performance.now() : 0;
    const program = this.#program(live, record, observer);
    const { layout } = parts;
    const first = parts.banks[0]!.memory.buffer;
    if (program !== this.#current) {
      new Int32Array(first, layout.programPointer, program.words.length).set(program.words);
      Atomics.store(control, CONTROL.PROGRAM_LENGTH, program.words.length);
      this.#current = program;
    }
    new Int32Array(first, layout.countersPointer, program.words.length / CALL_WORDS).fill(0);
    writeInputs(parts, inputs);
    const times = timed ? this.#timesBuffer(live) : undefined;
    const handed = timed ? performance.now() : 0;
    await runner.run(signal, times);
    const returned = timed ? performance.now() : 0;
    const positions = observer === undefined ? [] : Array.from(inputs.positions);
    for (const { activation, buffer } of program.lowered.taps) {
      const { name, layer, width, rows } = activation;
      const values = floats(parts, buffer.bank, addressOf(buffer, arenaPointers), width * rows).slice();
      observer?.onTap?.({ name, layer, shape: [width, rows], positions, values });
    }
    if (times !== undefined) {
      program.steps ??= stepsOf(program.lowered, record, parts.placement);
      const threads = readTimes(times, program.steps.length, start);
      const end = performance.now();
      observer?.onPass?.({ record, positions, steps: program.steps, threads, start, handed, returned, end });
    }
    const { logits } = program.lowered;
    if (logits === undefined || record.logits === undefined) return new Float32Array();
    return floats(parts, logits.bank, addressOf(logits, arenaPointers), record.logits.width * record.logits.rows);
  }

  async rest(): Promise<void> {
    await this.#live?.runner.rest();
  }

  async dispose(): Promise<void> {
    const live = this.#live;
    if (live === undefined) return;
    this.#live = undefined;
    this.#current = undefined;
    this.#programs.clear();
    live.runner.fail(disposed());
    await live.parts.pool?.dispose();
  }

  /** Where the threads write the times of a pass; made when the first pass is timed. */
  #timesBuffer({ parts }: Live): TimesBuffer {
    const most = Math.floor(parts.layout.countersBytes / 4);
    this.#times ??= createTimesBuffer(this.threads, most, parts.pool !== undefined);
    return this.#times;
  }

  #program(live: Live, record: PassRecord, observer: PassObserver | undefined): Program {
    const key = this.#programKey(record, observer);
    const known = this.#programs.get(key);
    if (known !== undefined) {
      // To the end of the order of insertion: what was used last stays longest.
      this.#programs.delete(key);
      this.#programs.set(key, known);
      return known;
    }
    const { layout, banks, placement } = live.parts;
    const lowered = lower(record, placement, observer?.wants?.bind(observer));
    const needed = Math.max(...arenaBytes(lowered, banks.length));
    if (needed > layout.arenaBytes) {
      const message = `a pass of ${record.rows} rows needs ${needed} bytes of memory to compute in, ${layout.arenaBytes} were set aside`;
      throw new AprError('INFERENCE', message, { needed, available: layout.arenaBytes });
    }
    const words = assemble(lowered, live.arenaPointers);
    const room = (layout.countersPointer - layout.programPointer) / 4;
    if (words.length > room) {
      const message = `a pass of ${record.rows} rows takes ${words.length} words of program, ${room} were set aside`;
      throw new AprError('INFERENCE', message, { needed: words.length, available: room });
    }
    const program = { words, lowered };
    const oldest = this.#programs.keys().next().value;
    if (this.#programs.size >= KEPT_PROGRAMS && oldest !== undefined) this.#programs.delete(oldest);
    this.#programs.set(key, program);
    return program;
  }

  #programKey(record: PassRecord, observer: PassObserver | undefined): string {
    const number = this.#recordNumbers.get(record) ?? this.#records++;
    this.#recordNumbers.set(record, number);
    if (observer?.wants === undefined) return `${number}`;
    let keys = this.#wanted.get(observer);
    if (keys === undefined) {
      keys = new WeakMap();
      this.#wanted.set(observer, keys);
    }
    let key = keys.get(record);
    if (key === undefined) {
      const wanted = record.activations.filter(({ name, layer }) => observer.wants?.(name, layer));
      key = `${number}:${wanted.map(({ id }) => id).join()}`;
      keys.set(record, key);
    }
    return key;
  }
}

function disposed(): AprError {
  return new AprError('DISPOSED', 'the engine was disposed');
}

function writeInputs({ layout, banks, ropes }: WasmBackendParts, inputs: PassInputs): void {
  const rows = inputs.positions.length;
  const tables = ropes.map((rope) => {
    const table = new Float32Array(rows * rope.dims);
    ropeTable(rope, inputs.positions, table);
    return table;
  });
  for (const { memory } of banks) {
    for (const name of ['tokens', 'positions', 'sequences', 'outputRows'] as const) {
      new Int32Array(memory.buffer, layout.inputs[name], inputs[name].length).set(inputs[name]);
    }
    tables.forEach((table, i) => {
      new Float32Array(memory.buffer, layout.ropeTables[i]!, table.length).set(table);
    });
  }
}

function floats({ banks }: WasmBackendParts, bank: number, pointer: number, count: number): Float32Array {
  return new Float32Array(banks[bank]!.memory.buffer, pointer, count);
}
