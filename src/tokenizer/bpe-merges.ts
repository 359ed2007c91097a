/** The merges of a byte-level BPE vocabulary. */

import { AprError } from '../errors.ts';
import type { Metadata, StringArray } from '../formats/metadata.ts';
import { ByteStringTable, scramble } from './byte-strings.ts';
import type { PairRule, Symbols } from './merge.ts';
import { isControl } from './special-tokens.ts';
import type { Vocabulary } from './vocabulary.ts';

const MERGES = 'tokenizer.ggml.merges';
const SPACE = 0x20;

/** How many merges are looked at to see whether they belong to the vocabulary, and what share of foreign ones says no. */
const SAMPLE = 2048;
const FOREIGN_SHARE = 0.9;

/** Pairs that are remembered; a long text of one language has some ten thousand. */
const REMEMBERED = 2 ** 17;

/** Words of a remembered pair: left and right symbol, rank or -1, and one that keeps a pair in one cache line. */
const PAIR = 4;

// Every byte is one character.
const latin1 = /* @__PURE__ */ new TextDecoder('latin1');

/** Numbers for the texts that merging makes: ids of tokens, and numbers behind them for what is no token. */
class Pieces {
  readonly #vocabulary: Vocabulary;
  // Each is the text of one merge, so together they are no larger than the file.
  readonly #foreign: Uint8Array[] = [];
  readonly #numbers = new Map<string, number>();

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
  }

  intern(bytes: Uint8Array, start: number, end: number): number {
    const { size, declaredTypes } = this.#vocabulary;
    const id = this.#vocabulary.find(bytes, start, end);
    // Merging plain text never yields a control token.
    if (id >= 0 && !isControl(declaredTypes[id]!)) return id;
    const piece = bytes.slice(start, end);
    const key = latin1.decode(piece);
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    const number = size + this.#foreign.push(piece) - 1;
    this.#numbers.set(key, number);
    return number;
  }

  textOf(symbol: number): Uint8Array {
    const { size } = this.#vocabulary;
    return symbol < size ? this.#vocabulary.bytesOf(symbol) : this.#foreign[symbol - size]!;
  }

  /** Bytes of a symbol's text. */
  lengthOf(symbol: number): number {
    const { size, tokens } = this.#vocabulary;
    return symbol < size ? tokens.ends[symbol]! - tokens.starts[symbol]! : this.#foreign[symbol - size]!.length;
  }

  /** Puts a symbol's text at `at`. */
  write(symbol: number, out: Uint8Array, at: number): void {
    const { size, tokens } = this.#vocabulary;
    const isToken = symbol < size;
    const bytes = isToken ? tokens.bytes : this.#foreign[symbol - size]!;
    const start = isToken ? tokens.starts[symbol]! : 0;
    const end = isToken ? tokens.ends[symbol]! : bytes.length;
    // The texts are a few bytes long: copying them takes less time than naming their place in an object.
    for (let from = start; from < end; from++) out[at + from - start] = bytes[from]!;
  }
}

/**
 * Which symbols merge. To number the pieces of all merges would be most of what a vocabulary costs, and a text needs few
 * of them; so the merges stay the texts that they are in the file, `left right`, and a pair of symbols is looked up by
 * its text when it is first met. No symbol contains a space: it is written otherwise in the alphabet of bytes.
 */
export class Merges implements PairRule {
  /** Symbol of each byte. */
  readonly byteSymbols: Int32Array;
  readonly #merges: StringArray;
  /** Made for the first text: who only looks at a file needs none. */
  #table: ByteStringTable | undefined;
  readonly #pieces: Pieces;
  /** Each pair has one place; a pair that needs it takes it from another. */
  readonly #remembered = new Int32Array(REMEMBERED * PAIR).fill(-1);
  readonly #merged: Int32Array;
  #text = new Uint8Array(256);

  /**
   * @param letters what each byte is written as
   * @throws AprError BAD_FORMAT for what is no merge, CONTRACT for merges of another vocabulary
   */
  constructor(metadata: Metadata, vocabulary: Vocabulary, letters: readonly Uint8Array[]) {
    const merges = metadata.strings(MERGES);
    if (merges === undefined) {
      const message = `${metadata.sourceName}: ${MERGES} is missing, expected the merges of a BPE vocabulary`;
      throw new AprError('BAD_FORMAT', message, { key: MERGES });
    }
    const { bytes, starts, ends, length } = merges;
    for (let rank = 0; rank < length; rank++) {
      if (isPair(bytes, starts[rank]!, ends[rank]!)) continue;
      const message = `${metadata.sourceName}: ${MERGES}[${rank}] is ${JSON.stringify(merges.at(rank).slice(0, 80))}`;
      throw new AprError('BAD_FORMAT', `${message}, expected two pieces with a space between`, { key: MERGES, rank });
    }
    assertBelongs(merges, vocabulary);
    this.#merges = merges;
    this.#merged = new Int32Array(length).fill(-1);
    this.#pieces = new Pieces(vocabulary);
    this.byteSymbols = Int32Array.from(letters, (letter) => this.#pieces.intern(letter, 0, letter.length));
  }

  /** What a symbol is written as. */
  textOf(symbol: number): Uint8Array {
    return this.#pieces.textOf(symbol);
  }

  find(symbols: Symbols, left: number, right: number): number {
    const one = symbols.ids[left]!;
    const other = symbols.ids[right]!;
    const pairs = this.#remembered;
    const at = (scramble(Math.imul(one, 0x9e3779b1) ^ other) & (REMEMBERED - 1)) * PAIR;
    if (pairs[at] === one && pairs[at + 1] === other) return pairs[at + 2]!;
    const rank = this.#lookUp(one, other);
    pairs[at] = one;
    pairs[at + 1] = other;
    pairs[at + 2] = rank;
    return rank;
  }

  priority(rank: number): number {
    return rank;
  }

  merged(rank: number): number {
    return this.#merged[rank]!;
  }

  /** Rank of the merge of two symbols, or -1. */
  #lookUp(left: number, right: number): number {
    const pieces = this.#pieces;
    const middle = pieces.lengthOf(left);
    const length = middle + pieces.lengthOf(right);
    if (length + 1 > this.#text.length) this.#text = new Uint8Array(length * 2);
    const text = this.#text;
    pieces.write(left, text, 0);
    text[middle] = SPACE;
    pieces.write(right, text, middle + 1);
    // The first one of equal merges counts.
    this.#table ??= new ByteStringTable(this.#merges, 'first');
    const rank = this.#table.find(text, 0, length + 1);
    if (rank >= 0 && this.#merged[rank]! < 0) {
      text.copyWithin(middle, middle + 1, length + 1);
      this.#merged[rank] = pieces.intern(text, 0, length);
    }
    return rank;
  }
}

/** A pruned vocabulary lacks the tokens of some merges; where it lacks nearly all, the merges are another's. */
function assertBelongs({ bytes, starts, ends, length }: StringArray, vocabulary: Vocabulary): void {
  if (length < SAMPLE) return;
  let foreign = 0;
  for (let i = 0; i < SAMPLE; i++) {
    const rank = Math.floor((i * length) / SAMPLE);
    const merge = bytes.slice(starts[rank], ends[rank]);
    const space = merge.indexOf(SPACE, 1);
    merge.copyWithin(space, space + 1);
    if (vocabulary.find(merge, 0, merge.length - 1) < 0) foreign++;
  }
  if (foreign <= SAMPLE * FOREIGN_SHARE) return;
  throw new AprError(
    'CONTRACT',
    `${vocabulary.sourceName}: of ${SAMPLE} entries looked at in ${MERGES}, ${foreign} make no token, ` +
      'expected merges that belong to this vocabulary',
    { key: MERGES, sampled: SAMPLE, foreign },
  );
}

/** Whether a merge has two pieces that are not empty; the first may begin with a space. */
function isPair(bytes: Uint8Array, start: number, end: number): boolean {
  let space = start + 1;
  while (space < end && bytes[space] !== SPACE) space++;
  return space < end - 1;
}
