/** Synthetic vocabularies of real size, which llama.cpp's tokenizer and ours both load. */

import { array, bool, type MetadataValue, string, u32 } from './gguf-writer.ts';
import type { Random } from './random.ts';

/** Token types of GGUF, `enum llama_token_type`. */
export const TOKEN_TYPE = { normal: 1, unknown: 2, control: 3, unused: 5, byte: 6 } as const;

export interface Vocabulary {
  readonly tokens: readonly string[];
  readonly types: readonly number[];
}

export interface BpeVocabulary extends Vocabulary {
  /** Pairs as a file writes them, most important first. */
  readonly merges: readonly string[];
}

/** The character that stands for a byte in GPT-2's byte-level BPE: itself where printable, else one from U+0100 on. */
export function byteCharacters(): string[] {
  const printable = (byte: number): boolean =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : next++));
}

/**
 * Byte-level BPE vocabulary: 256 bytes in GPT-2's order, one token a merge, then control tokens, then unused ones up
 * to `size`. Merges join earlier tokens into ever longer pseudo-words, some of them with a leading space, and bytes
 * into ideographs.
 */
export function bpeVocabulary(
  size: number,
  mergeCount: number,
  control: readonly string[],
  random: Random,
): BpeVocabulary {
  const characters = byteCharacters();
  const order = [...characters.keys()].sort((a, b) => (characters[a]! < characters[b]! ? -1 : 1));
  const tokens = order.map((byte) => characters[byte]!);
  const known = new Set(tokens);
  const merges: string[] = [];
  const join = (left: string, right: string): boolean => {
    if (merges.length >= mergeCount || known.has(left + right)) return false;
    known.add(left + right);
    tokens.push(left + right);
    merges.push(`${left} ${right}`);
    return true;
  };

  const space = characters[0x20]!;
  const letters = [...'etaoinsrhldcumfpgwybvkxjqzETAOINSRHLDCUMFPGWYBVKXJQZ'];
  const starts = [...letters.map((letter) => space + letter), ...letters]; // what a word begins with
  const parts = [...letters]; // what it goes on with
  for (const letter of letters) join(space, letter);
  const ideographs = Math.floor(mergeCount / 30);
  while (merges.length < mergeCount) {
    // Squared: early, short tokens are joined more often, as in a trained vocabulary.
    const left = starts[Math.floor(random.between(0, 1) ** 2 * starts.length)]!;
    const right = parts[Math.floor(random.between(0, 1) ** 3 * parts.length)]!;
    if (left.length + right.length <= 14 && join(left, right)) {
      starts.push(left + right);
      if (!left.startsWith(space)) parts.push(left + right);
    }
    if (merges.length % 20 === 0 && merges.length < ideographs * 20) {
      const bytes = [...Buffer.from(String.fromCodePoint(0x4e00 + random.below(0x5000)))];
      const [first, second, third] = bytes.map((byte) => characters[byte]!) as [string, string, string];
      join(first, second);
      if (known.has(first + second)) join(first + second, third);
    }
  }
  const types = tokens.map((): number => TOKEN_TYPE.normal);
  for (const token of control) types[tokens.push(token) - 1] = TOKEN_TYPE.control;
  while (tokens.length < size) types[tokens.push(`[PAD${tokens.length}]`) - 1] = TOKEN_TYPE.unused;
  if (tokens.length !== size) throw new RangeError(`${tokens.length} tokens do not fit a vocabulary of ${size}`);
  return { tokens, types, merges };
}

/** ChatML, as Qwen's files carry it, without tools. */
export const CHAT_ML =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}" +
  "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/** Metadata of a byte-level BPE tokenizer; `bos` and `eos` are tokens of the vocabulary. */
export function bpeMetadata(
  vocabulary: BpeVocabulary,
  { pre, bos, eos, addBos }: { pre: string; bos: string; eos: string; addBos: boolean },
): Record<string, MetadataValue> {
  return {
    'tokenizer.ggml.model': string('gpt2'),
    'tokenizer.ggml.pre': string(pre),
    'tokenizer.ggml.tokens': array('string', vocabulary.tokens),
    'tokenizer.ggml.token_type': array('i32', vocabulary.types),
    'tokenizer.ggml.merges': array('string', vocabulary.merges),
    'tokenizer.ggml.bos_token_id': u32(idOf(vocabulary, bos)),
    'tokenizer.ggml.eos_token_id': u32(idOf(vocabulary, eos)),
    'tokenizer.ggml.add_bos_token': bool(addBos),
  };
}

export function idOf({ tokens }: Vocabulary, token: string): number {
  const id = tokens.indexOf(token);
  if (id < 0) throw new RangeError(`the vocabulary has no token ${JSON.stringify(token)}`);
  return id;
}

/** The character that SentencePiece writes for a space. */
const SPACE = '\u2581';

/** Control tokens of Llama 2's vocabulary, in its order. */
export const LLAMA_CONTROL: readonly string[] = ['<unk>', '<s>', '</s>'];

/**
 * SentencePiece vocabulary with byte fallback: `control` tokens, among them `<unk>`, 256 bytes, printable ASCII, then the
 * beginnings of `words`, with and without a leading space, shortest first, up to `size` tokens.
 */
export function sentencePieceVocabulary(
  size: number,
  words: readonly string[],
  control: readonly string[] = LLAMA_CONTROL,
): Vocabulary {
  const tokens = [...control];
  const types: number[] = control.map((token) => (token === '<unk>' ? TOKEN_TYPE.unknown : TOKEN_TYPE.control));
  for (let byte = 0; byte < 256; byte++) {
    types[tokens.push(`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`) - 1] = TOKEN_TYPE.byte;
  }
  const ascii = Array.from({ length: 94 }, (_, i) => String.fromCharCode(0x21 + i));
  const pieces = words.flatMap((word) =>
    [word, SPACE + word].flatMap((text) => [...text].map((_, end) => [...text].slice(0, end + 1).join(''))),
  );
  pieces.sort((a, b) => a.length - b.length);
  const known = new Set([SPACE, ...ascii, ...pieces.filter((piece) => piece.length > 1)]);
  for (const piece of known) if (tokens.length < size) types[tokens.push(piece) - 1] = TOKEN_TYPE.normal;
  if (tokens.length < size) throw new RangeError(`words give ${tokens.length} tokens, fewer than ${size}`);
  return { tokens, types };
}

/** Metadata of a SentencePiece tokenizer: a longer piece has a better score. */
export function sentencePieceMetadata(
  vocabulary: Vocabulary,
  { bos = '<s>', eos = '</s>', addSpacePrefix = true } = {},
): Record<string, MetadataValue> {
  const { tokens, types } = vocabulary;
  const score = (token: string, i: number): number =>
    types[i] === TOKEN_TYPE.normal ? 8 * token.length - i / 64 - 64 : 0;
  return {
    'tokenizer.ggml.model': string('llama'),
    'tokenizer.ggml.tokens': array('string', tokens),
    'tokenizer.ggml.scores': array('f32', tokens.map(score)),
    'tokenizer.ggml.token_type': array('i32', types),
    'tokenizer.ggml.bos_token_id': u32(idOf(vocabulary, bos)),
    'tokenizer.ggml.eos_token_id': u32(idOf(vocabulary, eos)),
    'tokenizer.ggml.unknown_token_id': u32(idOf(vocabulary, '<unk>')),
    // Absent, it is true.
    ...(addSpacePrefix ? {} : { 'tokenizer.ggml.add_space_prefix': bool(false) }),
  };
}
