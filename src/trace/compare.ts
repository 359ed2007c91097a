/** Two runs of the same tokens held against each other, activation by activation. */

import { AprError } from '../errors.ts';
import { type ReferenceTensors, shapesDiffer } from './reference.ts';
import { type Choice, choiceOf } from './routing.ts';
import type { ActivationRows, RowSink } from './rows.ts';
import { placeOf, ROUTING, stageOf, withoutLayer } from './stages.ts';

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
  /** Values that are not finite in one of the two at least, and not alike: NaN and 1, or an infinity of each sign. */
  readonly not_finite: number;
  /** Of the router's choice: tokens for which other experts were chosen. */
  readonly other_experts?: number;
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
  notAlike: number;
  finite: number;
  otherExperts: number;
}

export class Comparison implements RowSink {
  readonly #reference: ReferenceTensors;
  readonly #thresholds: Thresholds;
  readonly #sums = new Map<string, Sums>();
  readonly #missing = new Set<string>();
  /** By layer, for the tokens whose choice came last: the reference's slot for each of this run's. */
  readonly #slots = new Map<
    number,
    { readonly firstPosition: number; readonly slots: readonly (readonly number[])[] }
  >();

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
    const sums = this.#sums.get(name) ?? { name, layer, ...empty, count: 0, notAlike: 0, finite: 0, otherExperts: 0 };
    this.#sums.set(name, sums);
    if (withoutLayer(name) !== ROUTING) {
      addPairs(sums, values, this.#aligned(rows, other));
      return;
    }
    this.align(rows);
    for (let at = 0; at < values.length; at += width) {
      const choice = byExpert(values.subarray(at, at + width), other.subarray(at, at + width));
      addPairs(sums, choice.mine, choice.theirs);
      if (choice.differ) sums.otherExperts++;
    }
  }

  /**
   * Notes which slots hold the same experts in both, from the router's choice: two experts of almost the same weight may
   * stand in either order. What experts compute is then compared expert by expert.
   */
  align(choices: ActivationRows): void {
    const { layer, firstPosition, tokens, values, width } = choices;
    const other = this.#reference.rows(choices);
    if (layer === undefined || other?.length !== values.length) return;
    const slots = Array.from({ length: tokens }, (_, token) => {
      const [mine, theirs] = [values, other].map(
        (all) => choiceOf(all.subarray(token * width, (token + 1) * width)).ids,
      );
      return matchingSlots(mine!, theirs!);
    });
    this.#slots.set(layer, { firstPosition, slots });
  }

  /** The reference's rows in the order of this run's slots. */
  #aligned({ layer, firstPosition, tokens, perToken, width }: ActivationRows, other: Float32Array): Float32Array {
    const known = layer === undefined || perToken === 1 ? undefined : this.#slots.get(layer);
    if (known === undefined) return other;
    const out = other.slice();
    for (let token = 0; token < tokens; token++) {
      const from = known.slots[firstPosition + token - known.firstPosition];
      from?.forEach((theirs, mine) => {
        const [to, at] = [token * perToken + mine, token * perToken + theirs];
        out.set(other.subarray(at * width, (at + 1) * width), to * width);
      });
    }
    return out;
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
      message:
        (first === null ? agreement(places, this.#thresholds) : divergence(first, this.#thresholds)) +
        lack([...this.#missing], places.length),
      places,
      missing: [...this.#missing],
    };
  }

  #place(sums: Sums): PlaceComparison {
    const { name, layer, dot, aa, bb, squares, largest, count, notAlike, finite } = sums;
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
      not_finite: notAlike,
      ...(withoutLayer(name) === ROUTING ? { other_experts: sums.otherExperts } : {}),
      diverged: notAlike > 0 || (known && (cosine < least || relative > most)),
    };
  }
}

function addPairs(sums: Sums, values: Float32Array, others: Float32Array): void {
  for (let i = 0; i < values.length; i++) {
    const a = values[i]!;
    const b = others[i]!;
    if (!Number.isFinite(a) || !Number.isFinite(b)) {
      if (!Object.is(a, b)) sums.notAlike++;
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
function byExpert(
  mine: Float32Array,
  theirs: Float32Array,
): { readonly mine: Float32Array; readonly theirs: Float32Array; readonly differ: boolean } {
  const [own, others] = [choiceOf(mine), choiceOf(theirs)];
  const ids = [...new Set([...own.ids, ...others.ids])];
  const weigh = (choice: Choice): Float32Array =>
    Float32Array.from(ids, (id) => choice.weights[choice.ids.indexOf(id)] ?? 0);
  return { mine: weigh(own), theirs: weigh(others), differ: ids.length > own.ids.length };
}

/** For each of my slots theirs with the same expert; experts that only one has share the slots that are left. */
function matchingSlots(mine: Int32Array, theirs: Int32Array): number[] {
  const left = [...theirs.keys()].filter((slot) => !mine.includes(theirs[slot]!));
  return Array.from(mine, (id) => {
    const slot = theirs.indexOf(id);
    return slot === -1 ? (left.shift() as number) : slot;
  });
}

function divergence(place: PlaceComparison, { cosine, relativeL2 }: Thresholds): string {
  const where = `${placeOf(place.activation, place.layer ?? undefined)} (${place.activation})`;
  if (place.not_finite > 0) {
    return `${where} is where the two part first: ${place.not_finite} of ${place.count} values are not finite, and not alike in both`;
  }
  const reasons = [
    ...(place.cosine! < cosine ? [`its cosine is ${digits(place.cosine!, cosine)}, expected at least ${cosine}`] : []),
    ...(place.relative_l2 === null || place.relative_l2 > relativeL2
      ? [
          `its relative L2 difference is ${place.relative_l2?.toPrecision(3) ?? 'infinite'}, expected at most ${relativeL2}`,
        ]
      : []),
  ];
  const { other_experts = 0 } = place;
  const choice = other_experts > 0 ? `; other experts were chosen for ${other_experts} of the tokens` : '';
  return `${where} is where the two part first: ${reasons.join(', and ')}${choice}`;
}

/** Five digits, or as many as tell the value from what was expected. */
function digits(value: number, expected: number): string {
  const short = value.toFixed(5);
  return Number(short) < expected ? short : String(value);
}

function agreement(places: readonly PlaceComparison[], { cosine, relativeL2 }: Thresholds): string {
  const judged = places.filter((place) => place.cosine !== null);
  if (judged.length === 0) return `no divergence in ${places.length} activations, but no value in them is finite`;
  const least = judged.reduce((a, b) => (b.cosine! < a.cosine! ? b : a));
  return (
    `no divergence in ${places.length} activations: every cosine is at least ${cosine} and every relative L2 difference ` +
    `at most ${relativeL2}; the least cosine is ${least.cosine!.toFixed(5)}, ` +
    `${placeOf(least.activation, least.layer ?? undefined)}`
  );
}

/** What was not compared may be where the two part. */
function lack(missing: readonly string[], compared: number): string {
  if (missing.length === 0) return '';
  return `; the reference lacks ${missing.length} of ${compared + missing.length} activations, the first is ${missing[0]}`;
}
