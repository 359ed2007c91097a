/** Which part of a model a recorded command belongs to. */

import type { Command, PassRecord } from '../graph/command.ts';
import type { TraceStep } from './events.ts';

/** Parts of a pass in the order in which they are shown. */
export const PARTS = [
  'embed',
  'attn_norm',
  'qkv',
  'qk_norm',
  'rope',
  'attention',
  'attn_output',
  'ffn_norm',
  'router',
  'gate_up',
  'down',
  'output_norm',
  'lm_head',
] as const;

export type Part = (typeof PARTS)[number];

export interface CommandPart {
  readonly part: Part;
  readonly step: TraceStep;
  readonly layer: number | undefined;
  /** Name of the activation that it computes. */
  readonly name: string;
  /** Shape of the first activation that it reads, and of the one that it writes. */
  readonly input: readonly [number, number] | undefined;
  readonly output: readonly [number, number] | undefined;
}

const STEP_OF: Readonly<Record<Part, TraceStep>> = {
  embed: 'EMBED',
  attn_norm: 'LAYER_NORM',
  qkv: 'ATTENTION',
  qk_norm: 'LAYER_NORM',
  rope: 'ATTENTION',
  attention: 'ATTENTION',
  attn_output: 'ATTENTION',
  ffn_norm: 'LAYER_NORM',
  router: 'FFN',
  gate_up: 'FFN',
  down: 'FFN',
  output_norm: 'LAYER_NORM',
  lm_head: 'LM_HEAD',
};

/** Names within a block; the first that fits counts. */
const BLOCK_PARTS: readonly (readonly [RegExp, Part])[] = [
  [/^attn_norm$/, 'attn_norm'],
  [/^attn_[qk]_norm$/, 'qk_norm'],
  [/^attn_[qk]_rope$/, 'rope'],
  [/^attn_(q|k|v|qkv)(_bias)?$/, 'qkv'],
  [/^(attn_kqv|kv_cache)$/, 'attention'],
  [/^attn_/, 'attn_output'],
  [/^ffn_norm$/, 'ffn_norm'],
  [/^ffn_(gate_inp|routing)$/, 'router'],
  [/^ffn_(gate|up|swiglu|geglu)/, 'gate_up'],
];

function partOf(command: Command, name: string, behindBlocks: boolean): Part {
  const block = /^blk\.\d+\.(.*)$/.exec(name)?.[1];
  if (block !== undefined) return BLOCK_PARTS.find(([pattern]) => pattern.test(block))?.[1] ?? 'down';
  if (!behindBlocks) return 'embed';
  return command.op === 'mulMat' || name.startsWith('logits') ? 'lm_head' : 'output_norm';
}

const known = new WeakMap<PassRecord, readonly CommandPart[]>();

/** The part of each command of a record. */
export function partsOf(record: PassRecord): readonly CommandPart[] {
  const before = known.get(record);
  if (before !== undefined) return before;
  let behindBlocks = false;
  const parts = record.commands.map((command): CommandPart => {
    const layer = command.op === 'storeKv' ? command.layer : command.dst.layer;
    if (layer !== undefined) behindBlocks = true;
    const name = command.op === 'storeKv' ? `blk.${command.layer}.kv_cache` : command.dst.name;
    const part = partOf(command, name, behindBlocks);
    const output = command.op === 'storeKv' ? undefined : ([command.dst.width, command.dst.rows] as const);
    return { part, step: STEP_OF[part], layer, name, input: inputOf(command), output };
  });
  known.set(record, parts);
  return parts;
}

function inputOf(command: Command): readonly [number, number] | undefined {
  for (const key of ['x', 'a', 'gate', 'logits', 'q', 'k'] as const) {
    const value = (command as { readonly [name: string]: unknown })[key];
    if (typeof value === 'object' && value !== null && 'rows' in value && 'width' in value) {
      return [value.width as number, value.rows as number];
    }
  }
  return undefined;
}
