/** Reads sources from within a Worker of a page. */

import { AprError } from '../../errors.ts';
import type { SourceLocator } from '../../formats/byte-source.ts';
import { openReader as openAnyReader, type Reader } from '../reader.ts';

/** @throws AprError UNSUPPORTED for a path: a page has no files by name; reads throw IO and BAD_FORMAT */
export function openReader(source: SourceLocator, name: string): Reader {
  return openAnyReader(source, name, (path) => {
    throw new AprError('UNSUPPORTED', `${path}: a page cannot open files by their path, expected a Blob or a URL`);
  });
}
