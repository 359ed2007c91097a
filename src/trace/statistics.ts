/** What the values of an activation look like, in nine numbers. */

/** Of the finite values, but for the counts; null where there is no finite value. The keys are those of the JSON. */
export interface Statistics {
  readonly min: number | null;
  readonly max: number | null;
  readonly mean: number | null;
  /** Standard deviation of these very values: the square root of the mean squared distance from the mean. */
  readonly std: number | null;
  /** Square root of the sum of squares. */
  readonly l2: number | null;
  readonly nan_count: number;
  readonly inf_count: number;
  readonly zero_count: number;
  /** All values, those that are not finite included. */
  readonly count: number;
}

/** Takes values piece by piece, each once, and sums in f64. */
export class StatisticsCounter {
  #min = Number.POSITIVE_INFINITY;
  #max = Number.NEGATIVE_INFINITY;
  #sum = 0;
  #squares = 0;
  /** First finite value: squares of distances from it do not cancel out as those from 0 would. */
  #origin = Number.NaN;
  #shifted = 0;
  #shiftedSquares = 0;
  #nan = 0;
  #infinite = 0;
  #zero = 0;
  #count = 0;

  /** Adds the values `from … to` of `values`. */
  add(values: ArrayLike<number>, from = 0, to: number = values.length): this {
    let [min, max, sum, squares] = [this.#min, this.#max, this.#sum, this.#squares];
    let [origin, shifted, shiftedSquares] = [this.#origin, this.#shifted, this.#shiftedSquares];
    let [nan, infinite, zero] = [0, 0, 0];
    for (let i = from; i < to; i++) {
      const value = values[i] as number;
      // Infinity and NaN alone leave something when taken from themselves.
      if (value - value !== 0) {
        if (Number.isNaN(value)) nan++;
        else infinite++;
        continue;
      }
      if (value === 0) zero++;
      if (value < min) min = value;
      if (value > max) max = value;
      sum += value;
      squares += value * value;
      if (Number.isNaN(origin)) origin = value;
      const distance = value - origin;
      shifted += distance;
      shiftedSquares += distance * distance;
    }
    [this.#min, this.#max, this.#sum, this.#squares] = [min, max, sum, squares];
    [this.#origin, this.#shifted, this.#shiftedSquares] = [origin, shifted, shiftedSquares];
    this.#nan += nan;
    this.#infinite += infinite;
    this.#zero += zero;
    this.#count += to - from;
    return this;
  }

  result(): Statistics {
    const finite = this.#count - this.#nan - this.#infinite;
    const counts = {
      nan_count: this.#nan,
      inf_count: this.#infinite,
      zero_count: this.#zero,
      count: this.#count,
    };
    if (finite === 0) return { min: null, max: null, mean: null, std: null, l2: null, ...counts };
    const offset = this.#shifted / finite;
    const variance = Math.max(0, this.#shiftedSquares / finite - offset * offset);
    return {
      min: this.#min,
      max: this.#max,
      mean: this.#sum / finite,
      std: Math.sqrt(variance),
      l2: Math.sqrt(this.#squares),
      ...counts,
    };
  }
}

/** Statistics of the values `from … to`. */
export function statisticsOf(values: ArrayLike<number>, from?: number, to?: number): Statistics {
  return new StatisticsCounter().add(values, from, to).result();
}

/** Statistics of all the values that the given ones are of. */
export function mergeStatistics(parts: readonly Statistics[]): Statistics {
  const count = (of: (part: Statistics) => number): number => parts.reduce((sum, part) => sum + of(part), 0);
  const counts = {
    nan_count: count((part) => part.nan_count),
    inf_count: count((part) => part.inf_count),
    zero_count: count((part) => part.zero_count),
    count: count((part) => part.count),
  };
  const finite = counts.count - counts.nan_count - counts.inf_count;
  if (finite === 0) return { min: null, max: null, mean: null, std: null, l2: null, ...counts };
  const weigh = (of: (part: Statistics) => number): number =>
    count((part) => (part.mean === null ? 0 : of(part) * (part.count - part.nan_count - part.inf_count))) / finite;
  const mean = weigh((part) => part.mean!);
  const known = parts.filter((part) => part.mean !== null);
  return {
    min: Math.min(...known.map((part) => part.min!)),
    max: Math.max(...known.map((part) => part.max!)),
    mean,
    std: Math.sqrt(weigh((part) => part.std! ** 2 + (part.mean! - mean) ** 2)),
    l2: Math.hypot(...known.map((part) => part.l2!)),
    ...counts,
  };
}
