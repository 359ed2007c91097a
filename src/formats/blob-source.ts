/** A model in a Blob or File: what a page gets from a file picker, a drop or its private file system. */

import { AprError } from '../errors.ts';
import { type ByteSource, checkRange } from './byte-source.ts';

/** @param name what messages call it; for a File usually its own name */
export function blobSource(name: string, blob: Blob): ByteSource {
  const source: ByteSource = {
    name,
    size: blob.size,
    locator: { kind: 'blob', blob },
    read: async (offset, length) => {
      checkRange(source, offset, length);
      let bytes: Uint8Array;
      try {
        bytes = new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer());
      } catch (cause) {
        // A File whose bytes on disk changed after it was picked can no longer be read.
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new AprError('IO', `${name}: reading failed: ${reason}`, {}, { cause });
      }
      if (bytes.length === length) return bytes;
      const message =
        `${name}: ${bytes.length} bytes came from byte ${offset} where ${length} were expected; ` +
        'the file has changed since it was opened';
      throw new AprError('BAD_FORMAT', message);
    },
    close: async () => {},
  };
  return source;
}
