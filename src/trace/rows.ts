/** The rows of an activation that belong to the traced tokens, and who takes them. */

import type { PassObserver, Tap } from '../graph/observer.ts';
import { isCopy, stageOf } from './stages.ts';

export interface ActivationRows {
  readonly name: string;
  readonly layer: number | undefined;
  /** Position of the first token; the others follow without a gap. */
  readonly firstPosition: number;
  readonly tokens: number;
  /** Rows of a token: the slots of a mixture of experts, 1 elsewhere. */
  readonly perToken: number;
  readonly width: number;
  /** [tokens · perToken × width]; valid during the call only. */
  readonly values: Float32Array;
}

export interface RowSink {
  take(rows: ActivationRows): void;
}

/** Positions of the traced tokens, both included. */
export interface PositionRange {
  readonly first: number;
  readonly last: number;
}

/** The rows of `tap` whose positions lie in the range; undefined when there are none. */
export function rowsOf(
  { name, layer, shape, positions, values }: Tap,
  range: PositionRange,
): ActivationRows | undefined {
  const [width, rows] = shape;
  // Behind the selection of the rows whose logits are wanted there are fewer: those of the last positions.
  const own = rows < positions.length ? positions.slice(positions.length - rows) : positions;
  const perToken = rows / own.length;
  const from = own.findIndex((position) => position >= range.first && position <= range.last);
  if (from === -1) return undefined;
  let to = from + 1;
  while (to < own.length && own[to] === own[to - 1]! + 1 && own[to]! <= range.last) to++;
  const row = perToken * width;
  return {
    name,
    layer,
    firstPosition: own[from] as number,
    tokens: to - from,
    perToken,
    width,
    values: values.subarray(from * row, to * row),
  };
}

/** Hands the rows of the traced tokens on, one activation at a time, as passes compute them. */
export class RowObserver implements PassObserver {
  readonly #range: PositionRange;
  readonly #sinks: readonly RowSink[];

  constructor(range: PositionRange, sinks: readonly RowSink[]) {
    this.#range = range;
    this.#sinks = sinks;
  }

  wants(name: string): boolean {
    return !isCopy(name);
  }

  onTap(tap: Tap): void {
    const { last } = this.#range;
    const rows = rowsOf(tap, isOutput(tap.name) ? { first: last, last } : this.#range);
    if (rows === undefined) return;
    for (const sink of this.#sinks) sink.take(rows);
  }
}

/** Whether this is computed where logits are wanted only: at the end of a pass. */
export function isOutput(name: string): boolean {
  const stage = stageOf(name)?.name;
  return stage === 'final_norm' || stage === 'logits';
}
