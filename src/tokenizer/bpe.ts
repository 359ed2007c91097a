/** Byte-level BPE over a file's own tokens and merges. */

import { AprError } from '../errors.ts';
import type { Metadata } from '../formats/metadata.ts';
import { BYTE_CHARACTERS, fromAlphabet, toAlphabet } from './byte-alphabet.ts';
import { scramble, slotCount } from './byte-strings.ts';
import { type PairRule, Symbols } from './merge.ts';
import { PRE_TOKENIZER_NAMES, type PreTokenizer, preTokenizerOf, splitWords } from './pre-tokenizer.ts';
import { isControl } from './special-tokens.ts';
import type { TokenModel } from './token-model.ts';
import { TOKEN_TYPE, type Vocabulary } from './vocabulary.ts';

const MERGES = 'tokenizer.ggml.merges';

/**
 * Pieces of merges that are no tokens: a pruned vocabulary has a few, a list of merges that belongs to another
 * vocabulary has as many as one likes.
 */
const MAX_FOREIGN_PIECES = 65_536;

// Every byte is one character.
const latin1 = /* @__PURE__ */ new TextDecoder('latin1');

export class BytePairModel implements TokenModel {
  readonly addBos: boolean;
  readonly addSpacePrefix = false;
  readonly #vocabulary: Vocabulary;
  readonly #preTokenizer: PreTokenizer;
  /** Symbol of each byte: a token's id, or a number from the vocabulary's size on for a piece that is no token. */
  readonly #byteSymbols: Int32Array;
  readonly #merges: Merges;
  /** Texts of the symbols that are no tokens. */
  readonly #foreign: readonly Uint8Array[];

  /** @throws AprError BAD_FORMAT, CONTRACT, UNSUPPORTED */
  constructor(metadata: Metadata, vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
    this.#preTokenizer = readPreTokenizer(metadata);
    this.addBos = this.#preTokenizer.addBos;
    const pieces = new Pieces(vocabulary);
    this.#byteSymbols = Int32Array.from({ length: 256 }, (_, byte) => {
      const word = toAlphabet(Uint8Array.of(byte), 0, 1);
      return pieces.intern(word, 0, word.length);
    });
    this.#merges = new Merges(metadata, pieces);
    this.#foreign = pieces.foreign;
  }

  encode(bytes: Uint8Array, start: number, end: number, out: number[]): void {
    const symbols = new Symbols();
    let from = start;
    for (const to of splitWords(this.#preTokenizer, bytes, start, end)) {
      this.#encodeWord(bytes, from, to, symbols, out);
      from = to;
    }
  }

  #encodeWord(bytes: Uint8Array, start: number, end: number, symbols: Symbols, out: number[]): void {
    if (this.#preTokenizer.ignoreMerges) {
      const word = toAlphabet(bytes, start, end);
      const id = this.#vocabulary.find(word, 0, word.length);
      if (id >= 0 && !isControl(this.#vocabulary.declaredTypes[id]!)) {
        out.push(id);
        return;
      }
    }
    symbols.clear();
    for (let at = start; at < end; at++) symbols.push(at, at + 1, this.#byteSymbols[bytes[at]!]!);
    symbols.merge(this.#merges);
    for (let index = 0; index >= 0; index = symbols.nexts[index]!) this.#output(symbols.ids[index]!, out);
  }

  #output(symbol: number, out: number[]): void {
    const { size, sourceName } = this.#vocabulary;
    if (symbol < size) {
      out.push(symbol);
      return;
    }
    // Byte by byte, where the piece as a whole is no token.
    for (const byte of fromAlphabet(this.#foreign[symbol - size]!)) {
      const id = this.#byteSymbols[byte]!;
      if (id >= size) {
        const name = `0x${byte.toString(16).padStart(2, '0')}`;
        const character = String.fromCharCode(BYTE_CHARACTERS[byte]!);
        throw new AprError(
          'CONTRACT',
          `${sourceName}: the text contains byte ${name}, for which the vocabulary has no token ("${character}")`,
          { byte },
        );
      }
      out.push(id);
    }
  }

  render(id: number): Uint8Array {
    const bytes = this.#vocabulary.bytesOf(id);
    return this.#vocabulary.types[id] === TOKEN_TYPE.normal ? fromAlphabet(bytes) : bytes;
  }
}

function readPreTokenizer(metadata: Metadata): PreTokenizer {
  const name = metadata.string('tokenizer.ggml.pre') ?? 'default';
  const preTokenizer = preTokenizerOf(name === '' ? 'default' : name);
  if (preTokenizer !== undefined) return preTokenizer;
  throw new AprError(
    'UNSUPPORTED',
    `${metadata.sourceName}: tokenizer.ggml.pre is "${name}", which is not implemented; expected one of ` +
      PRE_TOKENIZER_NAMES.join(', '),
    { key: 'tokenizer.ggml.pre', found: name },
  );
}

/** Numbers for the texts that merges speak of: ids of tokens, and numbers behind them for what is no token. */
class Pieces {
  readonly foreign: Uint8Array[] = [];
  readonly vocabulary: Vocabulary;
  readonly #numbers = new Map<string, number>();

  constructor(vocabulary: Vocabulary) {
    this.vocabulary = vocabulary;
  }

  intern(bytes: Uint8Array, start: number, end: number): number {
    const { vocabulary } = this;
    const id = vocabulary.find(bytes, start, end);
    // Merging plain text never yields a control token.
    if (id >= 0 && !isControl(vocabulary.declaredTypes[id]!)) return id;
    const piece = bytes.slice(start, end);
    const key = latin1.decode(piece);
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    if (this.foreign.length >= MAX_FOREIGN_PIECES) {
      throw new AprError(
        'CONTRACT',
        `${vocabulary.sourceName}: ${MERGES} speaks of more than ${MAX_FOREIGN_PIECES} pieces that are no tokens, ` +
          'expected merges that belong to this vocabulary',
      );
    }
    const number = vocabulary.size + this.foreign.push(piece) - 1;
    this.#numbers.set(key, number);
    return number;
  }
}

/** The merges as a hash table from two symbols to the rank of their merge. */
class Merges implements PairRule {
  /** Rank + 1; 0 is free. */
  readonly #slots: Int32Array;
  readonly #lefts: Int32Array;
  readonly #rights: Int32Array;
  readonly #merged: Int32Array;

  constructor(metadata: Metadata, pieces: Pieces) {
    const merges = metadata.strings(MERGES);
    if (merges === undefined) {
      const message = `${metadata.sourceName}: ${MERGES} is missing, expected the merges of a BPE vocabulary`;
      throw new AprError('BAD_FORMAT', message, { key: MERGES });
    }
    const { bytes, starts, ends, length } = merges;
    this.#slots = new Int32Array(slotCount(length));
    this.#lefts = new Int32Array(length);
    this.#rights = new Int32Array(length);
    this.#merged = new Int32Array(length);
    let whole = new Uint8Array(256);
    for (let rank = 0; rank < length; rank++) {
      const start = starts[rank]!;
      const end = ends[rank]!;
      const space = bytes.indexOf(0x20, start + 1);
      if (space < 0 || space >= end - 1 || start === end) {
        const message = `${metadata.sourceName}: ${MERGES}[${rank}] is ${JSON.stringify(merges.at(rank).slice(0, 80))}`;
        throw new AprError('BAD_FORMAT', `${message}, expected two pieces with a space between`, { key: MERGES, rank });
      }
      const left = pieces.intern(bytes, start, space);
      const right = pieces.intern(bytes, space + 1, end);
      const slot = this.#slot(left, right);
      // The first one of equal merges counts.
      if (this.#slots[slot] !== 0) continue;
      const size = end - start - 1;
      if (size > whole.length) whole = new Uint8Array(size * 2);
      let at = 0;
      for (let from = start; from < end; from++) if (from !== space) whole[at++] = bytes[from]!;
      this.#slots[slot] = rank + 1;
      this.#lefts[rank] = left;
      this.#rights[rank] = right;
      this.#merged[rank] = pieces.intern(whole, 0, size);
    }
  }

  find(symbols: Symbols, left: number, right: number): number {
    return this.#slots[this.#slot(symbols.ids[left]!, symbols.ids[right]!)]! - 1;
  }

  priority(rank: number): number {
    return rank;
  }

  merged(rank: number): number {
    return this.#merged[rank]!;
  }

  #slot(left: number, right: number): number {
    const mask = this.#slots.length - 1;
    let slot = scramble(Math.imul(left, 0x9e3779b1) ^ right) & mask;
    for (;;) {
      const rank = this.#slots[slot]! - 1;
      if (rank < 0 || (this.#lefts[rank] === left && this.#rights[rank] === right)) return slot;
      slot = (slot + 1) & mask;
    }
  }
}
