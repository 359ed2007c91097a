/** Several sources end to end. */

import { type ByteSource, checkRange } from './byte-source.ts';

/**
 * A source over all of `parts`, which it closes with itself.
 * @param name what messages call it
 */
export function partsSource(name: string, parts: readonly ByteSource[]): ByteSource {
  const source: ByteSource = {
    name,
    size: parts.reduce((sum, { size }) => sum + size, 0),
    locator: { kind: 'parts', parts: parts.map(({ size, locator }) => ({ size, locator })) },
    parts,
    read: async (offset, length) => {
      checkRange(source, offset, length);
      const pieces = locateParts(parts, offset, length);
      const [only] = pieces;
      if (pieces.length === 1 && only !== undefined) return parts[only.part]!.read(only.offset, only.length);
      const bytes = new Uint8Array(length);
      let at = 0;
      for (const piece of pieces) {
        bytes.set(await parts[piece.part]!.read(piece.offset, piece.length), at);
        at += piece.length;
      }
      return bytes;
    },
    close: async () => {
      for (const part of parts) await part.close();
    },
  };
  return source;
}

export interface Piece {
  /** Number of the part. */
  readonly part: number;
  /** Within it. */
  readonly offset: number;
  readonly length: number;
}

/** Where the range lies in parts of these sizes, in order. */
export function locateParts(parts: readonly { readonly size: number }[], offset: number, length: number): Piece[] {
  const pieces: Piece[] = [];
  let start = 0;
  let at = offset;
  let left = length;
  for (let part = 0; part < parts.length && left > 0; part++) {
    const { size } = parts[part]!;
    const inner = at - start;
    if (inner < size) {
      const taken = Math.min(size - inner, left);
      pieces.push({ part, offset: inner, length: taken });
      at += taken;
      left -= taken;
    }
    start += size;
  }
  return pieces;
}
