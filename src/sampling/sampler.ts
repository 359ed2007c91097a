/** From logits to a token. */

import type { SamplingOptions } from '../engine.ts';
import { AprError } from '../errors.ts';
import { validateSampling } from './options.ts';
import { Random } from './random.ts';
import { greatest, sortedByValue, topIds } from './top.ts';

export interface Sampler {
  /** What determines the draws, also where none was given. */
  readonly seed: number;
  /** Takes a token of the prompt or of the answer into the history that the repeat penalty looks at. */
  accept(token: number): void;
  /**
   * Draws a token; the logits stay as they are.
   * @param logits [vocabularySize]
   * @throws AprError INFERENCE when a logit is NaN or infinite
   */
  sample(logits: Float32Array): number;
}

/**
 * The sampler of one request. The order is llama.cpp's: repeat penalty, top-k, top-p, min-p, temperature, draw; so
 * top-p and min-p judge the probabilities before the temperature changes them.
 * @throws AprError USAGE naming the option
 */
export function createSampler(options: SamplingOptions): Sampler {
  return new ChainSampler(options);
}

class ChainSampler implements Sampler {
  readonly seed: number;
  readonly #options: ReturnType<typeof validateSampling>;
  readonly #random: Random;
  readonly #history: History;
  /** Logits with the penalty. */
  #penalised = new Float32Array();
  /** Weights of the candidates. */
  #weights = new Float64Array();

  constructor(options: SamplingOptions) {
    this.#options = validateSampling(options);
    this.seed = this.#options.seed;
    this.#random = new Random(this.seed);
    this.#history = new History(this.#options.repeatPenalty === 1 ? 0 : this.#options.repeatLastN);
  }

  accept(token: number): void {
    this.#history.push(token);
  }

  sample(logits: Float32Array): number {
    const values = this.#penalise(logits);
    const best = greatest(values);
    if (best < 0) throw badLogits(values);
    if (this.#options.temperature === 0) return best;
    return this.#draw(values, this.#candidates(values, values[best]!), values[best]!);
  }

  /** Repeated tokens become less probable: their positive logits are divided, the others multiplied. */
  #penalise(logits: Float32Array): Float32Array {
    const tokens = this.#history.tokens();
    const { repeatPenalty } = this.#options;
    if (tokens === undefined) return logits;
    if (this.#penalised.length !== logits.length) this.#penalised = new Float32Array(logits.length);
    this.#penalised.set(logits);
    for (const token of tokens) {
      const logit = this.#penalised[token];
      if (logit !== undefined) this.#penalised[token] = logit > 0 ? logit / repeatPenalty : logit * repeatPenalty;
    }
    return this.#penalised;
  }

  /** Ids that top-k, top-p and min-p leave; undefined for all. */
  #candidates(values: Float32Array, most: number): Int32Array | undefined {
    const { topK, topP, minP } = this.#options;
    // Both top-p and min-p keep the best so many, so that it does not matter which goes first, as long as top-p sums
    // over what top-k left.
    const minimum = minP > 0 ? most + Math.log(minP) : Number.NEGATIVE_INFINITY;
    const sorted = topK > 0 && topK < values.length ? topIds(values, topK) : undefined;
    if (topP >= 1) {
      if (minP === 0) return sorted;
      return sorted?.filter((id) => values[id]! >= minimum) ?? idsFrom(values, minimum);
    }
    const total = sumOfExp(values, sorted, most);
    if (sorted !== undefined) return nucleus(values, sorted, most, topP * total, minimum) ?? sorted;
    // Most often a few tokens are enough, and no more need to be put in order.
    for (let count = 64; count * 8 < values.length; count *= 8) {
      const few = nucleus(values, topIds(values, count), most, topP * total, minimum);
      if (few !== undefined) return few;
    }
    // Tokens below this share together have less than 1 - p: the nucleus never reaches them.
    const least = most + Math.log(((1 - topP) * total) / values.length) - 1e-6;
    const ordered = sortedByValue(idsFrom(values, Math.max(least, minimum)), values);
    return nucleus(values, ordered, most, topP * total, minimum) ?? ordered;
  }

  #draw(values: Float32Array, ids: Int32Array | undefined, most: number): number {
    const count = ids?.length ?? values.length;
    if (this.#weights.length < count) this.#weights = new Float64Array(count);
    const weights = this.#weights;
    const { temperature } = this.#options;
    let total = 0;
    for (let index = 0; index < count; index++) {
      const weight = Math.exp((values[ids === undefined ? index : ids[index]!]! - most) / temperature);
      weights[index] = weight;
      total += weight;
    }
    let left = this.#random.uniform() * total;
    let chosen = -1;
    for (let index = 0; index < count; index++) {
      const weight = weights[index]!;
      if (weight === 0) continue;
      // Rounding may leave a rest behind the last one.
      chosen = index;
      left -= weight;
      if (left < 0) break;
    }
    return ids === undefined ? chosen : ids[chosen]!;
  }
}

/**
 * The first of `ordered` whose weights reach `wanted`, cut where values fall below `minimum`; undefined when they do
 * not reach it.
 */
function nucleus(
  values: Float32Array,
  ordered: Int32Array,
  most: number,
  wanted: number,
  minimum: number,
): Int32Array | undefined {
  let sum = 0;
  for (let kept = 0; kept < ordered.length; kept++) {
    const value = values[ordered[kept]!]!;
    if (kept > 0 && (sum >= wanted || value < minimum)) return ordered.subarray(0, kept);
    sum += Math.exp(value - most);
  }
  return sum >= wanted ? ordered : undefined;
}

function sumOfExp(values: Float32Array, ids: Int32Array | undefined, most: number): number {
  let total = 0;
  if (ids === undefined) for (const value of values) total += Math.exp(value - most);
  else for (const id of ids) total += Math.exp(values[id]! - most);
  return total;
}

/** Ids whose value is at least that, ascending. */
function idsFrom(values: Float32Array, least: number): Int32Array {
  let count = 0;
  for (const value of values) if (value >= least) count++;
  const ids = new Int32Array(count);
  for (let id = 0, at = 0; id < values.length; id++) if (values[id]! >= least) ids[at++] = id;
  return ids;
}

function badLogits(values: Float32Array): AprError {
  const id = values.findIndex((value) => Number.isNaN(value) || value === Number.POSITIVE_INFINITY);
  const found = id < 0 ? 'no logit is finite' : `the logit of token ${id} is ${values[id]}`;
  return new AprError('INFERENCE', `${found}, expected finite numbers; the model file may be damaged`, { token: id });
}

/** The last so many tokens; -1 keeps all. */
class History {
  readonly #limit: number;
  readonly #counts = new Map<number, number>();
  readonly #recent: number[] = [];
  #oldest = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(token: number): void {
    if (this.#limit === 0) return;
    this.#counts.set(token, (this.#counts.get(token) ?? 0) + 1);
    if (this.#limit < 0) return;
    if (this.#recent.length < this.#limit) {
      this.#recent.push(token);
      return;
    }
    const dropped = this.#recent[this.#oldest]!;
    this.#recent[this.#oldest] = token;
    this.#oldest = (this.#oldest + 1) % this.#limit;
    const count = this.#counts.get(dropped)! - 1;
    if (count === 0) this.#counts.delete(dropped);
    else this.#counts.set(dropped, count);
  }

  /** Each token once; undefined when there is none. */
  tokens(): Iterable<number> | undefined {
    return this.#counts.size === 0 ? undefined : this.#counts.keys();
  }
}
