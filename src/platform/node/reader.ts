/** Reads files from within a worker. */

import { closeSync, openSync, readSync } from 'node:fs';
import { AprError } from '../../errors.ts';
import type { SourceLocator } from '../../formats/byte-source.ts';
import { openReader as openAnyReader, type Reader } from '../reader.ts';

/** @throws AprError IO when the file cannot be opened; reads throw IO, or BAD_FORMAT when the file ends early */
export function openReader(source: SourceLocator, name: string): Reader {
  return openAnyReader(source, name, openFile);
}

function openFile(path: string, name: string): Reader {
  const failed = (cause: unknown): AprError =>
    new AprError(
      'IO',
      `${name}: reading failed: ${cause instanceof Error ? cause.message : String(cause)}`,
      {},
      { cause },
    );
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch (cause) {
    throw failed(cause);
  }
  return {
    readInto: async (target, offset) => {
      for (let done = 0; done < target.length; ) {
        let count: number;
        try {
          count = readSync(fd, target, done, target.length - done, offset + done);
        } catch (cause) {
          throw failed(cause);
        }
        if (count === 0) {
          const message = `${name}: ends at byte ${offset + done}, while it was being loaded, ${target.length - done} bytes too early`;
          throw new AprError('BAD_FORMAT', message);
        }
        done += count;
      }
    },
    close: () => closeSync(fd),
  };
}
