/** Runs a program: what every kernel worker does for every pass. Knows no platform. */

import { meet } from '../../scheduling/barrier.ts';
import { CONTROL, controlOf } from '../../scheduling/control.ts';
import { KERNELS, type KernelExports, TRANSFER, type WorkKernel } from './kernels.ts';
import { CALL, CALL_WORDS } from './program.ts';
import { SHARE } from './shares.ts';
import type { StepClock } from './step-clock.ts';

/** Where things lie; the same for every worker. Pointers are bytes in the bank they belong to. */
export interface InterpreterLayout {
  /** In bank 0: the program and one item counter a call. */
  readonly programPointer: number;
  readonly countersPointer: number;
  /** Start of the workers' scratch areas in every bank, and the size of one. */
  readonly scratchPointers: readonly number[];
  readonly scratchBytes: number;
}

/** A worker takes the items that are left, divided by this and by the number of workers. Measured: 2 to 4 are alike. */
const SHARES = 3;

export interface Interpreter {
  readonly control: Int32Array;
  /** Runs the program that lies in bank 0, together with the other workers; false when it was aborted. */
  run(clock?: StepClock): boolean;
  /** For a worker alone: goes on with the program for about so long; true when it is done. */
  runFor(milliseconds: number, clock?: StepClock): boolean;
  /** For a worker alone: the next {@link runFor} begins at the program's start. */
  restart(): void;
}

export function createInterpreter(
  banks: readonly { readonly exports: KernelExports; readonly memory: WebAssembly.Memory }[],
  layout: InterpreterLayout,
  worker: number,
  workers: number,
): Interpreter {
  const first = banks[0]!;
  const control = controlOf(first.memory);
  const words = new Int32Array(
    first.memory.buffer,
    layout.programPointer,
    (layout.countersPointer - layout.programPointer) / 4,
  );
  const counters = new Int32Array(first.memory.buffer, layout.countersPointer, Math.floor(words.length / CALL_WORDS));
  const functions: WorkKernel[][] = banks.map(({ exports }) => KERNELS.map((name) => exports[name]));
  const bytes = banks.map(({ memory }) => new Uint8Array(memory.buffer));
  const scratch = layout.scratchPointers.map((pointer) => pointer + worker * layout.scratchBytes);

  function call(at: number, start: number, end: number): void {
    const bank = words[at + CALL.BANK]!;
    const kernel = words[at + CALL.KERNEL]!;
    const a = at + CALL.ARGUMENTS;
    if (kernel === TRANSFER) {
      const from = words[a]! >>> 0;
      const size = words[a + 3]! >>> 0;
      bytes[words[a + 1]!]!.set(bytes[bank]!.subarray(from, from + size), words[a + 2]! >>> 0);
      return;
    }
    functions[bank]![kernel]!(
      start,
      end,
      scratch[bank]!,
      words[a]!,
      words[a + 1]!,
      words[a + 2]!,
      words[a + 3]!,
      words[a + 4]!,
      words[a + 5]!,
      words[a + 6]!,
      words[a + 7]!,
      words[a + 8]!,
      words[a + 9]!,
      words[a + 10]!,
      words[a + 11]!,
      words[a + 12]!,
      words[a + 13]!,
      words[a + 14]!,
      words[a + 15]!,
      words[a + 16]!,
      words[a + 17]!,
    );
  }

  /** Begins and ends of the items that this worker took of the last call that it could take items of. */
  const taken: number[] = [];
  /** Where a worker alone goes on. */
  let next = 0;

  return {
    control,
    run(clock): boolean {
      const length = Atomics.load(control, CONTROL.PROGRAM_LENGTH);
      clock?.wake();
      let took = 0;
      for (let at = 0, index = 0; at < length; at += CALL_WORDS, index++) {
        // A worker alone passes through: an abort must end it too, and whoever watches must see it get further.
        const together = words[at + CALL.BARRIER] === 1;
        if (together && !meet(control, workers)) return false;
        clock?.begin(index, together && workers > 1);
        const items = words[at + CALL.ITEMS]!;
        if (workers === 1) {
          call(at, 0, items);
          clock?.end(index);
          continue;
        }
        const share = words[at + CALL.SHARE]!;
        if (share === SHARE.WHOLE) {
          if (took > 0) call(at, 0, items);
        } else if (share === SHARE.ALIGNED) {
          for (let i = 0; i < took; i += 2) call(at, taken[i]!, taken[i + 1]!);
        } else {
          took = 0;
          // Whoever is free takes a share of what is left: long runs first, which memory likes, short ones in the end,
          // so that all finish together and a core that was interrupted does not hold up the others.
          const least = words[at + CALL.LEAST]!;
          for (;;) {
            const start = Atomics.load(counters, index);
            if (start >= items) break;
            const end = Math.min(items, start + Math.max(least, Math.floor((items - start) / (SHARES * workers))));
            if (Atomics.compareExchange(counters, index, start, end) !== start) continue;
            taken[took++] = start;
            taken[took++] = end;
            call(at, start, end);
          }
        }
        clock?.end(index);
      }
      return true;
    },
    runFor(milliseconds, clock): boolean {
      const end = performance.now() + milliseconds;
      const length = Atomics.load(control, CONTROL.PROGRAM_LENGTH);
      if (next === 0) clock?.wake();
      // Others had a turn meanwhile: that is not the next step's time.
      let resumed = true;
      while (next < length) {
        clock?.begin(next / CALL_WORDS, resumed);
        resumed = false;
        call(next, 0, words[next + CALL.ITEMS]!);
        clock?.end(next / CALL_WORDS);
        next += CALL_WORDS;
        if (performance.now() > end) break;
      }
      return next >= length;
    },
    restart(): void {
      next = 0;
    },
  };
}
