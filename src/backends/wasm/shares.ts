/**
 * How the workers divide a call among them, so that they need not meet before calls that do little. At a token a pass,
 * adding, norming and quantising a row takes a worker less time than meeting the others does.
 */

import { ITEM_VALUES } from './kernels.ts';
import type { KernelCall } from './lower.ts';

/** Numbers as programs hold them. */
export const SHARE = {
  /** Workers take items of this call. */
  OWN: 0,
  /** The items that a worker took of the call before. */
  ALIGNED: 1,
  /** All items, for the worker that took the call before; it took that as a whole. */
  WHOLE: 2,
} as const;

export type Share = (typeof SHARE)[keyof typeof SHARE];

/** Most values of a call that one worker does alone. */
const FEW_VALUES = 4096;
/** Most bytes of partial results of attention that one worker brings together. */
const FEW_PARTIAL_BYTES = 1 << 18;

/** Kernels that read no weights but vectors. */
const LIGHT: ReadonlySet<KernelCall['kernel']> = /* @__PURE__ */ new Set([
  'quantize',
  'route_plan',
  'rms_norm',
  'rope',
  'add',
  'add_bias',
  'swiglu',
  'geglu',
  'scale',
  'soft_cap',
  'sigmoid_gate',
  'select_rows',
  'top_k',
  'combine',
  'store_kv',
  'attention_merge',
  'transfer',
]);

/** The share of each call. A call that is not OWN depends, of what was computed since the last OWN one, on nothing else. */
export function sharesOf(calls: readonly KernelCall[]): Share[] {
  const shares = calls.map<Share>((call, i) => (aligned(calls[i - 1], call) ? SHARE.ALIGNED : SHARE.OWN));
  calls.forEach((call, i) => {
    const before = calls[i - 1];
    const apart = shares[i] === SHARE.ALIGNED || shares[i - 1] === SHARE.ALIGNED || shares[i + 1] === SHARE.ALIGNED;
    if (before !== undefined && !apart && light(before) && light(call)) shares[i] = SHARE.WHOLE;
  });
  return shares;
}

/**
 * Lets what is read by a call with an aligned one behind it live on until that one: a worker is there already while
 * another still reads.
 */
export function keepOperands(calls: readonly KernelCall[], shares: readonly Share[]): void {
  calls.forEach((call, step) => {
    if (shares[step + 1] !== SHARE.ALIGNED) return;
    for (const buffer of call.reads) buffer.last = Math.max(buffer.last, step + 1);
  });
}

/** Whether item i of `call` reads nothing of what `before` writes but its item i. */
function aligned(before: KernelCall | undefined, call: KernelCall): boolean {
  if (before === undefined || (before.kernel !== 'swiglu' && before.kernel !== 'geglu')) return false;
  const [x] = call.reads;
  return (
    call.kernel === 'quantize' &&
    x === before.writes[0] &&
    x !== undefined &&
    // Segments do not go from one row to the next.
    call.items * ITEM_VALUES * 4 === x.bytes &&
    call.items === before.items
  );
}

function light({ kernel, reads, writes }: KernelCall): boolean {
  if (!LIGHT.has(kernel)) return false;
  const bytes = (buffers: KernelCall['reads']): number => buffers.reduce((sum, buffer) => sum + buffer.bytes, 0);
  // A cache is large, of which little is written; so are partial results, of which little is read in a short context.
  const values = Math.min(bytes(reads), bytes(writes)) / 4;
  return values <= FEW_VALUES && (kernel !== 'attention_merge' || bytes(reads) <= FEW_PARTIAL_BYTES);
}
