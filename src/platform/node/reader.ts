/** Reads a source from within a worker, straight into shared memory. */

import { closeSync, openSync, readSync } from 'node:fs';
import type { ReadInto } from '../../backends/wasm/loader.ts';
import { AprError } from '../../errors.ts';
import type { SourceLocator } from '../../formats/byte-source.ts';
import { locateParts } from '../../formats/parts-source.ts';

export interface Reader {
  readonly readInto: ReadInto;
  close(): void;
}

/** @throws AprError IO when the file cannot be opened; reads throw IO, or BAD_FORMAT when the file ends early */
export function openReader(source: SourceLocator, name: string): Reader {
  switch (source.kind) {
    case 'file':
      return openFile(source.path, name);
    case 'blob': {
      const { blob } = source;
      return {
        readInto: async (target, offset) => {
          target.set(new Uint8Array(await blob.slice(offset, offset + target.length).arrayBuffer()));
        },
        close: () => {},
      };
    }
    case 'memory': {
      const { bytes } = source;
      return {
        readInto: async (target, offset) => target.set(bytes.subarray(offset, offset + target.length)),
        close: () => {},
      };
    }
    case 'parts':
      return openParts(source.parts, name);
  }
}

function openParts(parts: readonly { readonly size: number; readonly locator: SourceLocator }[], name: string): Reader {
  const readers: Reader[] = [];
  const close = (): void => {
    for (const reader of readers) reader.close();
  };
  try {
    for (const { locator } of parts) readers.push(openReader(locator, locator.kind === 'file' ? locator.path : name));
  } catch (error) {
    close();
    throw error;
  }
  return {
    readInto: async (target, offset) => {
      let at = 0;
      for (const piece of locateParts(parts, offset, target.length)) {
        await readers[piece.part]!.readInto(target.subarray(at, at + piece.length), piece.offset);
        at += piece.length;
      }
      if (at < target.length) {
        throw new AprError(
          'BAD_FORMAT',
          `${name}: ${target.length} bytes from byte ${offset} lie behind the last part`,
        );
      }
    },
    close,
  };
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
