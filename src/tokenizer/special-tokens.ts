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

interface Match extends Fragment {
  readonly length: number;
}

/**
 * The special tokens of a vocabulary as a trie over their bytes.
 *
 * Where several match, the longest in the whole text goes first, as in llama.cpp, which searches the text for one
 * token after the other; here one pass finds all candidates.
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
    this.#stripsRight = new Set(ids.filter(stripsRight));
  }

  /** The bytes as special tokens and the text between them, in order. */
  partition(bytes: Uint8Array, options: PartitionOptions): Fragment[] {
    const fragments: Fragment[] = [];
    let from = 0;
    for (const { id, start, end } of this.#select(bytes, this.#candidates(bytes, options))) {
      if (start > from) fragments.push({ id: -1, start: from, end: start });
      fragments.push({ id, start, end });
      from = end;
    }
    if (from < bytes.length) fragments.push({ id: -1, start: from, end: bytes.length });
    return fragments;
  }

  #candidates(bytes: Uint8Array, { control, literal = [] }: PartitionOptions): Match[] {
    const { types } = this.#vocabulary;
    const matches: Match[] = [];
    let range = 0;
    for (let start = 0; start < bytes.length; start++) {
      while (range < literal.length && literal[range]!.end <= start) range++;
      const limit = range < literal.length ? literal[range]!.start : bytes.length;
      this.#trie.matches(bytes, start, (id, end) => {
        if (isControl(types[id]!) && (!control || end > limit)) return;
        matches.push({ id, start, end, length: end - start });
      });
    }
    return matches;
  }

  #select(bytes: Uint8Array, matches: Match[]): Fragment[] {
    if (matches.length === 0) return matches;
    matches.sort((a, b) => b.length - a.length || a.id - b.id || a.start - b.start);
    const taken = new Uint8Array(bytes.length);
    const chosen: Fragment[] = [];
    for (const { id, start, end } of matches) {
      // A chosen match is never shorter, so an overlap shows at one of the ends.
      if (taken[start] || taken[end - 1]) continue;
      let stop = end;
      if (this.#stripsRight.has(id)) while (stop < bytes.length && !taken[stop] && isAsciiSpace(bytes[stop]!)) stop++;
      taken.fill(1, start, stop);
      chosen.push({ id, start, end: stop });
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
  /** Nodes below the root by the first byte, 0 for none: most bytes of a text begin no special token. */
  readonly #roots = new Int32Array(256);
  #count = 1;

  constructor(bytes: number) {
    const slots = slotCount(bytes);
    this.#keys = new Float64Array(slots);
    this.#children = new Int32Array(slots);
    this.#ids = new Int32Array(bytes + 1).fill(-1);
  }

  add(bytes: Uint8Array, start: number, end: number, id: number): void {
    if (start === end) return;
    let node = this.#roots[bytes[start]!]!;
    if (node === 0) {
      node = this.#count++;
      this.#roots[bytes[start]!] = node;
    }
    for (let at = start + 1; at < end; at++) {
      const key = node * 256 + bytes[at]! + 1;
      const slot = this.#slot(key);
      if (this.#keys[slot] === 0) {
        this.#keys[slot] = key;
        this.#children[slot] = this.#count++;
      }
      node = this.#children[slot]!;
    }
    this.#ids[node] = id;
  }

  /** Calls `found` for every token that begins at `start`, shortest first. */
  matches(bytes: Uint8Array, start: number, found: (id: number, end: number) => void): void {
    let node = this.#roots[bytes[start]!]!;
    for (let at = start + 1; node !== 0; at++) {
      const id = this.#ids[node]!;
      if (id >= 0) found(id, at);
      node = at < bytes.length ? this.#child(node, bytes[at]!) : 0;
    }
  }

  #child(node: number, byte: number): number {
    const key = node * 256 + byte + 1;
    const slot = this.#slot(key);
    return this.#keys[slot] === key ? this.#children[slot]! : 0;
  }

  #slot(key: number): number {
    const mask = this.#keys.length - 1;
    let slot = scramble(key | 0) & mask;
    while (this.#keys[slot] !== 0 && this.#keys[slot] !== key) slot = (slot + 1) & mask;
    return slot;
  }
}
