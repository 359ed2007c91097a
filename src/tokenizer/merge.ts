/**
 * Merging neighbours, the most wanted pair first: the core of both BPE and SentencePiece. A doubly linked list of
 * symbols and a heap of candidate pairs make it n log n.
 */

/** Which pairs there are. A pair has a number that says what the two become. */
export interface PairRule {
  /** Number of the pair that two neighbouring symbols make, or -1. */
  find(symbols: Symbols, left: number, right: number): number;
  /** Lower comes first; among equals the leftmost. */
  priority(pair: number): number;
  /** Id of the merged symbol. */
  merged(pair: number): number;
}

/** Symbols of one word; a merge makes the left one longer and drops the right one. */
export class Symbols {
  length = 0;
  starts = new Int32Array(64);
  ends = new Int32Array(64);
  ids = new Int32Array(64);
  /** Symbol to the right, -1 behind the last one. */
  nexts = new Int32Array(64);
  #previous = new Int32Array(64);
  /** Pair of a symbol and its right neighbour, -1 when they make none or the symbol is gone. */
  #pairs = new Int32Array(64);
  readonly #heap = new PairHeap();

  clear(): void {
    this.length = 0;
  }

  push(start: number, end: number, id: number): void {
    const index = this.length++;
    if (index === this.starts.length) this.#grow();
    this.starts[index] = start;
    this.ends[index] = end;
    this.ids[index] = id;
  }

  /** Merges until no pair is left; then the list from symbol 0 along {@link nexts} holds the result. */
  merge(rule: PairRule): void {
    const { length } = this;
    for (let index = 0; index < length; index++) {
      this.#previous[index] = index - 1;
      this.nexts[index] = index + 1 < length ? index + 1 : -1;
    }
    for (let index = 0; index < length; index++) this.#consider(rule, index);
    const heap = this.#heap;
    while (heap.length > 0) {
      const left = heap.lefts[0]!;
      const pair = heap.pairs[0]!;
      heap.pop();
      if (this.#pairs[left] !== pair) continue;
      const right = this.nexts[left]!;
      const after = this.nexts[right]!;
      this.ends[left] = this.ends[right]!;
      this.ids[left] = rule.merged(pair);
      this.nexts[left] = after;
      if (after >= 0) this.#previous[after] = left;
      this.#pairs[right] = -1;
      this.#consider(rule, left);
      const before = this.#previous[left]!;
      if (before >= 0) this.#consider(rule, before);
    }
  }

  #consider(rule: PairRule, left: number): void {
    const right = this.nexts[left]!;
    const pair = right < 0 ? -1 : rule.find(this, left, right);
    this.#pairs[left] = pair;
    if (pair >= 0) this.#heap.push(rule.priority(pair), left, pair);
  }

  #grow(): void {
    const size = this.starts.length * 2;
    this.starts = resized(this.starts, size);
    this.ends = resized(this.ends, size);
    this.ids = resized(this.ids, size);
    this.nexts = new Int32Array(size);
    this.#previous = new Int32Array(size);
    this.#pairs = new Int32Array(size);
  }
}

/** Binary heap of pairs by priority, then position. */
class PairHeap {
  length = 0;
  lefts = new Int32Array(64);
  pairs = new Int32Array(64);
  #priorities = new Float64Array(64);

  push(priority: number, left: number, pair: number): void {
    if (this.length === this.lefts.length) this.#grow();
    let index = this.length++;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#before(priority, left, parent)) break;
      this.#move(parent, index);
      index = parent;
    }
    this.#set(index, priority, left, pair);
  }

  /** Drops the first one. */
  pop(): void {
    const last = --this.length;
    const priority = this.#priorities[last]!;
    const left = this.lefts[last]!;
    const pair = this.pairs[last]!;
    let index = 0;
    for (;;) {
      let child = index * 2 + 1;
      if (child >= last) break;
      if (child + 1 < last && this.#before(this.#priorities[child + 1]!, this.lefts[child + 1]!, child)) child++;
      if (this.#before(priority, left, child)) break;
      this.#move(child, index);
      index = child;
    }
    this.#set(index, priority, left, pair);
  }

  #before(priority: number, left: number, index: number): boolean {
    const other = this.#priorities[index]!;
    return priority < other || (priority === other && left < this.lefts[index]!);
  }

  #move(from: number, to: number): void {
    this.#set(to, this.#priorities[from]!, this.lefts[from]!, this.pairs[from]!);
  }

  #set(index: number, priority: number, left: number, pair: number): void {
    this.#priorities[index] = priority;
    this.lefts[index] = left;
    this.pairs[index] = pair;
  }

  #grow(): void {
    const size = this.lefts.length * 2;
    this.lefts = resized(this.lefts, size);
    this.pairs = resized(this.pairs, size);
    const priorities = new Float64Array(size);
    priorities.set(this.#priorities);
    this.#priorities = priorities;
  }
}

function resized(values: Int32Array, size: number): Int32Array<ArrayBuffer> {
  const grown = new Int32Array(size);
  grown.set(values);
  return grown;
}
