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

/** Symbols from which on a word's pairs go into buckets. */
const LONG_WORD = 1024;

/** Candidate pairs, which come out by priority, then position. */
interface PairQueue {
  /** What {@link next} found. */
  readonly left: number;
  readonly pair: number;
  push(priority: number, left: number, pair: number): void;
  /** Takes the first one; false when there is none. */
  next(): boolean;
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
  readonly #buckets = new PairBuckets();
  #queue: PairQueue = this.#heap;

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
    const queue = length > LONG_WORD ? this.#buckets : this.#heap;
    this.#queue = queue;
    for (let index = 0; index < length; index++) this.#consider(rule, index);
    while (queue.next()) {
      const { left, pair } = queue;
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
    if (pair >= 0) this.#queue.push(rule.priority(pair), left, pair);
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

/** Binary heap. */
class PairHeap implements PairQueue {
  length = 0;
  lefts = new Int32Array(64);
  pairs = new Int32Array(64);
  left = -1;
  pair = -1;
  #priorities = new Float64Array(64);

  /** Of the first one. */
  get priority(): number {
    return this.#priorities[0]!;
  }

  next(): boolean {
    if (this.length === 0) return false;
    this.left = this.lefts[0]!;
    this.pair = this.pairs[0]!;
    this.pop();
    return true;
  }

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

/** Pairs of one priority, from left to right. */
interface Bucket {
  readonly lefts: number[];
  readonly pairs: number[];
  /** The first one that has not been taken. */
  head: number;
}

/**
 * A bucket for each priority: a heap of the million equal pairs of a long run would cost more than all the rest. Pairs
 * of one priority mostly come from left to right; those that do not wait in a heap.
 */
class PairBuckets implements PairQueue {
  left = -1;
  pair = -1;
  readonly #buckets = new Map<number, Bucket>();
  /** The priorities that have a bucket. */
  readonly #order = new PairHeap();
  readonly #stragglers = new PairHeap();

  push(priority: number, left: number, pair: number): void {
    const bucket = this.#buckets.get(priority);
    if (bucket === undefined) {
      this.#buckets.set(priority, { lefts: [left], pairs: [pair], head: 0 });
      this.#order.push(priority, 0, 0);
    } else if (left >= bucket.lefts[bucket.lefts.length - 1]!) {
      bucket.lefts.push(left);
      bucket.pairs.push(pair);
    } else {
      this.#stragglers.push(priority, left, pair);
    }
  }

  next(): boolean {
    if (this.#order.length === 0) return this.#straggler();
    const { priority } = this.#order;
    const bucket = this.#buckets.get(priority)!;
    const left = bucket.lefts[bucket.head]!;
    if (this.#stragglers.length > 0) {
      const other = this.#stragglers.priority;
      if (other < priority || (other === priority && this.#stragglers.lefts[0]! < left)) return this.#straggler();
    }
    this.left = left;
    this.pair = bucket.pairs[bucket.head]!;
    bucket.head++;
    if (bucket.head === bucket.lefts.length) {
      this.#buckets.delete(priority);
      this.#order.pop();
    }
    return true;
  }

  #straggler(): boolean {
    const found = this.#stragglers.next();
    this.left = this.#stragglers.left;
    this.pair = this.#stragglers.pair;
    return found;
  }
}

function resized(values: Int32Array, size: number): Int32Array<ArrayBuffer> {
  const grown = new Int32Array(size);
  grown.set(values);
  return grown;
}
