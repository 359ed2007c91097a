/** Strings of JSON, packed as metadata has them. */

import { stringArray } from '../gguf/metadata.ts';
import type { StringArray } from '../metadata.ts';

const encoder = /* @__PURE__ */ new TextEncoder();

/** @param strings text, or bytes that are not valid UTF-8 */
export function packStrings(strings: readonly (string | Uint8Array)[]): StringArray {
  const pieces = strings.map((each) => (typeof each === 'string' ? encoder.encode(each) : each));
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  const starts = new Uint32Array(pieces.length);
  const ends = new Uint32Array(pieces.length);
  let at = 0;
  pieces.forEach((piece, i) => {
    starts[i] = at;
    bytes.set(piece, at);
    at += piece.length;
    ends[i] = at;
  });
  return stringArray(bytes, starts, ends);
}
