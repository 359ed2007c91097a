/** The tokens of a model file: bytes, types, special ids. */

import { AprError } from '../errors.ts';
import type { Metadata, StringArray } from '../formats/metadata.ts';
import { ByteStringTable } from './byte-strings.ts';

/** Numbers of `tokenizer.ggml.token_type`. */
export const TOKEN_TYPE = {
  undefined: 0,
  normal: 1,
  unknown: 2,
  control: 3,
  userDefined: 4,
  unused: 5,
  byte: 6,
} as const;

export type TokenType = keyof typeof TOKEN_TYPE;

export const TOKEN_TYPE_NAMES = /* @__PURE__ */ Object.keys(TOKEN_TYPE) as readonly TokenType[];

/** Ends of generation by their text, whatever the file declares: the list of llama.cpp (src/llama-vocab.cpp). */
const END_TEXTS = [
  '<|eot_id|>',
  '<|im_end|>',
  '<|end|>',
  '<|return|>',
  '<|call|>',
  '<|flush|>',
  '<|calls|>',
  '<end_of_turn>',
  '<|endoftext|>',
  '</s>',
  '<|eom_id|>',
  '<EOT>',
  '_<EOT>',
  '[EOT]',
  '[EOS]',
  '<|end_of_text|>',
  '<end_of_utterance>',
  '<eos>',
  '<turn|>',
  '<|tool_response>',
  '<｜end▁of▁sentence｜>',
  '[e~[',
] as const;

/** Tokens of code completion that end an answer too, by the key that declares them; the first text found counts. */
const END_OF_COMPLETION: Readonly<Record<string, readonly string[]>> = {
  'tokenizer.ggml.fim_pad_token_id': ['<|fim_pad|>', '<fim-pad>', '<fim_pad>', '<PAD>', '[PAD]'],
  'tokenizer.ggml.fim_rep_token_id': ['<|fim_repo|>', '<|repo_name|>', '<fim-repo>', '<REPO>', '<reponame>'],
  'tokenizer.ggml.fim_sep_token_id': ['<|file_sep|>'],
};

/** Further texts that are control tokens, whatever the file declares. */
const COMPLETION_TEXTS = [
  '<|fim_prefix|>',
  '<fim-prefix>',
  '<fim_prefix>',
  '<｜fim▁begin｜>',
  '<PRE>',
  '▁<PRE>',
  '<|code_prefix|>',
  '<|prefix|>',
  '<|fim_suffix|>',
  '<fim-suffix>',
  '<fim_suffix>',
  '<｜fim▁hole｜>',
  '<SUF>',
  '▁<SUF>',
  '<|code_suffix|>',
  '<|suffix|>',
  '<|fim_middle|>',
  '<fim-middle>',
  '<fim_middle>',
  '<｜fim▁end｜>',
  '<MID>',
  '▁<MID>',
  '<|code_middle|>',
  '<|middle|>',
] as const;

/** Parts of an answer in gpt-oss's format: always rendered. */
const RENDERED_TEXTS = ['<|channel|>', '<|message|>', '<|start|>', '<|constrain|>'] as const;

const SPECIAL_KEYS = [
  'bos',
  'eos',
  'eot',
  'eom',
  'unknown',
  'seperator',
  'padding',
  'cls',
  'mask',
  'fim_pre',
  'fim_suf',
  'fim_mid',
  'fim_pad',
  'fim_rep',
  'fim_sep',
  'prefix',
  'suffix',
  'middle',
].map((name) => `tokenizer.ggml.${name}_token_id`);

const encoder = /* @__PURE__ */ new TextEncoder();

export class Vocabulary {
  readonly sourceName: string;
  readonly size: number;
  readonly tokens: StringArray;
  /** As declared; {@link TOKEN_TYPE.normal} when the file has no types. */
  readonly declaredTypes: Uint8Array;
  /** With the known control tokens set right. */
  readonly types: Uint8Array;
  /** Ids by metadata key, as the file declares them. */
  readonly declaredSpecialTokens: Readonly<Record<string, number>>;
  /** Those that are below {@link size}. */
  readonly specialTokens: Readonly<Record<string, number>>;
  readonly endOfGeneration: ReadonlySet<number>;
  readonly #table: ByteStringTable;

  /** @throws AprError BAD_FORMAT */
  constructor(metadata: Metadata) {
    const { sourceName } = metadata;
    const tokens = metadata.strings('tokenizer.ggml.tokens');
    if (tokens === undefined || tokens.length === 0) {
      const found = tokens === undefined ? 'missing' : 'empty';
      throw new AprError('BAD_FORMAT', `${sourceName}: tokenizer.ggml.tokens is ${found}, expected the vocabulary`);
    }
    this.sourceName = sourceName;
    this.tokens = tokens;
    this.size = tokens.length;
    this.#table = new ByteStringTable(tokens, 'last');
    this.declaredTypes = readTypes(metadata, tokens.length);
    this.types = this.declaredTypes.slice();
    this.declaredSpecialTokens = readSpecialTokens(metadata);
    // The contract refuses the others; whoever skips it gets none of them as a token.
    const valid = Object.entries(this.declaredSpecialTokens).filter(([, id]) => id < tokens.length);
    this.specialTokens = Object.fromEntries(valid);
    this.endOfGeneration = this.#findEnds();
  }

  /** Bytes of the longest token. */
  get maxLength(): number {
    return this.#table.maxLength;
  }

  /** Id of the token that the file writes as `bytes[start … end)`, or -1; the last one of equal ones. */
  find(bytes: Uint8Array, start: number, end: number): number {
    return this.#table.find(bytes, start, end);
  }

  findText(text: string): number {
    const bytes = encoder.encode(text);
    return this.find(bytes, 0, bytes.length);
  }

  /** The token as the file writes it. */
  bytesOf(id: number): Uint8Array {
    return this.tokens.bytes.subarray(this.tokens.starts[id]!, this.tokens.ends[id]!);
  }

  /** Declared id of `tokenizer.ggml.NAME_token_id`, if it is one of the vocabulary. */
  declared(name: string): number | undefined {
    return this.specialTokens[`tokenizer.ggml.${name}_token_id`];
  }

  /**
   * Marks known control tokens as such and collects the ends of generation: known texts, and what the file declares
   * as end of sequence, turn or message.
   */
  #findEnds(): Set<number> {
    const ends = new Set<number>();
    const mark = (texts: readonly string[], type: number): number[] => {
      const ids = texts.map((text) => this.findText(text)).filter((id) => id >= 0);
      for (const id of ids) this.types[id] = type;
      return ids;
    };
    mark(COMPLETION_TEXTS, TOKEN_TYPE.control);
    for (const [key, texts] of Object.entries(END_OF_COMPLETION)) {
      const declared = this.specialTokens[key];
      const found = declared ?? texts.map((text) => this.findText(text)).find((id) => id >= 0);
      if (found === undefined) continue;
      if (declared === undefined) this.types[found] = TOKEN_TYPE.control;
      ends.add(found);
    }
    for (const id of mark(END_TEXTS, TOKEN_TYPE.control)) ends.add(id);
    mark(RENDERED_TEXTS, TOKEN_TYPE.userDefined);
    for (const name of ['eos', 'eot', 'eom']) {
      const id = this.declared(name);
      if (id !== undefined) ends.add(id);
    }
    this.#removeInnerEnds(ends);
    return ends;
  }

  /** In formats whose messages have parts, what ends a part does not end the answer. */
  #removeInnerEnds(ends: Set<number>): void {
    const has = (text: string): boolean => ends.has(this.findText(text));
    const hasCall = has('<|call|>') || has('<|calls|>');
    if (has('<|end|>') && hasCall && (has('<|return|>') || has('<|flush|>'))) {
      const end = this.findText('<|end|>');
      ends.delete(end);
      this.types[end] = TOKEN_TYPE.userDefined;
    }
    if (has('<|tool_response>') && has('</s>')) {
      const end = this.findText('</s>');
      ends.delete(end);
      this.types[end] = TOKEN_TYPE.normal;
    }
  }
}

function readTypes(metadata: Metadata, size: number): Uint8Array {
  const types = new Uint8Array(size).fill(TOKEN_TYPE.normal);
  const key = 'tokenizer.ggml.token_type';
  const declared = metadata.numbers(key);
  if (declared === undefined) return types;
  assertCovers(metadata, key, declared.length, size);
  for (let id = 0; id < size; id++) {
    const type = declared[id]!;
    types[id] = Number.isInteger(type) && type > 0 && type <= TOKEN_TYPE.byte ? type : TOKEN_TYPE.undefined;
  }
  return types;
}

/** @throws AprError BAD_FORMAT when an array has fewer entries than the vocabulary */
export function assertCovers(metadata: Metadata, key: string, length: number, size: number): void {
  if (length >= size) return;
  const message = `${metadata.sourceName}: ${key} has ${length} entries, expected one for each of the ${size} tokens`;
  throw new AprError('BAD_FORMAT', message, { key, found: length, expected: size });
}

function readSpecialTokens(metadata: Metadata): Record<string, number> {
  const ids: Record<string, number> = {};
  for (const key of SPECIAL_KEYS) {
    const id = metadata.uint(key);
    if (id !== undefined) ids[key] = id;
  }
  return ids;
}
