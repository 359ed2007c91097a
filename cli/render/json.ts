/** JSON as programs read it and terminals show it. */

/**
 * The document on one line, and a newline. What JSON allows and a terminal obeys (controls from DEL on, marks that turn
 * the direction of writing) is escaped: the value is the same.
 */
export function jsonLine(document: unknown): string {
  const text = JSON.stringify(document).replace(
    /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `${text}\n`;
}
