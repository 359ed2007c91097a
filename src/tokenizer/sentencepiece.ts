/**
 * SentencePiece as the `llama` files use it: characters are merged into the best-scored token first; what stays no
 * token is written as its bytes.
 */

import { AprError } from '../errors.ts';
import type { Metadata } from '../formats/metadata.ts';
import { type PairRule, Symbols } from './merge.ts';
import type { TokenModel } from './token-model.ts';
import { assertCovers, TOKEN_TYPE, type Vocabulary } from './vocabulary.ts';

/** U+2581, which stands for a space. */
const SPACE_MARK = [0xe2, 0x96, 0x81] as const;

export class SentencePieceModel implements TokenModel {
  readonly addBos = true;
  readonly addSpacePrefix: boolean;
  readonly #vocabulary: Vocabulary;
  /** Token of each byte, -1 where there is none. */
  readonly #byteTokens: Int32Array;
  readonly #scores: ArrayLike<number>;

  /** @throws AprError BAD_FORMAT */
  constructor(metadata: Metadata, vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
    this.#scores = readScores(metadata, vocabulary.size);
    this.addSpacePrefix = metadata.bool('tokenizer.ggml.add_space_prefix') ?? true;
    this.#byteTokens = Int32Array.from({ length: 256 }, (_, byte) => {
      const id = vocabulary.findText(`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);
      return id >= 0 ? id : vocabulary.find(Uint8Array.of(byte), 0, 1);
    });
  }

  encode(bytes: Uint8Array, start: number, end: number, out: number[], first: boolean): void {
    const text = escapeSpaces(bytes, start, end, first && this.addSpacePrefix);
    const symbols = new Symbols();
    for (let at = 0; at < text.length; ) {
      const lead = text[at]!;
      const size = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
      const to = Math.min(text.length, at + size);
      symbols.push(at, to, this.#find(text, at, to));
      at = to;
    }
    if (symbols.length === 0) return;
    symbols.merge(this.#rule(text));
    for (let index = 0; index >= 0; index = symbols.nexts[index]!) {
      const id = symbols.ids[index]!;
      if (id >= 0) out.push(id);
      else this.#encodeBytes(text.subarray(symbols.starts[index]!, symbols.ends[index]!), out);
    }
  }

  #rule(text: Uint8Array): PairRule {
    const scores = this.#scores;
    return {
      find: (symbols, left, right) => this.#find(text, symbols.starts[left]!, symbols.ends[right]!),
      priority: (id) => -scores[id]!,
      merged: (id) => id,
    };
  }

  /** Token that plain text can be, or -1. */
  #find(text: Uint8Array, start: number, end: number): number {
    const id = this.#vocabulary.find(text, start, end);
    if (id < 0) return -1;
    const type = this.#vocabulary.declaredTypes[id];
    return type === TOKEN_TYPE.control || type === TOKEN_TYPE.unknown || type === TOKEN_TYPE.byte ? -1 : id;
  }

  #encodeBytes(character: Uint8Array, out: number[]): void {
    const ids = Array.from(character, (byte) => this.#byteTokens[byte]!);
    if (!ids.includes(-1)) {
      out.push(...ids);
      return;
    }
    const unknown = this.#vocabulary.declared('unknown') ?? this.#vocabulary.types.indexOf(TOKEN_TYPE.unknown);
    if (unknown < 0) {
      const text = new TextDecoder().decode(character);
      throw new AprError(
        'CONTRACT',
        `${this.#vocabulary.sourceName}: the text contains "${text}", for which the vocabulary has no token, no byte ` +
          'tokens and no unknown token',
      );
    }
    out.push(unknown);
  }

  render(id: number): Uint8Array {
    const bytes = this.#vocabulary.bytesOf(id);
    const type = this.#vocabulary.types[id];
    if (type === TOKEN_TYPE.byte) return byteOf(bytes);
    return type === TOKEN_TYPE.normal ? unescapeSpaces(bytes) : bytes;
  }
}

function readScores(metadata: Metadata, size: number): ArrayLike<number> {
  const key = 'tokenizer.ggml.scores';
  const scores = metadata.numbers(key);
  if (scores === undefined) {
    throw new AprError('BAD_FORMAT', `${metadata.sourceName}: ${key} is missing, expected the scores of the tokens`, {
      key,
    });
  }
  assertCovers(metadata, key, scores.length, size);
  for (let id = 0; id < size; id++) {
    if (!Number.isNaN(scores[id])) continue;
    throw new AprError('BAD_FORMAT', `${metadata.sourceName}: ${key}[${id}] is not a number`, { key, index: id });
  }
  return scores;
}

/** With every space as {@link SPACE_MARK}, and one more in front when asked for. */
function escapeSpaces(bytes: Uint8Array, start: number, end: number, prefix: boolean): Uint8Array {
  let spaces = prefix ? 1 : 0;
  for (let at = start; at < end; at++) if (bytes[at] === 0x20) spaces++;
  const out = new Uint8Array(end - start + spaces * 2 + (prefix ? 1 : 0));
  let length = 0;
  if (prefix) {
    out.set(SPACE_MARK);
    length = 3;
  }
  for (let at = start; at < end; at++) {
    if (bytes[at] === 0x20) {
      out.set(SPACE_MARK, length);
      length += 3;
    } else {
      out[length++] = bytes[at]!;
    }
  }
  return out;
}

function unescapeSpaces(bytes: Uint8Array): Uint8Array {
  const out = new Uint8Array(bytes.length);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    const isMark = SPACE_MARK.every((byte, i) => bytes[at + i] === byte);
    out[length++] = isMark ? 0x20 : bytes[at]!;
    if (isMark) at += 2;
  }
  return out.slice(0, length);
}

/** Value of a token that reads `<0x0A>`; the text itself where it reads otherwise. */
function byteOf(bytes: Uint8Array): Uint8Array {
  const match = /^<0x([0-9A-Fa-f]{2})>$/.exec(String.fromCharCode(...bytes.subarray(0, 7)));
  return match === null ? bytes : Uint8Array.of(Number.parseInt(match[1]!, 16));
}
