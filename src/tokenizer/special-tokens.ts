/** Finding special tokens in text. */

import { scramble, slotCount } from './byte-strings.ts';
import { TOKEN_TYPE, type Vocabulary } from './vocabulary.ts';

/** A special token, or the text up to the next one (`id` -1), at `start … end` of the bytes. */
export interface Fragment {
  readonly id: number;
  readonly start: number;
  readonly end: number;
}

export interface PartitionOptions {
  /** Control and unknown tokens too; user-defined ones are always recognised. */
  readonly control: boolean;
  /** Ascending ranges of bytes in which control and unknown tokens are text, even when they only reach into one. */
  readonly literal?: readonly { readonly start: number; readonly end: number }[];
}

/** A token that may stand at `start`: the longest there that has not been ruled out. */
interface Candidate {
  readonly start: number;
  /** Node of the trie at which it ends. */
  readonly node: number;
}

/**
 * The special tokens of a vocabulary as a trie over their bytes.
 *
 * Where several match, the longest in the whole text goes first, as in llama.cpp, which searches the text for one
 * token after the other. Here each place has one candidate at a time, its longest; where that does not fit, the next
 * shorter one waits for its turn. A hostile vocabulary can have thousands that match at every place.
 */
export class SpecialTokens {
  readonly #vocabulary: Vocabulary;
  readonly #trie: Trie;
  /** Tokens that swallow the white space behind them. */
  readonly #stripsRight: ReadonlySet<number>;

  constructor(vocabulary: Vocabulary, stripsRight: (id: number) => boolean) {
    this.#vocabulary = vocabulary;
    const { types, tokens } = vocabulary;
    const ids: number[] = [];
    let bytes = 0;
    for (let id = 0; id < types.length; id++) {
      const type = types[id]!;
      if (isControl(type) || type === TOKEN_TYPE.userDefined) {
        ids.push(id);
        bytes += tokens.ends[id]! - tokens.starts[id]!;
      }
    }
    this.#trie = new Trie(bytes);
    for (const id of ids) this.#trie.add(tokens.bytes, tokens.starts[id]!, tokens.ends[id]!, id);
    this.#trie.finish();
    this.#stripsRight = new Set(ids.filter(stripsRight));
  }

  /** The bytes as special tokens and the text between them, in order. */
  partition(bytes: Uint8Array, options: PartitionOptions): Fragment[] {
    const fragments: Fragment[] = [];
    let from = 0;
    for (const { id, start, end } of this.#select(bytes, options)) {
      if (start > from) fragments.push({ id: -1, start: from, end: start });
      fragments.push({ id, start, end });
      from = end;
    }
    if (from < bytes.length) fragments.push({ id: -1, start: from, end: bytes.length });
    return fragments;
  }

  #select(bytes: Uint8Array, { control, literal = [] }: PartitionOptions): Fragment[] {
    const { types } = this.#vocabulary;
    const trie = this.#trie;
    const byLength = new Map<number, Candidate[]>();
    /** First byte from each candidate's start on that control tokens must not reach into. */
    const limits = new Map<number, number>();
    const propose = (start: number, from: number, limit: number): void => {
      for (let node = from; node !== 0; node = trie.shorter(node)) {
        const length = trie.lengthOf(node);
        if (isControl(types[trie.idOf(node)]!) && (!control || start + length > limit)) continue;
        const bucket = byLength.get(length);
        if (bucket === undefined) byLength.set(length, [{ start, node }]);
        else bucket.push({ start, node });
        return;
      }
    };
    let range = 0;
    for (let start = 0; start < bytes.length; start++) {
      while (range < literal.length && literal[range]!.end <= start) range++;
      const node = trie.longest(bytes, start);
      if (node === 0) continue;
      const limit = range < literal.length ? literal[range]!.start : bytes.length;
      limits.set(start, limit);
      propose(start, node, limit);
    }
    if (byLength.size === 0) return [];

    const taken = new Uint8Array(bytes.length);
    const chosen: Fragment[] = [];
    for (const length of trie.lengths) {
      const bucket = byLength.get(length);
      if (bucket === undefined) continue;
      bucket.sort((a, b) => trie.idOf(a.node) - trie.idOf(b.node) || a.start - b.start);
      for (const { start, node } of bucket) {
        if (taken[start]) continue; // and none that is shorter fits either
        const end = start + length;
        // A chosen token is never shorter, so an overlap shows at one of the ends.
        if (taken[end - 1]) {
          propose(start, trie.shorter(node), limits.get(start)!);
          continue;
        }
        const id = trie.idOf(node);
        let stop = end;
        if (this.#stripsRight.has(id)) while (stop < bytes.length && !taken[stop] && isAsciiSpace(bytes[stop]!)) stop++;
        taken.fill(1, start, stop);
        chosen.push({ id, start, end: stop });
      }
    }
    return chosen.sort((a, b) => a.start - b.start);
  }
}

/** True for types that text only turns into where special tokens are asked for. */
export function isControl(type: number): boolean {
  return type === TOKEN_TYPE.control || type === TOKEN_TYPE.unknown;
}

function isAsciiSpace(byte: number): boolean {
  return byte === 0x20 || (byte >= 9 && byte <= 13);
}

/** Trie whose edges are one hash table, so that a hostile vocabulary of special tokens costs no more than its bytes. */
class Trie {
  /** Node × 256 + byte + 1; 0 is free. */
  readonly #keys: Float64Array;
  readonly #children: Int32Array;
  /** Id of the token that ends at a node, -1 for none. */
  readonly #ids: Int32Array;
  /** Bytes from the root to a node. */
  readonly #lengths: Int32Array;
  /** A node's parent; after {@link finish} its nearest ancestor at which a token ends, 0 for none. */
  readonly #above: Int32Array;
  /** Lengths of tokens, descending; after {@link finish}. */
  lengths: readonly number[] = [];
  /** Nodes below the root by the first byte, 0 for none: most bytes of a text begin no special token. */
  readonly #roots = new Int32Array(256);
  #count = 1;
  // Drawn anew for each trie: a file cannot be made up to fill one stretch of the table.
  readonly #seed = Math.floor(Math.random() * 2 ** 32);

  constructor(bytes: number) {
    const slots = slotCount(bytes);
    this.#keys = new Float64Array(slots);
    this.#children = new Int32Array(slots);
    this.#ids = new Int32Array(bytes + 1).fill(-1);
    this.#lengths = new Int32Array(bytes + 1);
    this.#above = new Int32Array(bytes + 1);
  }

  add(bytes: Uint8Array, start: number, end: number, id: number): void {
    if (start === end) return;
    let node = this.#roots[bytes[start]!]!;
    if (node === 0) {
      node = this.#count++;
      this.#roots[bytes[start]!] = node;
      this.#lengths[node] = 1;
    }
    for (let at = start + 1; at < end; at++) {
      const key = node * 256 + bytes[at]! + 1;
      const slot = this.#slot(key);
      if (this.#keys[slot] === 0) {
        this.#keys[slot] = key;
        const child = this.#count++;
        this.#children[slot] = child;
        this.#lengths[child] = at + 1 - start;
        this.#above[child] = node;
      }
      node = this.#children[slot]!;
    }
    this.#ids[node] = id;
  }

  /** To be called when all tokens have been added. */
  finish(): void {
    const lengths = new Set<number>();
    // A node's number is above its parent's.
    for (let node = 1; node < this.#count; node++) {
      if (this.#ids[node]! >= 0) lengths.add(this.#lengths[node]!);
      const parent = this.#above[node]!;
      if (parent !== 0 && this.#ids[parent]! < 0) this.#above[node] = this.#above[parent]!;
    }
    this.lengths = [...lengths].sort((a, b) => b - a);
  }

  /** Node of the longest token that begins at `start`, 0 for none. */
  longest(bytes: Uint8Array, start: number): number {
    let longest = 0;
    let node = this.#roots[bytes[start]!]!;
    for (let at = start + 1; node !== 0; at++) {
      if (this.#ids[node]! >= 0) longest = node;
      node = at < bytes.length ? this.#child(node, bytes[at]!) : 0;
    }
    return longest;
  }

  /** Node of the next shorter token that begins as this node's one, 0 for none. */
  shorter(node: number): number {
    return this.#above[node]!;
  }

  idOf(node: number): number {
    return this.#ids[node]!;
  }

  lengthOf(node: number): number {
    return this.#lengths[node]!;
  }

  #child(node: number, byte: number): number {
    const key = node * 256 + byte + 1;
    const slot = this.#slot(key);
    return this.#keys[slot] === key ? this.#children[slot]! : 0;
  }

  #slot(key: number): number {
    const mask = this.#keys.length - 1;
    let slot = scramble(key ^ this.#seed) & mask;
    while (this.#keys[slot] !== 0 && this.#keys[slot] !== key) slot = (slot + 1) & mask;
    return slot;
  }
}
