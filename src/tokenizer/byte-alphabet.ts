/**
 * The alphabet of byte-level BPE: each byte is written as one printable character, so that a vocabulary of arbitrary
 * bytes is a list of words. Bytes that print in Latin-1 stand for themselves, the other 68 are U+0100 and on, in order
 * (GPT-2, https://github.com/openai/gpt-2).
 */

function printable(byte: number): boolean {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

function alphabet(): Uint16Array {
  const characters = new Uint16Array(256);
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) characters[byte] = printable(byte) ? byte : next++;
  return characters;
}

/** Code point that stands for each byte. */
export const BYTE_CHARACTERS: Uint16Array = /* @__PURE__ */ alphabet();

/** Byte for each code point below 0x144, -1 where there is none. */
const CHARACTER_BYTES: Int16Array = /* @__PURE__ */ (() => {
  const bytes = new Int16Array(0x144).fill(-1);
  BYTE_CHARACTERS.forEach((character, byte) => {
    bytes[character] = byte;
  });
  return bytes;
})();

/** The text as the alphabet writes it: two bytes of UTF-8 for every character above 0x7e. */
export function toAlphabet(bytes: Uint8Array, start: number, end: number): Uint8Array {
  const out = new Uint8Array((end - start) * 2);
  let length = 0;
  for (let at = start; at < end; at++) {
    const character = BYTE_CHARACTERS[bytes[at]!]!;
    if (character < 0x80) {
      out[length++] = character;
    } else {
      out[length++] = 0xc0 | (character >> 6);
      out[length++] = 0x80 | (character & 0x3f);
    }
  }
  return out.subarray(0, length);
}

/** The bytes that a word of the alphabet stands for. What is not of the alphabet stands for itself. */
export function fromAlphabet(word: Uint8Array): Uint8Array {
  const out = new Uint8Array(word.length);
  let length = 0;
  for (let at = 0; at < word.length; ) {
    const lead = word[at]!;
    const second = word[at + 1];
    const isPair = lead >= 0xc0 && lead < 0xe0 && second !== undefined && (second & 0xc0) === 0x80;
    const character = isPair ? ((lead & 0x1f) << 6) | (second & 0x3f) : lead;
    const byte = lead < 0x80 || isPair ? (CHARACTER_BYTES[character] ?? -1) : -1;
    const size = isPair ? 2 : 1;
    if (byte >= 0) out[length++] = byte;
    else for (let i = 0; i < size; i++) out[length++] = word[at + i]!;
    at += size;
  }
  return out.slice(0, length);
}
