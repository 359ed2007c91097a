/** A model file in another format. */

import { AprError } from '../errors.ts';
import { writeApr } from '../formats/apr/write.ts';
import type { ByteSink } from '../formats/byte-sink.ts';
import { partNames } from '../formats/gguf/split.ts';
import { writeGguf } from '../formats/gguf/write.ts';
import type { ModelFile } from '../formats/model-file.ts';
import { openModel } from '../formats/open-model.ts';
import type { Platform } from '../platform/platform.ts';

export interface ConvertOptions {
  /** Replace an existing file. Default false. */
  force?: boolean;
}

export interface Conversion {
  readonly source: string;
  readonly target: string;
  readonly from: ModelFile['format'];
  readonly to: ModelFile['format'];
  readonly tensors: number;
  /** Of the written file. */
  readonly bytes: number;
}

/** What a platform writes to: nothing stands under the target's name before `commit`. */
export interface TargetSink extends ByteSink {
  commit(): Promise<void>;
  discard(): Promise<void>;
}

/** By the target's name. */
const WRITERS: Readonly<Record<ModelFile['format'], (file: ModelFile, sink: ByteSink) => Promise<number>>> = {
  apr: writeApr,
  gguf: writeGguf,
};

/**
 * Writes the model to `target`, whose ending (.apr or .gguf) says the format. Weights keep their bytes and pass through
 * memory a few MB at a time.
 * @throws AprError USAGE, NOT_FOUND, BAD_FORMAT, UNSUPPORTED, OVERWRITE, IO
 */
export async function convertFile(
  platform: Pick<Platform, 'openSource'>,
  createSink: (path: string, options: { readonly force: boolean }) => Promise<TargetSink>,
  source: string,
  target: string,
  options: ConvertOptions = {},
): Promise<Conversion> {
  const to = formatOf(target);
  const bytes = await platform.openSource(source);
  try {
    const file = await openModel(bytes);
    const sink = await createSink(target, { force: options.force ?? false });
    try {
      const written = await WRITERS[to](file, sink);
      await sink.commit();
      return { source, target, from: file.format, to, tensors: file.tensors.size, bytes: written };
    } finally {
      await sink.discard();
    }
  } finally {
    await bytes.close();
  }
}

function formatOf(target: string): ModelFile['format'] {
  const ending = /\.(gguf|apr)$/i.exec(target)?.[1]?.toLowerCase();
  if (partNames(target) !== undefined) {
    const message =
      `the output file is ${JSON.stringify(target)}, whose name is that of one part of several; expected another name: ` +
      'one whole model is written, and under this name its other parts would be missed';
    throw new AprError('USAGE', message, { option: '--output', found: target });
  }
  if (ending === 'gguf' || ending === 'apr') return ending;
  const message = `the output file is ${JSON.stringify(target)}, expected a name that ends in .apr or .gguf, which says the format`;
  throw new AprError('USAGE', message, { option: '--output', found: target });
}
