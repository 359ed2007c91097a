/** The most probable tokens. */

/**
 * Ids of the `count` greatest values, greatest first, among equals the lower id first. Takes n log count steps.
 * @param values holds no NaN
 */
export function topIds(values: Float32Array, count: number): Int32Array {
  const size = Math.min(count, values.length);
  // A heap whose first is the worst of the best so far.
  const heap = new Int32Array(size);
  const worse = (a: number, b: number): boolean => values[a]! < values[b]! || (values[a] === values[b] && a > b);
  let length = 0;
  for (let id = 0; id < values.length; id++) {
    if (length < size) {
      let index = length++;
      while (index > 0 && worse(id, heap[(index - 1) >> 1]!)) {
        heap[index] = heap[(index - 1) >> 1]!;
        index = (index - 1) >> 1;
      }
      heap[index] = id;
    } else if (size > 0 && values[id]! > values[heap[0]!]!) {
      let index = 0;
      for (;;) {
        let child = index * 2 + 1;
        if (child >= size) break;
        if (child + 1 < size && worse(heap[child + 1]!, heap[child]!)) child++;
        if (!worse(heap[child]!, id)) break;
        heap[index] = heap[child]!;
        index = child;
      }
      heap[index] = id;
    }
  }
  return sortedByValue(heap, values);
}

/** The ids, greatest value first, among equals the lower id first. Sorts in place. */
export function sortedByValue(ids: Int32Array, values: Float32Array): Int32Array {
  return ids.sort((a, b) => values[b]! - values[a]! || a - b);
}

/** Id of the greatest value, among equals the lowest; -1 when one of them is no logit (NaN or +Infinity) or none is finite. */
export function greatest(values: Float32Array): number {
  let best = -1;
  let most = Number.NEGATIVE_INFINITY;
  let finite = true;
  for (let id = 0; id < values.length; id++) {
    const value = values[id]!;
    if (value > most) {
      most = value;
      best = id;
    }
    // Also false for NaN.
    finite &&= value < Number.POSITIVE_INFINITY;
  }
  return finite ? best : -1;
}
