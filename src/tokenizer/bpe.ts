/** Byte-level BPE over a file's own tokens and merges. */

import { AprError } from '../errors.ts';
import type { Metadata } from '../formats/metadata.ts';
import { Merges } from './bpe-merges.ts';
import { BYTE_CHARACTERS, fromAlphabet, toAlphabet } from './byte-alphabet.ts';
import { Symbols } from './merge.ts';
import { PRE_TOKENIZER_NAMES, type PreTokenizer, preTokenizerOf, splitWords } from './pre-tokenizer.ts';
import { isControl } from './special-tokens.ts';
import type { TokenModel } from './token-model.ts';
import { TOKEN_TYPE, type Vocabulary } from './vocabulary.ts';

export class BytePairModel implements TokenModel {
  readonly addBos: boolean;
  readonly addSpacePrefix = false;
  readonly #vocabulary: Vocabulary;
  readonly #preTokenizer: PreTokenizer;
  readonly #merges: Merges;

  /** @throws AprError BAD_FORMAT, CONTRACT, UNSUPPORTED */
  constructor(metadata: Metadata, vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
    this.#preTokenizer = readPreTokenizer(metadata);
    this.addBos = this.#preTokenizer.addBos;
    const letters = Array.from({ length: 256 }, (_, byte) => toAlphabet(Uint8Array.of(byte), 0, 1));
    this.#merges = new Merges(metadata, vocabulary, letters);
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
    for (let at = start; at < end; at++) symbols.push(at, at + 1, this.#merges.byteSymbols[bytes[at]!]!);
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
    for (const byte of fromAlphabet(this.#merges.textOf(symbol))) {
      const id = this.#merges.byteSymbols[byte]!;
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
