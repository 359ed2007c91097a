/**
 * Workers meet wherever one could read what another has not written yet, or write what another still reads: the programs
 * of every architecture held against the calls they were made of, by another count than the one that sets the barriers.
 */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressOf, arenaBytes, assemble } from '../../src/backends/wasm/compile.ts';
import { WASM_TYPES } from '../../src/backends/wasm/create.ts';
import { type Buffer, type KernelCall, type Lowered, lower, type Placement } from '../../src/backends/wasm/lower.ts';
import { CALL, CALL_WORDS } from '../../src/backends/wasm/program.ts';
import { SHARE } from '../../src/backends/wasm/shares.ts';
import { type PreparedModel, prepareModel } from '../../src/engines/model.ts';
import type { ModelFile } from '../../src/formats/model-file.ts';
import { openModel } from '../../src/formats/open-model.ts';
import { Ops } from '../../src/graph/ops.ts';
import { nodePlatform } from '../../src/platform/node/platform.ts';
import { createTokenizer } from '../../src/tokenizer/index.ts';
import { loadKernels } from '../kernels/kernel-host.ts';
import { FIXTURES } from '../repository.ts';

const SHAPES = [
  [1, 1],
  [2, 2],
  [5, 1],
  [8, 8],
  [128, 1],
  [64, 0],
] as const;
const CONTEXT = 256;
/** Of each bank; the fixed places lie below. */
const ARENA = 1 << 30;

const { exports: kernels } = await loadKernels('simd-plain', 64);

/** The blocks in as many banks as there are, one after the other. */
function placement({ tensors }: ModelFile, { model }: PreparedModel, banks: number): Placement {
  const { blockCount, headCountKv, headDim, headDimV } = model.hyperparameters;
  const bankOf = (layer: number): number => Math.floor((layer * banks) / blockCount);
  let next = 1 << 20;
  const place = (bytes: number): number => {
    const at = next;
    next += (bytes + 63) & ~63;
    return at;
  };
  const fixed = (bank: number, bytes: number): Buffer => {
    return { bank, bytes, fixed: place(bytes), first: 0, last: 0, offset: 0 };
  };
  const caches = Array.from({ length: blockCount }, (_, layer) => ({
    k: fixed(bankOf(layer), kernels.k_cache_bytes(CONTEXT, headCountKv, headDim)),
    v: fixed(bankOf(layer), kernels.v_cache_bytes(CONTEXT, headCountKv, headDimV)),
  }));
  const pointers = new Map<string, number>();
  const pointer = (key: string): number => {
    if (!pointers.has(key)) pointers.set(key, place(64));
    return pointers.get(key)!;
  };
  return {
    weight: ({ name }) => {
      const layer = /^blk\.(\d+)\./.exec(name)?.[1];
      const last = name.startsWith('output');
      const bank = layer === undefined ? (last ? banks - 1 : 0) : bankOf(Number(layer));
      return { bank, pointer: pointer(name), type: tensors.get(name)!.type.id };
    },
    input: (name, bank) => pointer(`${name} ${bank}`),
    ropeTable: (rope, bank) => pointer(`rope ${model.ropes.indexOf(rope)} ${bank}`),
    cache: (layer) => caches[layer]!,
    contextLength: CONTEXT,
    workers: 3,
    kernels,
  };
}

interface Range {
  readonly bank: number;
  readonly start: number;
  readonly end: number;
}

function meets(a: Range, b: Range): boolean {
  return a.bank === b.bank && a.start < b.end && b.start < a.end;
}

/** Calls that one worker could be at while another is at an earlier one that it depends on; none in a right program. */
function races(lowered: Lowered, words: Int32Array, arenas: readonly number[]): string[] {
  const range = (buffer: Buffer): Range => {
    const start = addressOf(buffer, arenas);
    return { bank: buffer.bank, start, end: start + buffer.bytes };
  };
  const uses = lowered.calls.map(({ reads, writes }) => ({ reads: reads.map(range), writes: writes.map(range) }));
  const found: string[] = [];
  let since = 0;
  let group = 0;
  const groups: number[] = [];
  for (const [i, call] of lowered.calls.entries()) {
    if (words[i * CALL_WORDS + CALL.BARRIER] === 1) since = i;
    if (lowered.shares[i] === SHARE.OWN) group = i;
    groups.push(group);
    for (let j = since; j < i; j++) {
      // Of its own group a worker does everything one after the other.
      if (groups[j] === group && lowered.shares[i] === SHARE.WHOLE) continue;
      const [own, other] = [uses[i]!, uses[j]!];
      const before = lowered.calls[j]!;
      // An aligned call reads what the same worker wrote, and nothing of the others'.
      const aligned = groups[j] === group && lowered.shares[i] === SHARE.ALIGNED;
      const reads = !aligned && own.reads.some((a) => other.writes.some((b) => meets(a, b)));
      const writes = own.writes.some((a) => [...other.writes, ...other.reads].some((b) => meets(a, b)));
      if (reads || writes) found.push(`${call.kernel} (${i}) beside ${before.kernel} (${j})`);
    }
  }
  return found;
}

/** Buffers in one place at one time. */
function clashes({ buffers, calls }: Lowered, arenas: readonly number[]): number {
  const placed = buffers.filter(({ first }) => first !== -1);
  let count = 0;
  for (const [i, a] of placed.entries()) {
    for (const b of placed.slice(0, i)) {
      if (a.bank !== b.bank || a.first > b.last || b.first > a.last) continue;
      const [start, other] = [addressOf(a, arenas), addressOf(b, arenas)];
      if (start < other + b.bytes && other < start + a.bytes) count++;
    }
  }
  for (const [step, call] of calls.entries()) {
    for (const buffer of [...call.reads, ...call.writes]) {
      if (buffer.fixed === undefined && (buffer.first > step || buffer.last < step)) count++;
    }
  }
  return count;
}

/** What a kernel gets as an argument it reads or writes: nothing is used that the barriers do not know of. */
function undeclared({ args, reads, writes }: KernelCall): boolean {
  return args.some((arg) => typeof arg !== 'number' && !reads.includes(arg) && !writes.includes(arg));
}

for (const name of readdirSync(FIXTURES).filter((file) => file.endsWith('.gguf'))) {
  test(name, async () => {
    const source = await nodePlatform.openSource(join(FIXTURES, name));
    const file = await openModel(source);
    const prepared = await prepareModel(file, createTokenizer(file.metadata), WASM_TYPES, { contextLength: CONTEXT });
    await source.close();
    let needless = 0;
    let barriers = 0;
    for (const banks of [1, 2]) {
      for (const [rows, outputs] of SHAPES) {
        for (const tapped of [false, true]) {
          const ops = new Ops(rows, outputs);
          const record = ops.finish(prepared.architecture.forward(ops, prepared.model));
          const lowered = lower(record, placement(file, prepared, banks), () => tapped);
          const arenas = Array.from({ length: banks }, () => ARENA);
          arenaBytes(lowered, banks);
          const words = assemble(lowered, arenas);
          const what = `${rows} rows, ${outputs} outputs, ${banks} banks${tapped ? ', tapped' : ''}`;
          assert.equal(races(lowered, words, arenas), [], what);
          assert.is(clashes(lowered, arenas), 0, what);
          assert.equal(lowered.calls.filter(undeclared), [], what);
          for (const call of lowered.calls) assert.ok(call.items > 0, `${call.kernel}: ${what}`);
          // Each barrier is needed, and the count above sees where one is missing.
          for (let at = CALL.BARRIER; at < words.length; at += CALL_WORDS) {
            if (words[at] === 0) continue;
            words[at] = 0;
            if (races(lowered, words, arenas).length === 0) needless++;
            words[at] = 1;
            barriers++;
          }
        }
      }
    }
    assert.ok(barriers > 100);
    assert.is(needless, 0);
  });
}

test.run();
