/** Lines of a stream of bytes, one at a time: nothing is read before it is wanted, and no line fills the memory. */

import { AprError } from '../src/errors.ts';
import type { InputStream } from './prompt.ts';

/** No prompt is this long; a stream without newlines ends here. */
const MAX_LINE_BYTES = 16 << 20;
const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/**
 * Every line without its end, "\n" or "\r\n"; a last one without an end too.
 * @throws AprError USAGE for a line that is too long, IO when reading fails
 */
export async function* readLines(stream: InputStream, name: string): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const line of readLinesThatFit(stream, name)) {
    if (line === undefined) throw longLine(name);
    yield line;
  }
}

export function longLine(name: string): AprError {
  return new AprError('USAGE', `${name}: a line is longer than ${MAX_LINE_BYTES} bytes, too long for any prompt`);
}

/**
 * The same for a reader that goes on behind a line that is too long: in its place comes undefined, as soon as it is too
 * long, and the rest of it is skipped.
 * @throws AprError IO when reading fails
 */
export async function* readLinesThatFit(
  stream: InputStream,
  name: string,
): AsyncGenerator<Uint8Array | undefined, void, undefined> {
  // One buffer that grows: of a pipe that gives a byte at a time, a list of pieces would take many times their size.
  let line = new Uint8Array(0);
  let size = 0;
  let skipping = false;
  const add = (piece: Uint8Array): void => {
    if (size + piece.length > line.length) {
      const larger = new Uint8Array(Math.max(2 * line.length, size + piece.length, 256));
      larger.set(line.subarray(0, size));
      line = larger;
    }
    line.set(piece, size);
    size += piece.length;
  };
  const take = (): Uint8Array => {
    const taken = line.subarray(0, size);
    line = new Uint8Array(0);
    size = 0;
    return taken.at(-1) === CARRIAGE_RETURN ? taken.subarray(0, -1) : taken;
  };
  for await (const bytes of chunks(stream, name)) {
    let start = 0;
    for (;;) {
      const end = bytes.indexOf(NEWLINE, start);
      const piece = bytes.subarray(start, end === -1 ? undefined : end);
      if (!skipping) {
        if (size + piece.length > MAX_LINE_BYTES) {
          skipping = true;
          take();
          yield undefined;
        } else add(piece);
      }
      if (end === -1) break;
      if (!skipping) yield take();
      skipping = false;
      start = end + 1;
    }
  }
  if (size > 0) yield take();
}

async function* chunks(stream: InputStream, name: string): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const chunk of stream) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') {
      throw new AprError('NOT_FOUND', `${name}: no such file`, { path: name }, { cause });
    }
    const reason = code === 'EISDIR' ? 'it is a directory' : message;
    throw new AprError('IO', `${name}: cannot be read: ${reason}`, { path: name }, { cause });
  }
}

/** @throws AprError USAGE for bytes that are not UTF-8 */
export function decodeLine(bytes: Uint8Array, name: string, number: number): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: number > 1 }).decode(bytes);
  } catch (cause) {
    const message = `${name}: line ${number} is not valid UTF-8, expected text in UTF-8`;
    throw new AprError('USAGE', message, { path: name, line: number }, { cause });
  }
}
