/**
 * Words as the expressions of byte-level BPE models find them. Each is a scan in one direction, since the expressions
 * backtrack over long runs and JavaScript's classes differ from Unicode's.
 */

import { type CodePoints, LETTER, MARK, NUMBER, PUNCTUATION, SPACE, SYMBOL } from './code-points.ts';
import { isBreak, type Matcher, matches, type Step } from './cuts.ts';

/** Contractions 's 't 'm 'd 're 've 'll at `at`: their length, or 0. */
function contraction({ values }: CodePoints, at: number, end: number, anyCase: boolean): number {
  if (values[at] !== 0x27 || at >= end) return 0;
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

/** End of a run of what is neither letter, number nor white space; marks are among it or not. */
function symbolsEnd({ classes }: CodePoints, at: number, end: number, marks: boolean): number {
  let position = at;
  while (position < end && classes[position]! >= PUNCTUATION && (marks || classes[position] !== MARK)) position++;
  return position;
}

/** White space in front of a word leaves its last character to the word: `\s+(?!\S)|\s+`. */
function spacesEnd(text: CodePoints, at: number, end: number): number {
  const stop = runEnd(text, at, end, SPACE);
  return stop < end && stop - at > 1 ? stop - 1 : stop;
}

/** `\s*[\r\n]+|\s+(?!\S)|\s+` */
function linesOrSpacesEnd(text: CodePoints, at: number, end: number): number {
  const stop = runEnd(text, at, end, SPACE);
  for (let position = stop; position > at; position--) if (isBreak(text.values[position - 1])) return position;
  return stop < end && stop - at > 1 ? stop - 1 : stop;
}

/** `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+` */
export const gpt2Words: Step = matches((text, at, end) => {
  const { values, classes } = text;
  const short = contraction(text, at, end, false);
  if (short > 0) return at + short;
  const body = values[at] === 0x20 && at + 1 < end ? at + 1 : at;
  const kind = classes[body]!;
  if (kind === LETTER || kind === NUMBER) return runEnd(text, body, end, kind);
  return kind >= PUNCTUATION ? symbolsEnd(text, body, end, true) : spacesEnd(text, at, end);
});

/** What a word may begin with that is not part of it: `[^\r\n\p{L}\p{N}]?`. */
function canLead({ values, classes }: CodePoints, at: number): boolean {
  return classes[at] !== LETTER && classes[at] !== NUMBER && !isBreak(values[at]);
}

/** `[^\r\n\p{L}\p{N}]?\p{L}+` */
const letters: Matcher = (text, at, end) => {
  const body = canLead(text, at) ? at + 1 : at;
  const stop = runEnd(text, body, end, LETTER);
  return stop > body ? stop : -1;
};

/** `[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+` */
const lettersAndMarks: Matcher = (text, at, end) => {
  const { classes } = text;
  let stop = canLead(text, at) && classes[at] !== MARK ? at + 1 : at;
  const body = stop;
  while (stop < end && (classes[stop] === LETTER || classes[stop] === MARK)) stop++;
  return stop > body ? stop : -1;
};

/** `[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+`: a word goes on over single spaces. */
const spacedLetters: Matcher = (text, at, end) => {
  const { values, classes } = text;
  let stop = canLead(text, at) ? at + 1 : at;
  if (stop >= end || classes[stop] !== LETTER) return -1;
  while (stop < end) {
    if (classes[stop] === LETTER || classes[stop] === MARK) stop++;
    else if (values[stop] === 0x20 && stop + 1 < end && classes[stop + 1] === LETTER) stop += 2;
    else break;
  }
  return stop;
};

/** Ideographs as llama.cpp's `kimi-k2` knows them (src/unicode.cpp): blocks, not the Unicode property. */
function isHan(value: number): boolean {
  if (value < 0x20000) {
    return (
      (value >= 0x4e00 && value <= 0x9fff) ||
      (value >= 0x3400 && value <= 0x4dbf) ||
      (value >= 0xf900 && value <= 0xfaff)
    );
  }
  return value <= 0x2a6df || (value >= 0x2a700 && value <= 0x2ebef) || (value >= 0x2f800 && value <= 0x2fa1f);
}

/** Letters other than ideographs. */
const lettersWithoutHan: Matcher = (text, at, end) => {
  const { values, classes } = text;
  const body = canLead(text, at) ? at + 1 : at;
  let stop = body;
  while (stop < end && classes[stop] === LETTER && !isHan(values[stop]!)) stop++;
  return stop > body ? stop : -1;
};

const isSmall = (value: number): boolean => value >= 0x61 && value <= 0x7a;
const isCapital = (value: number): boolean => value >= 0x41 && value <= 0x5a;

/**
 * `LEAD?U*S+|LEAD?U+S*`, where U is a letter but no small ASCII letter, S one but no ASCII capital: a word is cut
 * before a capital. Letters beyond ASCII have no case here, as in llama.cpp's expressions.
 */
function casedLetters(marks: boolean): Matcher {
  return (text, at, end) => {
    const { values, classes } = text;
    const isWord = (i: number): boolean => classes[i] === LETTER || (marks && classes[i] === MARK);
    const capitalsEnd = (from: number): number => {
      let stop = from;
      while (stop < end && isWord(stop) && !isSmall(values[stop]!)) stop++;
      return stop;
    };
    /** `U*S+` */
    const small = (from: number): number => {
      const capitals = capitalsEnd(from);
      if (capitals < end && isWord(capitals)) {
        let stop = capitals;
        while (stop < end && isWord(stop) && !isCapital(values[stop]!)) stop++;
        return stop;
      }
      for (let last = capitals; last > from; last--) if (!isCapital(values[last - 1]!)) return last;
      return -1;
    };
    const leads = canLead(text, at) && at + 1 < end;
    let stop = leads ? small(at + 1) : -1;
    if (stop < 0) stop = small(at);
    if (stop >= 0) return stop;
    // Only capitals are left of `U+S*`.
    if (leads && capitalsEnd(at + 1) > at + 1) return capitalsEnd(at + 1);
    return capitalsEnd(at) > at ? capitalsEnd(at) : -1;
  };
}

const WORDS = {
  letters,
  lettersAndMarks,
  spacedLetters,
  lettersWithoutHan,
  casedLetters: /* @__PURE__ */ casedLetters(false),
  casedLettersAndMarks: /* @__PURE__ */ casedLetters(true),
} as const;

export interface WordRules {
  /** Default `letters`. */
  readonly words?: keyof typeof WORDS;
  /** Contractions of any case: pieces of their own, or the end of the word before. Default `own`. */
  readonly contractions?: 'own' | 'attached' | 'none';
  /** Most digits of a piece. */
  readonly digits: number;
  /** What follows symbols and belongs to them: `[\r\n]*`, `[\r\n/]*`, `[\r\n/]?` or nothing. Default `breaks`. */
  readonly tail?: 'breaks' | 'breaksAndSlashes' | 'breakOrSlash' | 'none';
  /** Marks are no symbols: `[^\s\p{L}\p{M}\p{N}]`. */
  readonly symbolsWithoutMarks?: true;
}

/**
 * `'s|'t|…|WORD|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+TAIL|\s*[\r\n]+|\s+(?!\S)|\s+` and its kin. Each character is part of a
 * piece that is found.
 */
export function modernWords(rules: WordRules): Step {
  const { words = 'letters', contractions = 'own', digits, tail = 'breaks' } = rules;
  const word = WORDS[words];
  const marks = rules.symbolsWithoutMarks !== true;
  return matches((text, at, end) => {
    const { values, classes } = text;
    if (contractions === 'own') {
      const short = contraction(text, at, end, true);
      if (short > 0) return at + short;
    }
    if (words === 'lettersWithoutHan' && isHan(values[at]!)) {
      let stop = at + 1;
      while (stop < end && isHan(values[stop]!)) stop++;
      return stop;
    }
    const stop = word(text, at, end);
    if (stop >= 0) return contractions === 'attached' ? stop + contraction(text, stop, end, true) : stop;
    if (classes[at] === NUMBER) return runEnd(text, at, Math.min(end, at + digits), NUMBER);
    const body = values[at] === 0x20 && at + 1 < end ? at + 1 : at;
    const symbols = symbolsEnd(text, body, end, marks);
    return symbols > body ? tailEnd(values, symbols, end, tail) : linesOrSpacesEnd(text, at, end);
  });
}

function tailEnd(values: Uint32Array, at: number, end: number, tail: NonNullable<WordRules['tail']>): number {
  if (tail === 'none') return at;
  const slash = tail === 'breaks' ? -1 : 0x2f;
  const most = tail === 'breakOrSlash' ? Math.min(end, at + 1) : end;
  let stop = at;
  while (stop < most && (isBreak(values[stop]) || values[stop] === slash)) stop++;
  return stop;
}

/**
 * White space by powers of two, in pieces of {@link modernWords}:
 * `\s{512}(?!\S)|\s{256}(?!\S)|…|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}` in place of `\s+(?!\S)|\s+`.
 */
export const spacesByPowers: Step = ({ values, classes }, start, end, ends) => {
  // A piece that ends in white space is nothing else; those that end in a break stay whole.
  if (classes[end - 1] === SPACE && !isBreak(values[end - 1])) {
    for (let at = start, size = 512; at < end; ) {
      while (size > end - at) size /= 2;
      at += size;
      ends.push(at);
    }
  } else ends.push(end);
};

/** Punctuation and symbols of ASCII. */
export const isAsciiSymbol = (value: number): boolean =>
  value > 0x20 && value < 0x7f && !(value >= 0x30 && value <= 0x39) && !isSmall(value) && !isCapital(value);

/**
 * `[ASCII symbol][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`, or
 * with single breaks `… | ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+`. Numbers were cut out before; other characters are found
 * by none of it.
 */
export function deepseekWords(breaks: 'joined' | 'single'): Step {
  return matches((text, at, end) => {
    const { values, classes } = text;
    if (isAsciiSymbol(values[at]!)) {
      let stop = at + 1;
      while (stop < end && (isSmall(values[stop]!) || isCapital(values[stop]!))) stop++;
      if (stop > at + 1) return stop;
    }
    const kind = classes[at]!;
    if (kind !== PUNCTUATION && kind !== SYMBOL) {
      let stop = kind === LETTER || kind === MARK || isBreak(values[at]) ? at : at + 1;
      const body = stop;
      while (stop < end && (classes[stop] === LETTER || classes[stop] === MARK)) stop++;
      if (stop > body) return stop;
    }
    const body = values[at] === 0x20 ? at + 1 : at;
    let stop = body;
    while (stop < end && (classes[stop] === PUNCTUATION || classes[stop] === SYMBOL)) stop++;
    if (stop > body) return breaks === 'joined' ? tailEnd(values, stop, end, 'breaks') : stop;
    if (kind !== SPACE) return -1;
    if (breaks === 'joined') return linesOrSpacesEnd(text, at, end);
    return isBreak(values[at]) ? at + 1 : spacesEnd(text, at, end);
  });
}
