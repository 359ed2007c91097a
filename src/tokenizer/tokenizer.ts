/** Text to token ids and back, from a model file's own vocabulary. */

import { AprError } from '../errors.ts';
import type { Metadata } from '../formats/metadata.ts';
import { BytePairModel } from './bpe.ts';
import { SentencePieceModel } from './sentencepiece.ts';
import { isControl, SpecialTokens } from './special-tokens.ts';
import type { TokenModel } from './token-model.ts';
import { TOKEN_TYPE, TOKEN_TYPE_NAMES, type TokenType, Vocabulary } from './vocabulary.ts';

export type { TokenType } from './vocabulary.ts';

/** Text that a template wrote (`special`), or that a user wrote. */
export interface TextSegment {
  readonly text: string;
  /** Special tokens in it are recognised where the call asks for it; otherwise they are text. */
  readonly special: boolean;
}

export interface EncodeOptions {
  /** Recognise control tokens written in the text. Default false; user-defined tokens are always recognised. */
  readonly special?: boolean;
  /** Add BOS and EOS as the file asks for, BOS not if the text begins with it. Default false. */
  readonly addSpecial?: boolean;
}

const MAX_TEXT_BYTES = 2 ** 28;
const encoder = /* @__PURE__ */ new TextEncoder();
// `ignoreBOM` keeps a byte-order mark: it is text.
const decoder = /* @__PURE__ */ new TextDecoder('utf-8', { ignoreBOM: true });

export class Tokenizer {
  readonly vocabularySize: number;
  /** `tokenizer.ggml.model`. */
  readonly model: 'gpt2' | 'llama';
  readonly bosId: number | undefined;
  readonly eosId: number | undefined;
  readonly eotId: number | undefined;
  readonly unknownId: number | undefined;
  readonly paddingId: number | undefined;
  readonly addBos: boolean;
  readonly addEos: boolean;
  /** Declared ids by their metadata keys. One beyond the vocabulary counts as not declared everywhere else. */
  readonly declaredSpecialTokens: Readonly<Record<string, number>>;
  /** Metadata keys that ask for a token to be added, with the key that should say which and is absent. */
  readonly undeclaredSpecialTokens: Readonly<Record<string, string>>;
  readonly #vocabulary: Vocabulary;
  readonly #model: TokenModel;
  readonly #specialTokens: SpecialTokens;
  #controlStarts: ReadonlySet<string> | undefined;

  /** @throws AprError BAD_FORMAT, UNSUPPORTED */
  constructor(metadata: Metadata) {
    this.model = readModelName(metadata);
    const vocabulary = new Vocabulary(metadata);
    const isPiece = this.model === 'llama';
    this.#vocabulary = vocabulary;
    this.#model = isPiece ? new SentencePieceModel(metadata, vocabulary) : new BytePairModel(metadata, vocabulary);
    this.#specialTokens = new SpecialTokens(vocabulary, rightStripping(metadata, vocabulary));
    this.vocabularySize = vocabulary.size;
    this.declaredSpecialTokens = vocabulary.declaredSpecialTokens;
    // SentencePiece has fixed ids where the file declares none; byte-level BPE has not.
    const fixed = (id: number): number | undefined => (isPiece && id < vocabulary.size ? id : undefined);
    this.unknownId = vocabulary.declared('unknown') ?? fixed(0);
    this.bosId = vocabulary.declared('bos') ?? fixed(1);
    this.eosId = vocabulary.declared('eos') ?? fixed(2);
    this.eotId = vocabulary.declared('eot');
    this.paddingId = vocabulary.declared('padding');
    const wantsBos = metadata.bool('tokenizer.ggml.add_bos_token') ?? this.#model.addBos;
    const wantsEos = metadata.bool('tokenizer.ggml.add_eos_token') ?? false;
    this.addBos = wantsBos && this.bosId !== undefined;
    this.addEos = wantsEos && this.eosId !== undefined;
    const undeclared: Record<string, string> = {};
    for (const name of ['bos', 'eos'] as const) {
      const [add, id] = [`tokenizer.ggml.add_${name}_token`, `tokenizer.ggml.${name}_token_id`];
      const known = this[`${name}Id`] !== undefined || this.declaredSpecialTokens[id] !== undefined;
      if (metadata.bool(add) === true && !known) undeclared[add] = id;
    }
    this.undeclaredSpecialTokens = undeclared;
  }

  /** Ends an answer: declared by the file, or known by its text. */
  isEndOfGeneration(id: number): boolean {
    return this.#vocabulary.endOfGeneration.has(id) || id === this.eosId;
  }

  /** Bytes that no token of the vocabulary is longer than. */
  get longestToken(): number {
    return this.#vocabulary.maxLength;
  }

  /** Ids for which {@link isEndOfGeneration} holds, ascending. */
  get endOfGenerationIds(): number[] {
    const ids = new Set(this.#vocabulary.endOfGeneration);
    if (this.eosId !== undefined) ids.add(this.eosId);
    return [...ids].sort((a, b) => a - b);
  }

  /** Steers the conversation and is no part of an answer's text. */
  isControl(id: number): boolean {
    return isControl(this.#vocabulary.types[this.#checked(id)]!);
  }

  typeOf(id: number): TokenType {
    return TOKEN_TYPE_NAMES[this.#vocabulary.types[this.#checked(id)]!]!;
  }

  /** Id of the special token with that text. */
  findSpecial(text: string): number | undefined {
    const id = this.#vocabulary.findText(text);
    if (id < 0) return undefined;
    const type = this.#vocabulary.types[id]!;
    return isControl(type) || type === TOKEN_TYPE.userDefined ? id : undefined;
  }

  /**
   * Token ids of a text, or of a text made of segments: merges run over the borders of segments as if there were none,
   * and a control token is recognised only where it lies in `special` segments from end to end.
   * @throws AprError USAGE for a text beyond 256 MiB, CONTRACT for a character that the vocabulary cannot write
   */
  encode(text: string | readonly TextSegment[], options: EncodeOptions = {}): number[] {
    const { special = false, addSpecial = false } = options;
    const { bytes, literal } = toBytes(text);
    const out: number[] = [];
    let first = true;
    for (const { id, start, end } of this.#specialTokens.partition(bytes, { control: special, literal })) {
      if (id >= 0) out.push(id);
      else this.#model.encode(bytes, start, end, out, first);
      first = id >= 0;
    }
    if (addSpecial && this.addBos && out[0] !== this.bosId) out.unshift(this.bosId!);
    if (addSpecial && this.addEos && out.at(-1) !== this.eosId) out.push(this.eosId!);
    return out;
  }

  /** Characters other than letters and digits that control tokens begin with, of those in one UTF-16 unit. */
  get controlStarts(): ReadonlySet<string> {
    this.#controlStarts ??= new Set(
      Array.from(this.#vocabulary.types, (type, id) => (isControl(type) ? this.tokenText(id).charAt(0) : '')).filter(
        (start) => /^[^\p{L}\p{N}\s\p{C}]$/u.test(start),
      ),
    );
    return this.#controlStarts;
  }

  /** The text cut at control tokens written in it; `special` marks their texts. */
  splitControl(text: string): TextSegment[] {
    const bytes = encoder.encode(text);
    const fragments = this.#specialTokens.partition(bytes, { control: true });
    const isText = (id: number): boolean => id < 0 || !this.isControl(id);
    if (fragments.every(({ id }) => isText(id))) return text === '' ? [] : [{ text, special: false }];
    return fragments.map(({ id, start, end }) => ({
      text: decoder.decode(bytes.subarray(start, end)),
      special: !isText(id),
    }));
  }

  /**
   * Bytes that a token adds to an answer, which may be part of a character. Control tokens add none, unless `special`
   * asks for their text.
   */
  tokenBytes(id: number, options: { special?: boolean } = {}): Uint8Array {
    const type = this.#vocabulary.types[this.#checked(id)]!;
    if (type === TOKEN_TYPE.unused || type === TOKEN_TYPE.undefined) return new Uint8Array();
    if (isControl(type) && !(options.special ?? false)) return new Uint8Array();
    return this.#model.render(id);
  }

  /** Text of one token as it stands in an answer, control tokens included; U+FFFD for part of a character. */
  tokenText(id: number): string {
    return decoder.decode(this.tokenBytes(id, { special: true }));
  }

  /**
   * Text of these tokens; control tokens are left out unless `special` is set. The space that encoding puts before a
   * text is taken away again. Invalid UTF-8 becomes U+FFFD.
   */
  decode(ids: readonly number[], options: { special?: boolean } = {}): string {
    const pieces: Uint8Array[] = [];
    let first = this.#model.addSpacePrefix;
    let length = 0;
    for (const id of ids) {
      let piece = this.tokenBytes(id, options);
      if (first && !this.isControl(id)) {
        if (piece[0] === 0x20) piece = piece.subarray(1);
        first = false;
      }
      pieces.push(piece);
      length += piece.length;
    }
    return decoder.decode(concatenate(pieces, length));
  }

  #checked(id: number): number {
    if (Number.isInteger(id) && id >= 0 && id < this.vocabularySize) return id;
    const message = `token ${id} is not in the vocabulary of ${this.vocabularySize} tokens`;
    throw new AprError('USAGE', message, { token: id, vocabularySize: this.vocabularySize });
  }
}

/**
 * The tokenizer that a file describes. Whether its special tokens are in order is for the contract to say.
 * @throws AprError BAD_FORMAT, UNSUPPORTED naming the key
 */
export function createTokenizer(metadata: Metadata): Tokenizer {
  return new Tokenizer(metadata);
}

/** What else llama.cpp has, by `tokenizer.ggml.model`. */
const OTHER_KINDS: Readonly<Record<string, string>> = {
  bert: 'WordPiece',
  t5: 'Unigram',
  rwkv: "RWKV's own",
  plamo2: "PLaMo-2's own",
  no_vocab: 'no vocabulary at all',
  none: 'no vocabulary at all',
};

function readModelName(metadata: Metadata): 'gpt2' | 'llama' {
  const key = 'tokenizer.ggml.model';
  const name = metadata.string(key);
  if (name === 'gpt2' || name === 'llama') return name;
  const kind = name === undefined || !Object.hasOwn(OTHER_KINDS, name) ? undefined : OTHER_KINDS[name];
  const which = kind === undefined ? 'which is not known' : `${kind}, which no architecture here uses`;
  const found = name === undefined ? 'missing' : `"${name.slice(0, 80)}", ${which}`;
  const message = `${metadata.sourceName}: ${key} is ${found}; expected gpt2 (byte-level BPE) or llama (SentencePiece)`;
  throw new AprError('UNSUPPORTED', message, { key, found: name ?? null });
}

/**
 * Tokens that swallow the white space behind them. Files do not say; llama.cpp knows it of Phi-3 by the model's name.
 */
function rightStripping(metadata: Metadata, vocabulary: Vocabulary): (id: number) => boolean {
  const name = (metadata.string('general.name') ?? '').toLowerCase();
  if (!name.includes('phi-3') && !name.includes('phi3')) return () => false;
  const kept = new Set(['<unk>', '<s>', '<|endoftext|>'].map((text) => vocabulary.findText(text)));
  return (id) => !kept.has(id);
}

function toBytes(text: string | readonly TextSegment[]) {
  const segments = typeof text === 'string' ? [{ text, special: true }] : text;
  const pieces: Uint8Array[] = [];
  const literal: { start: number; end: number }[] = [];
  let length = 0;
  for (const segment of segments) {
    // Lone surrogates become U+FFFD.
    const bytes = encoder.encode(segment.text);
    pieces.push(bytes);
    if (!segment.special && bytes.length > 0) literal.push({ start: length, end: length + bytes.length });
    length += bytes.length;
    if (length > MAX_TEXT_BYTES) {
      throw new AprError(
        'USAGE',
        `the text has more than ${MAX_TEXT_BYTES} bytes, which is the most that is tokenised`,
      );
    }
  }
  return { bytes: pieces.length === 1 ? pieces[0]! : concatenate(pieces, length), literal };
}

function concatenate(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
