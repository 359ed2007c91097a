/** Gives the buffers of lowered calls their addresses and writes the program that the interpreter runs. */

import { placeBuffers } from '../../scheduling/arena.ts';
import { KERNELS, MAX_ARGUMENTS, TRANSFER } from './kernels.ts';
import type { Buffer, KernelCall, Lowered } from './lower.ts';
import { CALL, CALL_WORDS } from './program.ts';
import { SHARE } from './shares.ts';

/** Bytes of arena that the calls need, for each bank; sets the buffers' offsets. */
export function arenaBytes(lowered: Lowered, bankCount: number): number[] {
  return Array.from({ length: bankCount }, (_, bank) =>
    placeBuffers(lowered.buffers.filter((buffer) => buffer.bank === bank && buffer.first !== -1)),
  );
}

export function addressOf(buffer: Buffer, arenaPointers: readonly number[]): number {
  return buffer.fixed ?? (arenaPointers[buffer.bank] as number) + buffer.offset;
}

/** Words of the program; {@link arenaBytes} has placed the buffers before. */
export function assemble(lowered: Lowered, arenaPointers: readonly number[]): Int32Array<ArrayBuffer> {
  const words = new Int32Array(lowered.calls.length * CALL_WORDS);
  const hazards = new Hazards(arenaPointers);
  const { shares } = lowered;
  lowered.calls.forEach((call, index) => {
    const at = index * CALL_WORDS;
    words[at + CALL.KERNEL] = call.kernel === 'transfer' ? TRANSFER : KERNELS.indexOf(call.kernel);
    words[at + CALL.BANK] = call.bank;
    if (shares[index] === SHARE.OWN) {
      // Nobody meets between this call and those that go with it.
      let end = index + 1;
      while (end < shares.length && shares[end] !== SHARE.OWN) end++;
      words[at + CALL.BARRIER] = hazards.needBarrier(lowered.calls.slice(index, end)) ? 1 : 0;
    }
    words[at + CALL.ITEMS] = call.items;
    words[at + CALL.LEAST] = shares[index + 1] === SHARE.WHOLE ? call.items : call.least;
    words[at + CALL.SHARE] = shares[index]!;
    if (call.args.length > MAX_ARGUMENTS) throw new Error(`${call.kernel} has more than ${MAX_ARGUMENTS} arguments`);
    call.args.forEach((arg, i) => {
      words[at + CALL.ARGUMENTS + i] = typeof arg === 'number' ? arg : addressOf(arg, arenaPointers);
    });
  });
  return words;
}

interface Range {
  readonly bank: number;
  readonly start: number;
  readonly end: number;
}

/** Which memory has been read and written since the workers last met. */
class Hazards {
  readonly #arenaPointers: readonly number[];
  #reads: Range[] = [];
  #writes: Range[] = [];

  constructor(arenaPointers: readonly number[]) {
    this.#arenaPointers = arenaPointers;
  }

  /** True when one of the calls touches what an earlier one wrote, or writes what an earlier one reads. */
  needBarrier(calls: readonly KernelCall[]): boolean {
    const reads = calls.flatMap((call) => call.reads.map((buffer) => this.#range(buffer)));
    const writes = calls.flatMap((call) => call.writes.map((buffer) => this.#range(buffer)));
    const conflict = overlap(reads, this.#writes) || overlap(writes, this.#writes) || overlap(writes, this.#reads);
    if (conflict) {
      this.#reads = [];
      this.#writes = [];
    }
    this.#reads.push(...reads);
    this.#writes.push(...writes);
    return conflict;
  }

  #range(buffer: Buffer): Range {
    const start = addressOf(buffer, this.#arenaPointers);
    return { bank: buffer.bank, start, end: start + buffer.bytes };
  }
}

function overlap(some: readonly Range[], others: readonly Range[]): boolean {
  return some.some((a) => others.some((b) => a.bank === b.bank && a.start < b.end && b.start < a.end));
}
