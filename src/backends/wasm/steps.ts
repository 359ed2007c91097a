/** What a program's calls are, for whoever reads their times. */

import { ggmlTypeById } from '../../formats/ggml-types.ts';
import type { PassRecord, Weight } from '../../graph/command.ts';
import type { PassStep, StepWeight } from '../../graph/observer.ts';
import type { KernelCall, Lowered, Placement } from './lower.ts';

/** Kernels that read a matrix. */
const READERS: ReadonlySet<KernelCall['kernel']> = /* @__PURE__ */ new Set(['embed', 'mul_mat', 'mul_mat_id']);

/** One step a call, in their order. */
export function stepsOf(lowered: Lowered, record: PassRecord, placement: Placement): PassStep[] {
  return lowered.calls.map(({ kernel, command: index }) => {
    const command = record.commands[index];
    if (command === undefined || !READERS.has(kernel) || !('weight' in command)) return { command: index, kernel };
    const rows = command.op === 'embed' ? command.dst.rows : command.weight.rows;
    const weight = weightOf(command.weight, rows, placement);
    return { command: index, kernel, weight: command.op === 'mulMatId' ? { ...weight, perExpert: true } : weight };
  });
}

/** `rows` of the matrix, as many bytes as they take in memory: interleaved groups. */
function weightOf(weight: Weight, rows: number, placement: Placement): StepWeight {
  const { kernels } = placement;
  const { type } = placement.weight(weight);
  const rowBytes = (kernels.group_bytes(type, weight.width) >>> 0) / kernels.GROUP_ROWS.value;
  return { type: ggmlTypeById(type)?.name ?? `type ${type}`, bytes: Math.round(rows * rowBytes) };
}
