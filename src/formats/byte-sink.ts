/** Where a written model goes, and how weights get there. */

import type { ByteSource } from './byte-source.ts';

/** Takes bytes one after the other. The platform folders provide implementations. */
export interface ByteSink {
  /**
   * Appends; may keep no reference to `bytes` once the promise has settled.
   * @throws AprError IO
   */
  write(bytes: Uint8Array): Promise<void>;
}

/** Weights are held this many bytes at a time. */
const CHUNK_BYTES = 4 << 20;

/** The bytes `offset … offset + length` of the source, a few MB at a time. */
export async function* readChunks(source: ByteSource, offset: number, length: number): AsyncGenerator<Uint8Array> {
  for (let done = 0; done < length; done += CHUNK_BYTES) {
    yield await source.read(offset + done, Math.min(CHUNK_BYTES, length - done));
  }
}

/** Writes that range of the source, then zeros up to a multiple of `alignment`. */
export async function copyPadded(
  sink: ByteSink,
  source: ByteSource,
  range: { readonly offset: number; readonly byteLength: number },
  alignment: number,
): Promise<void> {
  for await (const chunk of readChunks(source, range.offset, range.byteLength)) await sink.write(chunk);
  const padding = padded(range.byteLength, alignment) - range.byteLength;
  if (padding > 0) await sink.write(new Uint8Array(padding));
}

/** The next multiple of `alignment`. */
export function padded(size: number, alignment: number): number {
  return Math.ceil(size / alignment) * alignment;
}
