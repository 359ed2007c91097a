/**
 * Where everything of a model lies. Weights live in banks: WebAssembly memories of at most 4 GiB, each with whole
 * consecutive layers, their KV cache, and room to compute in. A bank, from its start:
 *
 *   control block (bank 0)            | pass inputs, RoPE tables | program, counters (bank 0)
 *   scratch of every worker | arena   | KV cache of the layers   | weights
 */

import { AprError } from '../../errors.ts';
import type { TensorInfo } from '../../formats/model-file.ts';
import type { InputName, Weight } from '../../graph/command.ts';
import { align } from '../../scheduling/arena.ts';
import { CONTROL_BYTES } from '../../scheduling/control.ts';
import type { KernelExports } from './kernels.ts';
import { CALL_WORDS } from './program.ts';

export const PAGE_BYTES = 65536;
/** The last page stays free, so that no pointer arithmetic of a kernel can wrap. */
export const BANK_BYTES = 65535 * PAGE_BYTES;

export interface LayoutInput {
  readonly sourceName: string;
  readonly kernels: KernelExports;
  /** Tensors to place, in the order of the model's blocks. */
  readonly weights: readonly {
    readonly weight: Weight;
    readonly info: TensorInfo;
    readonly layer: number | undefined;
  }[];
  readonly blockCount: number;
  /** Bytes of keys and of values of one layer. */
  readonly keyBytes: number;
  readonly valueBytes: number;
  readonly maxRows: number;
  /** Floats of one row of each RoPE table. */
  readonly ropeDims: readonly number[];
  readonly workers: number;
  readonly scratchBytes: number;
  readonly arenaBytes: number;
  /** Calls of the longest program. */
  readonly maxCalls: number;
  /** Smaller banks, for tests. */
  readonly bankBytes?: number;
}

export interface PlacedWeight {
  readonly info: TensorInfo;
  readonly weight: Weight;
  readonly bank: number;
  readonly pointer: number;
  /** Bytes in the interleaved form. */
  readonly bytes: number;
}

export interface Layout {
  /** Size of each bank, whole pages. */
  readonly bankBytes: readonly number[];
  readonly weights: ReadonlyMap<string, PlacedWeight>;
  readonly caches: readonly { readonly bank: number; readonly k: number; readonly v: number }[];
  readonly inputs: Readonly<Record<InputName | 'identity', number>>;
  readonly ropeTables: readonly number[];
  readonly programPointer: number;
  readonly countersPointer: number;
  readonly countersBytes: number;
  readonly scratchPointer: number;
  readonly arenaPointer: number;
  readonly arenaBytes: number;
  readonly totalBytes: number;
}

/** Bytes that a tensor takes once it lies in memory: interleaved groups, or plain f32 for a vector. */
export function placedBytes(kernels: KernelExports, weight: Weight, info: TensorInfo): number {
  if (weight.vector) return align(weight.width * 4);
  const groups = Math.ceil(weight.rows / kernels.GROUP_ROWS.value);
  return align(weight.experts * groups * groupBytes(kernels, info.type.id, weight.width));
}

/** Bytes of one group, unsigned. */
export function groupBytes(kernels: KernelExports, type: number, width: number): number {
  return kernels.group_bytes(type, width) >>> 0;
}

export function planLayout(input: LayoutInput): Layout {
  // The same head in every bank: pointers to it do not depend on the bank.
  let at = CONTROL_BYTES;
  const reserve = (bytes: number): number => {
    const pointer = at;
    at += align(bytes);
    return pointer;
  };
  const inputs = {
    tokens: reserve(input.maxRows * 4),
    positions: reserve(input.maxRows * 4),
    sequences: reserve(input.maxRows * 4),
    outputRows: reserve(input.maxRows * 4),
    identity: reserve(input.maxRows * 8),
  };
  const ropeTables = input.ropeDims.map((dims) => reserve(input.maxRows * dims * 4));
  const programPointer = reserve(input.maxCalls * CALL_WORDS * 4);
  const countersBytes = input.maxCalls * 4;
  const countersPointer = reserve(countersBytes);
  const scratchPointer = reserve(input.workers * input.scratchBytes);
  const arenaPointer = reserve(input.arenaBytes);
  const headBytes = at;

  const capacity = input.bankBytes ?? BANK_BYTES;
  const ends: number[] = [headBytes];
  const place = (bytes: number): { bank: number; pointer: number } => {
    const bank = ends.length - 1;
    const pointer = ends[bank]!;
    ends[bank] = pointer + bytes;
    return { bank, pointer };
  };

  const weights = new Map<string, PlacedWeight>();
  const caches: { bank: number; k: number; v: number }[] = [];
  // Units that must not be torn apart: what stands outside the blocks, then each block with its cache.
  for (let unit = -1; unit < input.blockCount; unit++) {
    const layer = unit === -1 ? undefined : unit;
    const members = input.weights.filter((member) => member.layer === layer);
    const sizes = members.map(({ weight, info }) => placedBytes(input.kernels, weight, info));
    const cacheBytes = layer === undefined ? 0 : align(input.keyBytes) + align(input.valueBytes);
    const unitBytes = cacheBytes + sizes.reduce((a, b) => a + b, 0);
    if (headBytes + unitBytes > capacity) {
      const what = layer === undefined ? 'embedding and output head' : `layer ${layer} and its KV cache`;
      throw new AprError(
        'LOAD_FAILED',
        `${input.sourceName}: ${what} need ${headBytes + unitBytes} bytes in one memory, at most ${capacity} are ` +
          'possible; a smaller context length (-c) may make it fit',
        { needed: headBytes + unitBytes, possible: capacity },
      );
    }
    if ((ends.at(-1) as number) + unitBytes > capacity) ends.push(headBytes);
    if (layer !== undefined) {
      const k = place(align(input.keyBytes));
      const v = place(align(input.valueBytes));
      caches[layer] = { bank: k.bank, k: k.pointer, v: v.pointer };
    }
    members.forEach(({ weight, info }, i) => {
      const bytes = sizes[i]!;
      weights.set(weight.name, { weight, info, bytes, ...place(bytes) });
    });
  }
  const bankBytes = ends.map((end) => align(end, PAGE_BYTES));
  return {
    bankBytes,
    weights,
    caches,
    inputs,
    ropeTables,
    programPointer,
    countersPointer,
    countersBytes,
    scratchPointer,
    arenaPointer,
    arenaBytes: input.arenaBytes,
    totalBytes: bankBytes.reduce((a, b) => a + b, 0),
  };
}
