import { floatToHalf, halfToFloat } from '../../src/backends/half.ts';
import { type Build, createBench, floatBits, type KernelBench, randomFloats } from './ops-fixtures.ts';

export interface AttentionCase {
  readonly headCount: number;
  readonly headCountKv: number;
  readonly headDim: number;
  readonly headDimV: number;
  readonly context: number;
  /** Positions that a row sees; 0 or absent for all. */
  readonly window?: number;
  /** Bound of a soft cap on the scores; absent for none. */
  readonly softCap?: number;
  /** Positions stored in each sequence's cache. */
  readonly stored: readonly number[];
  /** Rows of the pass. */
  readonly rows: readonly { readonly sequence: number; readonly position: number }[];
}

export interface AttentionData {
  /** [sequence][position][headCountKv · headDim]. */
  readonly k: readonly Float32Array[];
  readonly v: readonly Float32Array[];
  /** [rows][headCount · headDim]. */
  readonly q: Float32Array;
  readonly scale: number;
}

export function randomData(shape: AttentionCase, seed = 1): AttentionData {
  const { headCount, headCountKv, headDim, headDimV, stored, rows } = shape;
  return {
    k: stored.map((count, s) => randomFloats(count * headCountKv * headDim, seed + 10 * s, 2)),
    v: stored.map((count, s) => randomFloats(count * headCountKv * headDimV, seed + 10 * s + 5)),
    q: randomFloats(rows.length * headCount * headDim, seed + 3, 2),
    scale: Math.fround(1 / Math.sqrt(headDim)),
  };
}

/** A bench whose cache holds the case's keys and values. */
export class AttentionBench {
  readonly bench: KernelBench;
  readonly #shape: AttentionCase;
  readonly #kCache: number;
  readonly #vCache: number;
  readonly #scratch: number;
  readonly #q: number;
  readonly #places: readonly number[];
  readonly #scale: number;

  private constructor(bench: KernelBench, shape: AttentionCase, data: AttentionData) {
    const { headCount, headCountKv, headDim, headDimV, context, stored, rows } = shape;
    this.bench = bench;
    this.#shape = shape;
    this.#kCache = bench.reserve(stored.length * bench.call('k_cache_bytes', context, headCountKv, headDim));
    this.#vCache = bench.reserve(stored.length * bench.call('v_cache_bytes', context, headCountKv, headDimV));
    this.#scratch = bench.reserve(
      bench.call('attention_scratch_bytes', headDim, headDimV, headCount / headCountKv, context),
    );
    this.#q = bench.floats(data.q);
    this.#places = [bench.ints(rows.map((row) => row.position)), bench.ints(rows.map((row) => row.sequence))];
    this.#scale = floatBits(data.scale);
    stored.forEach((count, sequence) => {
      const positions = Array.from({ length: count }, (_, i) => i);
      this.store(data.k[sequence]!, data.v[sequence]!, positions, sequence);
    });
  }

  static async create(shape: AttentionCase, data: AttentionData, build?: Build): Promise<AttentionBench | undefined> {
    const bench = await createBench(build, 768);
    return bench && new AttentionBench(bench, shape, data);
  }

  store(k: Float32Array, v: Float32Array, positions: readonly number[], sequence: number): void {
    const { bench } = this;
    const { headCountKv, headDim, headDimV, context } = this.#shape;
    const args = [
      bench.floats(k),
      bench.floats(v),
      this.#kCache,
      this.#vCache,
      bench.ints(positions),
      bench.ints(positions.map(() => sequence)),
    ];
    bench.call('store_kv', 0, positions.length, 0, ...args, headCountKv, headDim, headDimV, context);
  }

  /** The form for many rows, its items one by one in the order given by `order`. */
  whole(order: 'all' | 'single' = 'all'): Float32Array {
    const { bench } = this;
    const { headCount, headCountKv, headDimV, context, rows } = this.#shape;
    const items = headCountKv * Math.ceil(rows.length / bench.call('attention_rows', context, headCount / headCountKv));
    const count = rows.length * headCount * headDimV;
    const dst = bench.reserve(count * 4);
    const args = [dst, this.#q, this.#kCache, this.#vCache, ...this.#places, ...this.#sizes(), this.#scale];
    this.#items('attention', items, order, [...args, this.#window(), this.#cap()]);
    return bench.read(dst, count).slice();
  }

  /** The form for few rows. */
  split(order: 'all' | 'single' = 'all'): Float32Array {
    const { bench } = this;
    const { headCount, headCountKv, headDimV, context, rows } = this.#shape;
    const partial = bench.reserve(bench.call('attention_partial_bytes', rows.length, headCount, context, headDimV));
    const count = rows.length * headCount * headDimV;
    const dst = bench.reserve(count * 4);
    const items = rows.length * headCountKv * Math.ceil(context / bench.constant('ATTENTION_CHUNK'));
    const sizes = [...this.#sizes(), this.#window()];
    const scores = [partial, this.#q, this.#kCache, ...this.#places, ...sizes, this.#scale, this.#cap()];
    this.#items('attention_scores', items, order, scores);
    this.#items('attention_values', items, order, [partial, this.#vCache, ...this.#places, ...sizes]);
    const merge = [dst, partial, this.#places[0]!, rows.length, headCount, headCountKv, headDimV, context];
    this.#items('attention_merge', rows.length * headCount, order, [...merge, this.#window()]);
    return bench.read(dst, count).slice();
  }

  #window(): number {
    return this.#shape.window ?? 0;
  }

  #cap(): number {
    return floatBits(this.#shape.softCap ?? 0);
  }

  #sizes(): number[] {
    const { headCount, headCountKv, headDim, headDimV, context, rows } = this.#shape;
    return [rows.length, headCount, headCountKv, headDim, headDimV, context];
  }

  #items(kernel: string, items: number, order: 'all' | 'single', args: readonly number[]): void {
    if (order === 'all') this.bench.call(kernel, 0, items, this.#scratch, ...args);
    else for (let item = items - 1; item >= 0; item--) this.bench.call(kernel, item, item + 1, this.#scratch, ...args);
  }
}

export interface Twin {
  readonly values: Float64Array;
  /** What each value may differ by because a weight lies between two halves, too near the middle for f32 to tell. */
  readonly slack: Float64Array;
}

const toHalf = (value: number): number => halfToFloat(floatToHalf(value));

/** The same in f64, with what ggml rounds to binary16 rounded: keys, values, queries, and the normalised weights. */
export function attentionTwin(shape: AttentionCase, data: AttentionData): Twin {
  const { headCount, headCountKv, headDim, headDimV, rows } = shape;
  const out = new Float64Array(rows.length * headCount * headDimV);
  const slack = new Float64Array(out.length);
  rows.forEach(({ sequence, position }, row) => {
    const k = data.k[sequence]!.map(toHalf);
    const v = data.v[sequence]!.map(toHalf);
    const first = shape.window ? Math.max(0, position + 1 - shape.window) : 0;
    for (let head = 0; head < headCount; head++) {
      const kvHead = Math.floor(head / (headCount / headCountKv));
      const query = (row * headCount + head) * headDim;
      const q = data.q.slice(query, query + headDim).map(toHalf);
      const scores: number[] = [];
      for (let p = first; p <= position; p++) {
        let sum = 0;
        for (let i = 0; i < headDim; i++) sum += q[i]! * k[(p * headCountKv + kvHead) * headDim + i]!;
        const score = sum * data.scale;
        scores.push(shape.softCap ? shape.softCap * Math.tanh(score / shape.softCap) : score);
      }
      const largest = scores.reduce((a, b) => Math.max(a, b));
      const powers = scores.map((score) => Math.exp(score - largest));
      const total = powers.reduce((a, b) => a + b, 0);
      const weights = powers.map((power) => toHalf(power / total));
      const doubts = powers.map((power) => toHalf((power / total) * (1 + 3e-6)) - toHalf((power / total) * (1 - 3e-6)));
      for (let i = 0; i < headDimV; i++) {
        let sum = 0;
        let doubt = 0;
        for (let p = first; p <= position; p++) {
          const value = v[(p * headCountKv + kvHead) * headDimV + i]!;
          sum += weights[p - first]! * value;
          doubt += doubts[p - first]! * Math.abs(value);
        }
        out[(row * headCount + head) * headDimV + i] = sum;
        slack[(row * headCount + head) * headDimV + i] = doubt;
      }
    }
  });
  return { values: out, slack };
}
