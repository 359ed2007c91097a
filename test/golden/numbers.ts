/** Arithmetic of the golden tests, apart from the code under test. */

/** Natural logarithms of the soft-max of one row of logits. */
export function logSoftMax(logits: Float32Array): Float64Array {
  let most = Number.NEGATIVE_INFINITY;
  for (const value of logits) most = Math.max(most, value);
  let sum = 0;
  for (const value of logits) sum += Math.exp(value - most);
  const offset = most + Math.log(sum);
  return Float64Array.from(logits, (value) => value - offset);
}

export function argmax(row: Float64Array | Float32Array): number {
  let best = 0;
  for (let i = 1; i < row.length; i++) if (row[i]! > row[best]!) best = i;
  return best;
}

export function cosine(a: Float32Array, b: Float32Array): number {
  let [dot, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    dot += a[i]! * b[i]!;
    aa += a[i]! ** 2;
    bb += b[i]! ** 2;
  }
  return dot / Math.sqrt(aa * bb);
}

/** Rows of a matrix of logits. */
export function rowsOf(logits: Float32Array, width: number): Float32Array[] {
  return Array.from({ length: logits.length / width }, (_, row) => logits.subarray(row * width, (row + 1) * width));
}

/** The value below which that share of the sorted values lies. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
}
