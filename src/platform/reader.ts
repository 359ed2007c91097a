/** Reads a source from within a worker, straight into shared memory. */

import type { ReadInto } from '../backends/wasm/loader.ts';
import { AprError } from '../errors.ts';
import type { SourceLocator } from '../formats/byte-source.ts';
import { locateParts } from '../formats/parts-source.ts';
import { readUrl } from '../formats/url-source.ts';

export interface Reader {
  readonly readInto: ReadInto;
  close(): void;
}

/** Opens a file by its absolute path. */
export type OpenFile = (path: string, name: string) => Reader;

/** @throws AprError IO when the file cannot be opened; reads throw IO, or BAD_FORMAT when the file ends early */
export function openReader(source: SourceLocator, name: string, openFile: OpenFile): Reader {
  switch (source.kind) {
    case 'file':
      return openFile(source.path, name);
    case 'blob': {
      const { blob } = source;
      return {
        readInto: async (target, offset) => {
          let bytes: Uint8Array;
          try {
            bytes = new Uint8Array(await blob.slice(offset, offset + target.length).arrayBuffer());
          } catch (cause) {
            // A File whose bytes on disk changed after it was picked can no longer be read.
            const reason = cause instanceof Error ? cause.message : String(cause);
            throw new AprError('IO', `${name}: reading failed: ${reason}`, {}, { cause });
          }
          target.set(bytes);
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
    case 'url':
      return { readInto: (target, offset) => readUrl(source, name, target, offset), close: () => {} };
    case 'parts':
      return openParts(source.parts, name, openFile);
  }
}

function openParts(
  parts: readonly { readonly size: number; readonly locator: SourceLocator }[],
  name: string,
  openFile: OpenFile,
): Reader {
  const readers: Reader[] = [];
  const close = (): void => {
    for (const reader of readers) reader.close();
  };
  try {
    for (const { locator } of parts) readers.push(openReader(locator, nameOfPart(locator) ?? name, openFile));
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

function nameOfPart(locator: SourceLocator): string | undefined {
  if (locator.kind === 'file') return locator.path;
  return locator.kind === 'url' ? locator.origin : undefined;
}
