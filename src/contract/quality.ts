/**
 * Statistics of a tensor's data, and what they must fulfil. Limits are those of apr's data-quality rules
 * (F-DATA-QUALITY-001 to -005).
 */

import type { Finding } from './finding.ts';

/** `error` makes a file invalid, `warning` does not. */
export interface QualityFinding extends Finding {
  readonly severity: 'error' | 'warning';
}

export interface TensorQuality {
  readonly name: string;
  readonly type: string;
  /** ggml order: row length first. */
  readonly shape: readonly number[];
  readonly count: number;
  readonly nan: number;
  readonly infinite: number;
  readonly zeros: number;
  /** Of the finite values; 0 where there are none. */
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  /** Square root of the sum of squares. */
  readonly l2_norm: number;
  /** Rows of zeros only, counted where a row is a token. */
  readonly dead_rows?: number;
}

/** Share of zeros that an embedding, and any other matrix, may have. */
const MAX_ZEROS_EMBEDDING = 0.5;
const MAX_ZEROS_MATRIX = 0.8;
/** Share of the vocabulary whose rows may be zeros: files pad their vocabularies. */
const MAX_DEAD_ROWS = 0.25;

/** Matrices with a row for each token. */
const VOCABULARY_ROWS: ReadonlySet<string> = /* @__PURE__ */ new Set(['token_embd.weight', 'output.weight']);

/** Adds up a tensor that comes in stretches. */
export class QualityCounter {
  readonly #tensor: { readonly name: string; readonly type: string; readonly shape: readonly number[] };
  readonly #width: number;
  readonly #rowsAreTokens: boolean;
  #count = 0;
  #nan = 0;
  #infinite = 0;
  #zeros = 0;
  #min = Number.POSITIVE_INFINITY;
  #max = Number.NEGATIVE_INFINITY;
  #sum = 0;
  #squares = 0;
  #deadRows = 0;
  /** Values seen of the row that is being added, and zeros among them. */
  #column = 0;
  #rowZeros = 0;

  constructor(tensor: { readonly name: string; readonly type: string; readonly shape: readonly number[] }) {
    this.#tensor = tensor;
    this.#width = tensor.shape[0] ?? 1;
    this.#rowsAreTokens = VOCABULARY_ROWS.has(tensor.name);
  }

  add(values: Float32Array): void {
    this.#count += values.length;
    for (const value of values) {
      if (value === 0) {
        this.#zeros++;
        this.#rowZeros++;
      }
      if (Number.isFinite(value)) {
        if (value < this.#min) this.#min = value;
        if (value > this.#max) this.#max = value;
        this.#sum += value;
        this.#squares += value * value;
      } else if (Number.isNaN(value)) this.#nan++;
      else this.#infinite++;
      if (++this.#column < this.#width) continue;
      if (this.#rowZeros === this.#width) this.#deadRows++;
      this.#column = 0;
      this.#rowZeros = 0;
    }
  }

  result(): TensorQuality {
    const finite = this.#count - this.#nan - this.#infinite;
    return {
      ...this.#tensor,
      count: this.#count,
      nan: this.#nan,
      infinite: this.#infinite,
      zeros: this.#zeros,
      min: finite > 0 ? this.#min : 0,
      max: finite > 0 ? this.#max : 0,
      mean: finite > 0 ? this.#sum / finite : 0,
      l2_norm: Math.sqrt(this.#squares),
      ...(this.#rowsAreTokens ? { dead_rows: this.#deadRows } : {}),
    };
  }
}

/** What is wrong with the data of one tensor. */
export function qualityFindings(quality: TensorQuality): QualityFinding[] {
  const { name, count, nan, infinite, zeros, shape, dead_rows: deadRows } = quality;
  const findings: QualityFinding[] = [];
  const fail = (rule: string, found: string, expected: string): void => {
    findings.push({
      severity: 'error',
      rule: `F-DATA-QUALITY-${rule}`,
      tensor: name,
      found,
      expected,
      message: `tensor ${name} has ${found}, expected ${expected}`,
      obstacle: null,
    });
  };
  if (count === 0) return findings;
  if (nan > 0) fail('002', `${nan} NaN values of ${count}`, 'none');
  if (infinite > 0) fail('002', `${infinite} infinite values of ${count}`, 'none');
  // A bias may well be zero.
  if (name.endsWith('.bias')) return findings;
  if (zeros === count) {
    fail('003', 'zeros only', 'values of a trained model');
    return findings;
  }
  if (shape.length < 2) return findings;
  if (nan + infinite === 0 && quality.min === quality.max) fail('003', `${quality.min} everywhere`, 'different values');
  const most = name === 'token_embd.weight' ? MAX_ZEROS_EMBEDDING : MAX_ZEROS_MATRIX;
  if (zeros > most * count) fail('001', `${percent(zeros / count)} zeros`, `at most ${percent(most)}`);
  const rows = count / (shape[0] ?? 1);
  if (deadRows !== undefined && deadRows > MAX_DEAD_ROWS * rows) {
    fail('005', `${deadRows} rows of zeros only, of ${rows} tokens`, `less than ${percent(MAX_DEAD_ROWS)}`);
  }
  return findings;
}

/** Two matrices of the same bytes. Layers are repeated on purpose in some merged models, so it is a warning. */
export function duplicateFinding(first: string, second: string): QualityFinding {
  return {
    severity: 'warning',
    rule: 'TENSOR-DUPLICATE',
    tensor: second,
    found: `the bytes of ${first}`,
    expected: 'data of its own',
    message: `tensor ${second} has the same bytes as ${first}`,
    obstacle: null,
  };
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1).replace(/\.0$/, '')} %`;
}
