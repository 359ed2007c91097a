/** JSON from a file, looked at before it is parsed. */

import { AprError } from '../../errors.ts';
import { decodeUtf8Strictly } from '../gguf/metadata.ts';
import { printable } from '../printable.ts';
import type { Json } from './typed-json.ts';

/** Two bytes of an empty array become some fifty once parsed, so their number is bounded: this is far above any model. */
const MAX_CONTAINERS = 1 << 18;
const MAX_DEPTH = 64;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** @throws AprError BAD_FORMAT for what is not JSON in UTF-8, or has too many objects and arrays, or too deep ones */
export function parseJson(sourceName: string, bytes: Uint8Array): Json {
  const bad = (reason: string, cause?: unknown): AprError =>
    new AprError('BAD_FORMAT', `${sourceName}: the metadata ${reason}`, {}, { cause });
  const { containers, depth } = measure(bytes);
  if (containers > MAX_CONTAINERS) {
    throw bad(`holds ${containers} objects and arrays, expected at most ${MAX_CONTAINERS}`);
  }
  if (depth > MAX_DEPTH) throw bad(`is nested ${depth} levels deep, expected at most ${MAX_DEPTH}`);
  const text = decodeUtf8Strictly(bytes);
  if (text === undefined) throw bad('is not valid UTF-8, expected JSON');
  try {
    return JSON.parse(text) as Json;
  } catch (cause) {
    // The parser's message quotes the file.
    throw bad(`is not JSON: ${printable(cause instanceof Error ? cause.message : String(cause))}`, cause);
  }
}

/** Objects and arrays, and how deep they are nested, in what may or may not be JSON. */
function measure(bytes: Uint8Array): { containers: number; depth: number } {
  let containers = 0;
  let open = 0;
  let depth = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    if (byte === QUOTE) {
      for (i++; i < bytes.length && bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i++;
    } else if (byte === 0x5b || byte === 0x7b) {
      containers++;
      if (++open > depth) depth = open;
    } else if (byte === 0x5d || byte === 0x7d) open--;
  }
  return { containers, depth };
}
