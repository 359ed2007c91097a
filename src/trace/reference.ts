/** The values that a run is held against. */

import { AprError } from '../errors.ts';
import type { ActivationRows, RowSink } from './rows.ts';

/** Where the other run's values come from. */
export interface ReferenceTensors {
  /**
   * The rows of the same activation at the same positions; undefined when the reference lacks it.
   * @throws AprError when it has another shape there
   */
  rows(like: ActivationRows): Float32Array | undefined;
}

/** What a reference has in another shape cannot be held against this. */
export function shapesDiffer(name: string, found: number | string, expected: number | string): AprError {
  const message = `the reference's ${name} has ${found} values, expected ${expected}: it is no model of the same shape`;
  return new AprError('CONTRACT', message, { activation: name, found, expected });
}

/** A reference that was run before and is kept in memory. */
export class CollectedRows implements RowSink, ReferenceTensors {
  readonly #rows = new Map<string, ActivationRows[]>();

  take(rows: ActivationRows): void {
    const list = this.#rows.get(rows.name) ?? [];
    list.push({ ...rows, values: rows.values.slice() });
    this.#rows.set(rows.name, list);
  }

  rows({ name, firstPosition, tokens, perToken, width }: ActivationRows): Float32Array | undefined {
    const stored = this.#rows.get(name);
    if (stored === undefined) return undefined;
    const row = perToken * width;
    const out = new Float32Array(tokens * row);
    let found = 0;
    for (const { firstPosition: from, tokens: count, perToken: slots, width: wide, values } of stored) {
      if (slots !== perToken || wide !== width)
        throw shapesDiffer(name, `${slots} × ${wide}`, `${perToken} × ${width}`);
      const start = Math.max(from, firstPosition);
      const end = Math.min(from + count, firstPosition + tokens);
      if (start >= end) continue;
      out.set(values.subarray((start - from) * row, (end - from) * row), (start - firstPosition) * row);
      found += end - start;
    }
    if (found !== tokens) throw new Error(`${name}: the reference was computed for ${found} of ${tokens} tokens`);
    return out;
  }

  clear(): void {
    this.#rows.clear();
  }
}
