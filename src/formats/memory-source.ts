/** A model that is in memory already. */

import { type ByteSource, checkRange } from './byte-source.ts';

/**
 * A source over `bytes`, which must not change while it is in use.
 * @param name what messages call it
 */
export function memorySource(name: string, bytes: Uint8Array): ByteSource {
  const source: ByteSource = {
    name,
    size: bytes.length,
    locator: { kind: 'memory', bytes },
    read: async (offset, length) => {
      checkRange(source, offset, length);
      // Not `slice`: Node's Buffer makes that a view, and text decoders refuse shared memory.
      const copy = new Uint8Array(length);
      copy.set(bytes.subarray(offset, offset + length));
      return copy;
    },
    close: async () => {},
  };
  return source;
}
