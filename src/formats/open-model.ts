/** Finds out what a file is by its first bytes, and reads its header. */

import { AprError } from '../errors.ts';
import { openApr } from './apr/open.ts';
import type { ByteSource } from './byte-source.ts';
import { openGguf } from './gguf/parse.ts';
import { openSplit, refusePart } from './gguf/split.ts';
import type { ModelFile } from './model-file.ts';
import { describeBytes } from './signature.ts';

/** @throws AprError BAD_FORMAT saying what the file seems to be, UNSUPPORTED for formats that are known but not read */
export async function openModel(source: ByteSource): Promise<ModelFile> {
  if (source.parts !== undefined) return openSplit(source, source.parts);
  const { name, size } = source;
  if (size === 0)
    throw new AprError(
      'BAD_FORMAT',
      `${name}: the file is empty (0 bytes), expected a GGUF or .apr model; fetch it again`,
    );
  const head = await source.read(0, Math.min(size, 512));
  const magic = String.fromCharCode(...head.subarray(0, 4));
  switch (magic) {
    case 'GGUF':
      return refusePart(await openGguf(source));
    case 'APR\0':
    case 'APR2':
      return openApr(source);
    case 'APRN':
    case 'APR1':
      throw new AprError(
        'UNSUPPORTED',
        `${name}: an .apr version 1 file (${magic}), which holds classical models and no language model; ` +
          'expected a GGUF model or an .apr file of version 2',
      );
  }
  throw new AprError(
    'BAD_FORMAT',
    `${name}: not a model file: ${describeBytes(head, size)}; expected a GGUF or .apr model`,
  );
}
