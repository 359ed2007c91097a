/**
 * Text as code points with their classes, for the pre-tokenisers: those of Unicode 15.1, as in llama.cpp
 * (src/unicode-data.cpp), whatever the runtime knows beyond it.
 */

/** A letter (`\p{L}`). */
export const LETTER = 1;
/** A number (`\p{N}`). */
export const NUMBER = 2;
/** White space as Unicode defines it. */
export const SPACE = 3;
/** Punctuation (`\p{P}`); everything from here on is neither letter, number nor space. */
export const PUNCTUATION = 4;
/** A symbol (`\p{S}`). */
export const SYMBOL = 5;
/** A combining mark (`\p{M}`). */
export const MARK = 6;
export const OTHER = 7;

export interface CodePoints {
  readonly length: number;
  readonly values: Uint32Array;
  /** {@link LETTER} … {@link OTHER}. */
  readonly classes: Uint8Array;
  /** Position of each code point in the bytes, and behind the last one that of the end. */
  readonly offsets: Uint32Array;
}

/** Assigned in Unicode 16 and 17 (DerivedAge.txt of the Unicode Character Database); the gaps between are unassigned. */
const NEWER = /* @__PURE__ */ parseRanges(
  '88f 897 c5c cdc 1acf-1aeb 1b4e-1b4f 1b7f 1c89-1c8a 20c1 2427-2429 2b96 31e4-31e5 a7cb-a7cf a7d2 a7d4 ' +
    'a7da-a7f1 fbc3-fbd2 fd90-fd91 fdc8-fdce 105c0-105f3 10940-10959 10d40-10d8f 10ec2-10efc 11380-113e2 ' +
    '116d0-116e3 11b60-11bf9 11db0-11de9 11f5a 13460-143fa 16100-16139 16d40-16d79 16ea0-16ed3 16ff2-16ff6 ' +
    '187f8-187ff 18cff 18d09-18df2 1cc00-1cef0 1e5d0-1e6ff 1f6d8 1f777-1f77a 1f8b2-1f8d8 1fa54-1fa57 ' +
    '1fa89-1fa8f 1fabe 1fac6-1facd 1fadc-1fadf 1fae9-1faef 1fbcb-1fbef 1fbfa 2b73a-2b73f 2cea2-2cead ' +
    '323b0-33479',
);

/** Code points as hexadecimal numbers and ranges, parted by spaces. */
export function parseRanges(list: string): readonly (readonly [first: number, last: number])[] {
  return list.split(' ').map((range) => {
    const [first, last = first] = range.split('-').map((bound) => Number.parseInt(bound, 16));
    return [first!, last!] as const;
  });
}

/** Classes found so far; 0 is not looked up yet. Filled on demand: most text uses few of the 1.1 million. */
let known: Uint8Array | undefined;

/** Code points of well-formed UTF-8. */
export function codePoints(bytes: Uint8Array, start: number, end: number): CodePoints {
  known ??= new Uint8Array(0x110000);
  const values = new Uint32Array(end - start);
  const classes = new Uint8Array(end - start);
  const offsets = new Uint32Array(end - start + 1);
  let length = 0;
  for (let at = start; at < end; length++) {
    const lead = bytes[at]!;
    const size = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    let value = size === 1 ? lead : lead & (0xff >> (size + 1));
    for (let i = 1; i < size; i++) value = (value << 6) | (bytes[at + i]! & 0x3f);
    values[length] = value;
    if (known[value] === 0) known[value] = classify(value);
    classes[length] = known[value]!;
    offsets[length] = at;
    at += size;
  }
  offsets[length] = end;
  return { length, values, classes, offsets };
}

function classify(value: number): number {
  if (isSpace(value)) return SPACE;
  if (NEWER.some(([first, last]) => value >= first && value <= last)) return OTHER;
  const character = String.fromCodePoint(value);
  if (/\p{L}/u.test(character)) return LETTER;
  if (/\p{N}/u.test(character)) return NUMBER;
  if (/\p{P}/u.test(character)) return PUNCTUATION;
  if (/\p{S}/u.test(character)) return SYMBOL;
  return /\p{M}/u.test(character) ? MARK : OTHER;
}

// Not `\s`: that holds U+FEFF, which is no white space in Unicode, and lacks U+0085, which is.
function isSpace(value: number): boolean {
  if (value <= 0x20) return value === 0x20 || (value >= 9 && value <= 13);
  if (value < 0x1680) return value === 0x85 || value === 0xa0;
  if (value <= 0x200a) return value === 0x1680 || value >= 0x2000;
  return value === 0x2028 || value === 0x2029 || value === 0x202f || value === 0x205f || value === 0x3000;
}
