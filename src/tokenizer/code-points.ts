/**
 * Text as code points with their classes, for the pre-tokenisers. Letters and numbers are what the runtime's Unicode
 * version says: characters that are newer than it, or than the model, may be cut differently elsewhere.
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
