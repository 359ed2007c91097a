/**
 * Pre-tokenisers of byte-level BPE: text is cut into words, and merges never cross a cut. Each is a regular expression
 * in the model's origin; here it is a scan in one direction, since the expressions backtrack over long runs of white
 * space and JavaScript's classes differ from Unicode's. Which name means which expression is taken from llama.cpp
 * (src/llama-vocab.cpp).
 */

import { type CodePoints, codePoints, LETTER, NUMBER, PUNCTUATION, SPACE } from './code-points.ts';

export interface PreTokenizer {
  /** Cuts applied one after the other, each within the pieces of the one before. */
  readonly steps: readonly Step[];
  /** A word that is a token as a whole is taken without merging. */
  readonly ignoreMerges: boolean;
  /** Whether BOS is added when the file does not say. */
  readonly addBos: boolean;
}

/** Appends the ends of the pieces of `text[start … end)` to `ends`. */
type Step = (text: CodePoints, start: number, end: number, ends: Ends) => void;

/** Growing list of piece ends, in code points. */
class Ends {
  values = new Uint32Array(64);
  length = 0;

  push(end: number): void {
    if (this.length === this.values.length) {
      const grown = new Uint32Array(this.length * 2);
      grown.set(this.values);
      this.values = grown;
    }
    this.values[this.length++] = end;
  }
}

/** Ends of the words of well-formed UTF-8 `bytes[start … end)`, as positions in the bytes. */
export function splitWords(preTokenizer: PreTokenizer, bytes: Uint8Array, start: number, end: number): Uint32Array {
  const text = codePoints(bytes, start, end);
  let pieces = new Ends();
  pieces.push(text.length);
  for (const step of preTokenizer.steps) {
    const next = new Ends();
    for (let i = 0, from = 0; i < pieces.length; i++) {
      const to = pieces.values[i]!;
      step(text, from, to, next);
      from = to;
    }
    pieces = next;
  }
  return pieces.values.subarray(0, pieces.length).map((piece) => text.offsets[piece]!);
}

/** Contractions 's 't 'm 'd 're 've 'll at `at`: their length, or 0. */
function contraction({ values }: CodePoints, at: number, end: number, anyCase: boolean): number {
  if (values[at] !== 0x27) return 0;
  // Setting bit 5 makes ASCII letters small; nothing else becomes one of these letters but what is out of ASCII.
  const letter = (position: number): string => {
    const value = position < end ? values[position]! : 0;
    return value < 0x80 ? String.fromCharCode(anyCase && value >= 0x41 && value <= 0x5a ? value | 0x20 : value) : '';
  };
  const first = letter(at + 1);
  if (first !== '' && 'stmd'.includes(first)) return 2;
  const pair = first + letter(at + 2);
  return pair === 're' || pair === 've' || pair === 'll' ? 3 : 0;
}

function runEnd({ classes }: CodePoints, at: number, end: number, kind: number): number {
  let position = at;
  while (position < end && classes[position] === kind) position++;
  return position;
}

/** End of a run of what is neither letter, number nor white space. */
function symbolsEnd({ classes }: CodePoints, at: number, end: number): number {
  let position = at;
  while (position < end && classes[position]! >= PUNCTUATION) position++;
  return position;
}

/** White space in front of a word leaves its last character to the word: `\s+(?!\S)|\s+`. */
function spacesEnd(text: CodePoints, at: number, end: number): number {
  const stop = runEnd(text, at, end, SPACE);
  return stop < end && stop - at > 1 ? stop - 1 : stop;
}

/** `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+` */
const gpt2Words: Step = (text, start, end, ends) => {
  const { values, classes } = text;
  for (let at = start; at < end; ) {
    const short = contraction(text, at, end, false);
    const body = values[at] === 0x20 && at + 1 < end ? at + 1 : at;
    const kind = classes[body]!;
    if (short > 0) at += short;
    else if (kind === LETTER || kind === NUMBER) at = runEnd(text, body, end, kind);
    else if (kind >= PUNCTUATION) at = symbolsEnd(text, body, end);
    else at = spacesEnd(text, at, end);
    ends.push(at);
  }
};

const isBreak = (value: number | undefined): boolean => value === 0x0a || value === 0x0d;

/**
 * `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
 */
function modernWords(digits: number): Step {
  return (text, start, end, ends) => {
    const { values, classes } = text;
    for (let at = start; at < end; ) {
      at = modernWordEnd(text, values, classes, at, end, digits);
      ends.push(at);
    }
  };
}

function modernWordEnd(
  text: CodePoints,
  values: Uint32Array,
  classes: Uint8Array,
  at: number,
  end: number,
  digits: number,
): number {
  const short = contraction(text, at, end, true);
  if (short > 0) return at + short;
  const kind = classes[at]!;
  if (kind === LETTER) return runEnd(text, at, end, LETTER);
  if (kind === NUMBER) return runEnd(text, at, Math.min(end, at + digits), NUMBER);
  if (!isBreak(values[at]) && at + 1 < end && classes[at + 1] === LETTER) return runEnd(text, at + 1, end, LETTER);
  const body = values[at] === 0x20 && at + 1 < end ? at + 1 : at;
  if (classes[body]! >= PUNCTUATION) {
    let position = symbolsEnd(text, body, end);
    while (position < end && isBreak(values[position])) position++;
    return position;
  }
  const stop = runEnd(text, at, end, SPACE);
  for (let position = stop; position > at; position--) {
    if (isBreak(values[position - 1])) return position;
  }
  return spacesEnd(text, at, end);
}

type Member = (value: number, kind: number) => boolean;

/** Cuts out runs of members, at most `most` long; a run of fewer than `least` stays in the text around it. */
function runs(member: Member, least: number, most: number, leadingSpace = false): Step {
  return ({ values, classes }, start, end, ends) => {
    let from = start;
    for (let at = start; at < end; ) {
      let position = at;
      if (leadingSpace && classes[at] === SPACE) position++;
      const limit = Math.min(end, position + most);
      const body = position;
      while (position < limit && member(values[position]!, classes[position]!)) position++;
      if (position - body < least) {
        at++;
        continue;
      }
      if (at > from) ends.push(at);
      ends.push(position);
      from = position;
      at = position;
    }
    if (from < end) ends.push(end);
  };
}

const isNumber: Member = (_, kind) => kind === NUMBER;
const isDigit: Member = (value) => value >= 0x30 && value <= 0x39;
const isLetter: Member = (_, kind) => kind === LETTER;
const isPunctuation: Member = (_, kind) => kind === PUNCTUATION;
const SYMBOLS = /* @__PURE__ */ new Set(Array.from('$+<=>^~|', (character) => character.charCodeAt(0)));
const isPunctuationOrSymbol: Member = (value, kind) => kind === PUNCTUATION || SYMBOLS.has(value);
/** Written in deepseek-coder's expression as [一-龥ࠀ-一가-퟿]. */
const isAsian: Member = (value) => (value >= 0x800 && value <= 0x9fa5) || (value >= 0xac00 && value <= 0xd7ff);

const GPT2: PreTokenizer = { steps: [gpt2Words], ignoreMerges: false, addBos: false };
/** Every number by itself first: `\p{N}`. */
const SINGLE_NUMBERS: PreTokenizer = {
  steps: [/* @__PURE__ */ runs(isNumber, 1, 1), gpt2Words],
  ignoreMerges: false,
  addBos: false,
};
const QWEN2: PreTokenizer = { steps: [/* @__PURE__ */ modernWords(1)], ignoreMerges: false, addBos: false };
const TRIPLE_DIGITS: PreTokenizer = { steps: [/* @__PURE__ */ modernWords(3)], ignoreMerges: false, addBos: false };
const LLAMA3: PreTokenizer = { ...TRIPLE_DIGITS, ignoreMerges: true, addBos: true };
const DEFAULT: PreTokenizer = {
  steps: [
    /* @__PURE__ */ runs(isPunctuationOrSymbol, 1, Number.POSITIVE_INFINITY),
    gpt2Words,
    /* @__PURE__ */ runs(isNumber, 1, Number.POSITIVE_INFINITY),
    /* @__PURE__ */ runs(isDigit, 3, 3),
  ],
  ignoreMerges: false,
  addBos: false,
};
const DEEPSEEK_CODER: PreTokenizer = {
  steps: [
    /* @__PURE__ */ runs(isBreak, 1, 1),
    /* @__PURE__ */ runs(isLetter, 1, Number.POSITIVE_INFINITY, true),
    /* @__PURE__ */ runs(isPunctuation, 1, Number.POSITIVE_INFINITY, true),
    /* @__PURE__ */ runs(isAsian, 1, Number.POSITIVE_INFINITY),
    /* @__PURE__ */ runs(isNumber, 1, 1),
  ],
  ignoreMerges: false,
  addBos: false,
};

const BY_NAME: Readonly<Record<string, PreTokenizer>> = {
  default: DEFAULT,
  'gpt-2': GPT2,
  'phi-2': GPT2,
  mpt: GPT2,
  olmo: GPT2,
  jais: GPT2,
  trillion: GPT2,
  exaone4: GPT2,
  gigachat: GPT2,
  mellum: GPT2,
  'a.x-4.0': GPT2,
  'granite-docling': GPT2,
  smollm: SINGLE_NUMBERS,
  starcoder: SINGLE_NUMBERS,
  refact: SINGLE_NUMBERS,
  'command-r': SINGLE_NUMBERS,
  codeshell: SINGLE_NUMBERS,
  exaone: SINGLE_NUMBERS,
  'minerva-7b': SINGLE_NUMBERS,
  mellum2: SINGLE_NUMBERS,
  qwen2: QWEN2,
  'deepseek-r1-qwen': QWEN2,
  megrez: QWEN2,
  kormo: QWEN2,
  stablelm2: QWEN2,
  hunyuan: QWEN2,
  'solar-open': QWEN2,
  'grok-2': QWEN2,
  dbrx: TRIPLE_DIGITS,
  'smaug-bpe': TRIPLE_DIGITS,
  glm4: TRIPLE_DIGITS,
  'chatglm-bpe': TRIPLE_DIGITS,
  llama3: LLAMA3,
  'llama-v3': LLAMA3,
  'llama-bpe': LLAMA3,
  falcon3: LLAMA3,
  'falcon-h1': LLAMA3,
  pixtral: LLAMA3,
  'midm-2.0': LLAMA3,
  lfm2: LLAMA3,
  'deepseek-coder': DEEPSEEK_CODER,
};

/** The pre-tokeniser of that `tokenizer.ggml.pre`, undefined for an unknown name. */
export function preTokenizerOf(name: string): PreTokenizer | undefined {
  return Object.hasOwn(BY_NAME, name) ? BY_NAME[name] : undefined;
}

export const PRE_TOKENIZER_NAMES: readonly string[] = /* @__PURE__ */ Object.keys(BY_NAME);
