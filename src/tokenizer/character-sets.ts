/**
 * Sets of characters that the expressions of pre-tokenisers spell out. White space is in none of them: llama.cpp takes
 * every white space beyond ASCII for one and the same character there (src/unicode.cpp).
 */

import { LETTER, NUMBER, PUNCTUATION, parseRanges, SPACE } from './code-points.ts';
import type { Member } from './cuts.ts';

export const isNumber: Member = (_, kind) => kind === NUMBER;
export const isLetter: Member = (_, kind) => kind === LETTER;
export const isPunctuation: Member = (_, kind) => kind === PUNCTUATION;
export const isLineFeed: Member = (value) => value === 0x0a;
export const isNoLineFeed: Member = (value) => value !== 0x0a;

const oneOf = (characters: string): ReadonlySet<number> => new Set(Array.from(characters, (c) => c.codePointAt(0)!));

const SYMBOLS = /* @__PURE__ */ oneOf('$+<=>^~|');
export const isPunctuationOrSymbol: Member = (value, kind) => kind === PUNCTUATION || SYMBOLS.has(value);
export const isFalconSymbol: Member = (value, kind) => isPunctuationOrSymbol(value, kind) || value === 0x60;

/** Written in deepseek-coder's expression as [一-龥ࠀ-一가-\ud7ff]. */
export const isAsian: Member = (value, kind) =>
  kind !== SPACE && ((value >= 0x800 && value <= 0x9fa5) || (value >= 0xac00 && value <= 0xd7ff));

/** `[一-龥\u3040-ゟ゠-ヿ]` */
export const isIdeographOrKana: Member = (value) =>
  (value >= 0x4e00 && value <= 0x9fa5) || (value >= 0x3040 && value <= 0x30ff);

export const isHangul: Member = (value) => (value >= 0xac00 && value <= 0xd7a3) || (value >= 0x3131 && value <= 0x318e);
export const isBopomofo: Member = (value) => value >= 0x3105 && value <= 0x312f;

const WIDE_MARKS = /* @__PURE__ */ oneOf('！…“”‘’—：；，');
export const isWidePunctuation: Member = (value) =>
  WIDE_MARKS.has(value) || (value >= 0x3001 && value <= 0x303f) || (value >= 0xfe30 && value <= 0xfe4f);

/** `[!-/:-~！-／：-～‘-‟　-。]` */
export const isDeepseekSymbol: Member = (value) =>
  (value >= 0x21 && value <= 0x7e && !(value >= 0x30 && value <= 0x39)) ||
  (value >= 0x2018 && value <= 0x201f) ||
  (value >= 0x3001 && value <= 0x3002) ||
  (value >= 0xff01 && value <= 0xff0f) ||
  (value >= 0xff1a && value <= 0xff5e);

const SENTENCE_MARKS = /* @__PURE__ */ oneOf('(|.,!?…。，、।۔،)');
/** `[^(\s|.,!?…。，、।۔،)]` */
export const isBloomLetter: Member = (value, kind) => kind !== SPACE && !SENTENCE_MARKS.has(value);

/** Scripts that afmoe sets apart; the range from U+8C48 on stands in llama.cpp's expression. */
export const isAfmoeScript: Member = /* @__PURE__ */ ranges(
  'e40-e7f e80-eff 1000-109f 1100-11ff 1780-17ff 2f00-2fdf 3040-30ff 3400-4dbf 4e00-9fff 8c48-faff ff65-ff9f',
);

/** Letters with case, as deepseek-llm's expression lists them. */
export const isCasedLetter: Member = /* @__PURE__ */ ranges(
  '41-5a 61-7a b5 c0-d6 d8-f6 f8-1ba 1bc-1bf 1c4-293 295-2af 370-373 376 377 37b-37d 37f 386 388-38a 38c ' +
    '38e-3a1 3a3-3f5 3f7-481 48a-52f 531-556 10a0-10c5 13a0-13f5 13f8-13fd 1c90-1cba 1cbd-1cbf 1d00-1d2b ' +
    '1d6b-1d77 1d79-1d9a 1e00-1f15 1f18-1f1d 1f20-1f45 1f48-1f4d 1f50-1f57 1f59 1f5b 1f5d 1f5f-1f7d 1f80-1fb4 ' +
    '1fb6-1fbc 1fbe 1fc2-1fc4 1fc6-1fcc 1fd0-1fd3 1fd6-1fdb 1fe0-1fec 1ff2-1ff4 1ff6-1ffc 2102 2107 210a-2113 ' +
    '2115 2119-211d 2124 2126 2128 212a-212d 212f-2134 2139 213c-213f 2145-2149 214e 2183 2184 2c00-2c7b ' +
    '2c7e-2ce4 2ceb-2cee 2cf2 2cf3 a640-a66d a680-a69b a722-a76f a771-a787 a78b-a78e ab70-abbf fb00-fb06 ' +
    'fb13-fb17 ff21-ff3a ff41-ff5a 10400-1044f 104b0-104d3 104d8-104fb 10c80-10cb2 10cc0-10cf2 118a0-118df ' +
    '1e900-1e943',
);

function ranges(list: string): Member {
  const pairs = parseRanges(list);
  return (value, kind) => kind !== SPACE && pairs.some(([first, last]) => value >= first && value <= last);
}
