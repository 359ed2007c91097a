/** Two runs of the same tokens held against each other, activation by activation. */

import { AprError } from '../errors.ts';
import { choiceOf } from './routing.ts';
import type { ActivationRows, RowSink } from './rows.ts';
import { placeOf, ROUTING, stageOf, withoutLayer } from './stages.ts';

/** Where the other run's values come from. */
export interface ReferenceTensors {
  /**
   * The rows of the same activation at the same positions; undefined when the reference lacks it.
   * @throws AprError when it has another shape there
   */
  rows(like: ActivationRows): Float32Array | undefined;
}

export interface Thresholds {
  /** Least cosine. */
  readonly cosine: number;
  /** Largest ‖value − reference‖ / ‖reference‖: a scaled activation keeps its cosine. */
  readonly relativeL2: number;
}

/** One activation over all traced rows. */
export interface PlaceComparison {
  readonly layer: number | null;
  readonly stage: string;
  readonly activation: string;
  /** Null when no value is finite in both. */
  readonly cosine: number | null;
  /** Null too when the reference is zero and this is not. */
  readonly relative_l2: number | null;
  readonly max_difference: number | null;
  /** The two values at the largest difference. */
  readonly value: number | null;
  readonly reference: number | null;
  readonly count: number;
  /** Values that are finite in one of the two only. */
  readonly not_finite: number;
  readonly diverged: boolean;
}

export interface ComparisonReport {
  readonly threshold: number;
  readonly max_l2: number;
  readonly first_divergence: PlaceComparison | null;
  /** One sentence. */
  readonly message: string;
  /** In the order in which they were computed. */
  readonly places: readonly PlaceComparison[];
  /** Activations that the reference lacks. */
  readonly missing: readonly string[];
}

interface Sums {
  readonly name: string;
  readonly layer: number | undefined;
  dot: number;
  aa: number;
  bb: number;
  squares: number;
  largest: number;
  value: number;
  reference: number;
  count: number;
  oneSided: number;
  finite: number;
}

export class Comparison implements RowSink {
  readonly #reference: ReferenceTensors;
  readonly #thresholds: Thresholds;
  readonly #sums = new Map<string, Sums>();
  readonly #missing = new Set<string>();

  constructor(reference: ReferenceTensors, thresholds: Thresholds) {
    this.#reference = reference;
    this.#thresholds = thresholds;
  }

  take(rows: ActivationRows): void {
    const { name, layer, values, width } = rows;
    const other = this.#reference.rows(rows);
    if (other === undefined) {
      this.#missing.add(name);
      return;
    }
    if (other.length !== values.length) throw shapesDiffer(name, other.length, values.length);
    const empty = { dot: 0, aa: 0, bb: 0, squares: 0, largest: -1, value: 0, reference: 0 };
    const sums = this.#sums.get(name) ?? { name, layer, ...empty, count: 0, oneSided: 0, finite: 0 };
    this.#sums.set(name, sums);
    if (withoutLayer(name) !== ROUTING) {
      addPairs(sums, values, other);
      return;
    }
    for (let at = 0; at < values.length; at += width) {
      const [mine, theirs] = byExpert(values.subarray(at, at + width), other.subarray(at, at + width));
      addPairs(sums, mine, theirs);
    }
  }

  /** @throws AprError CONTRACT when nothing could be compared */
  report(): ComparisonReport {
    const places = [...this.#sums.values()].map((sums) => this.#place(sums));
    if (places.length === 0) {
      const first = [...this.#missing][0] ?? 'any activation';
      throw new AprError('CONTRACT', `the reference holds none of the activations to compare, such as ${first}`);
    }
    const { cosine, relativeL2 } = this.#thresholds;
    const first = places.find(({ diverged }) => diverged) ?? null;
    return {
      threshold: cosine,
      max_l2: relativeL2,
      first_divergence: first,
      message: first === null ? agreement(places, this.#thresholds) : divergence(first, this.#thresholds),
      places,
      missing: [...this.#missing],
    };
  }

  #place(sums: Sums): PlaceComparison {
    const { name, layer, dot, aa, bb, squares, largest, count, oneSided, finite } = sums;
    const { cosine: least, relativeL2: most } = this.#thresholds;
    const zero = aa === 0 && bb === 0;
    const dotted = Math.max(-1, Math.min(1, dot / Math.sqrt(aa) / Math.sqrt(bb)));
    // Equal vectors have a cosine of exactly 1, whatever rounding makes of it.
    const cosine = squares === 0 ? 1 : aa === 0 || bb === 0 ? 0 : dotted;
    const relative = zero ? 0 : Math.sqrt(squares) / Math.sqrt(bb);
    const known = finite > 0;
    return {
      layer: layer ?? null,
      stage: stageOf(name)?.name ?? withoutLayer(name),
      activation: name,
      cosine: known ? cosine : null,
      relative_l2: known && Number.isFinite(relative) ? relative : null,
      max_difference: known ? largest : null,
      value: known ? sums.value : null,
      reference: known ? sums.reference : null,
      count,
      not_finite: oneSided,
      diverged: oneSided > 0 || (known && (cosine < least || relative > most)),
    };
  }
}

/** What a reference has in another shape cannot be held against this. */
export function shapesDiffer(name: string, found: number | string, expected: number | string): AprError {
  const message = `the reference's ${name} has ${found} values, expected ${expected}: it is no model of the same shape`;
  return new AprError('CONTRACT', message, { activation: name, found, expected });
}

function addPairs(sums: Sums, values: Float32Array, others: Float32Array): void {
  for (let i = 0; i < values.length; i++) {
    const a = values[i]!;
    const b = others[i]!;
    if (!Number.isFinite(a) || !Number.isFinite(b)) {
      if (!Object.is(a, b)) sums.oneSided++;
      continue;
    }
    const difference = a - b;
    sums.finite++;
    sums.dot += a * b;
    sums.aa += a * a;
    sums.bb += b * b;
    sums.squares += difference * difference;
    if (Math.abs(difference) <= sums.largest) continue;
    sums.largest = Math.abs(difference);
    sums.value = a;
    sums.reference = b;
  }
  sums.count += values.length;
}

/** Weights of two choices of experts, expert by expert: the slots of equal experts may differ. */
function byExpert(mine: Float32Array, theirs: Float32Array): [Float32Array, Float32Array] {
  const choices = [choiceOf(mine), choiceOf(theirs)] as const;
  const ids = [...new Set(choices.flatMap((choice) => [...choice.ids]))];
  const weigh = ({ ids: own, weights }: (typeof choices)[0]): Float32Array =>
    Float32Array.from(ids, (id) => weights[own.indexOf(id)] ?? 0);
  return [weigh(choices[0]), weigh(choices[1])];
}

function divergence(place: PlaceComparison, { cosine, relativeL2 }: Thresholds): string {
  const where = `${placeOf(place.activation, place.layer ?? undefined)} (${place.activation})`;
  if (place.not_finite > 0) {
    return `${where} is where the two part first: ${place.not_finite} of ${place.count} values are finite in one of them only`;
  }
  const reasons = [
    ...(place.cosine! < cosine ? [`its cosine is ${digits(place.cosine!, cosine)}, expected at least ${cosine}`] : []),
    ...(place.relative_l2 === null || place.relative_l2 > relativeL2
      ? [
          `its relative L2 difference is ${place.relative_l2?.toPrecision(3) ?? 'infinite'}, expected at most ${relativeL2}`,
        ]
      : []),
  ];
  return `${where} is where the two part first: ${reasons.join(', and ')}`;
}

/** Five digits, or as many as tell the value from what was expected. */
function digits(value: number, expected: number): string {
  const short = value.toFixed(5);
  return Number(short) < expected ? short : String(value);
}

function agreement(places: readonly PlaceComparison[], { cosine, relativeL2 }: Thresholds): string {
  const least = places.reduce((a, b) => ((b.cosine ?? 1) < (a.cosine ?? 1) ? b : a));
  return (
    `no divergence in ${places.length} activations: every cosine is at least ${cosine} and every relative L2 difference ` +
    `at most ${relativeL2}; the least cosine is ${(least.cosine ?? 1).toFixed(5)}, ` +
    `${placeOf(least.activation, least.layer ?? undefined)}`
  );
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
