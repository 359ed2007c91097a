/** A model that is in memory already. */

import { AprError } from '../errors.ts';
import type { ByteSource } from './byte-source.ts';

export function memorySource(name: string, bytes: Uint8Array): ByteSource {
  return {
    name,
    size: bytes.length,
    locator: { kind: 'memory', bytes },
    read: async (offset, length) => {
      if (offset < 0 || offset + length > bytes.length) {
        throw new AprError('BAD_FORMAT', `${name}: bytes ${offset} to ${offset + length} were asked for, there are ${bytes.length}`);
      }
      return bytes.slice(offset, offset + length);
    },
    close: async () => {},
  };
}
