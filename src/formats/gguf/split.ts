/**
 * Models that are split over several GGUF files, as llama.cpp's gguf-split writes them: the first has the metadata, each
 * has its number (`split.no`, from 0), how many there are (`split.count`), and how many tensors all of them have
 * (`split.tensors.count`).
 */

import { AprError } from '../../errors.ts';
import type { ByteSource } from '../byte-source.ts';
import type { ModelFile, TensorInfo } from '../model-file.ts';
import { printable } from '../printable.ts';
import type { GgufMetadata } from './metadata.ts';
import { openGguf } from './parse.ts';

const MAX_PARTS = 99_999;

/**
 * File names of all parts when `name` is that of one, such as `model-00002-of-00003.gguf`; undefined for any other name
 * and for the one part of one. Folders before it stay.
 */
export function partNames(name: string): string[] | undefined {
  const match = /^(.*-)(\d{5})(-of-)(\d{5})(\.gguf)$/is.exec(name);
  if (match === null) return undefined;
  const [, before = '', number, between = '', total, after = ''] = match;
  const count = Number(total);
  if (count < 2 || count > MAX_PARTS || Number(number) < 1 || Number(number) > count) return undefined;
  return Array.from(
    { length: count },
    (_, i) => `${before}${String(i + 1).padStart(5, '0')}${between}${total}${after}`,
  );
}

/**
 * Reads the headers of all parts as one model.
 * @param source all parts end to end; its name is what the user gave
 * @throws AprError BAD_FORMAT naming the part that does not belong to the others, or what reading one throws
 */
export async function openSplit(source: ByteSource, parts: readonly ByteSource[]): Promise<ModelFile> {
  const tensors = new Map<string, TensorInfo>();
  let first: (ModelFile & { readonly metadata: GgufMetadata }) | undefined;
  let expected: number | undefined;
  let start = 0;
  for (const [i, part] of parts.entries()) {
    const file = await openGguf(part);
    first ??= file;
    const foreign = (reason: string): AprError => {
      const message = `${part.name}: is not part ${i + 1} of this model of ${parts.length} parts: ${reason}; fetch the parts again`;
      return new AprError('BAD_FORMAT', message, { part: i + 1, parts: parts.length });
    };
    checkNumber(file.metadata, 'split.count', parts.length, foreign);
    checkNumber(file.metadata, 'split.no', i, foreign);
    const total = file.metadata.uint('split.tensors.count');
    expected ??= total;
    if (total !== expected) {
      throw foreign(
        `"split.tensors.count" is ${total ?? 'missing'}, but ${expected ?? 'missing'} in ${first.source.name}`,
      );
    }
    const architecture = file.metadata.string('general.architecture');
    const firstArchitecture = first.metadata.string('general.architecture');
    if (architecture !== undefined && architecture !== firstArchitecture) {
      throw foreign(
        `its architecture is "${printable(architecture)}", but "${printable(firstArchitecture ?? '')}" before`,
      );
    }
    for (const tensor of file.tensors.values()) {
      if (tensors.has(tensor.name)) throw foreign(`tensor "${printable(tensor.name)}" stands in a part before it`);
      tensors.set(tensor.name, { ...tensor, offset: start + tensor.offset });
    }
    start += part.size;
  }
  if (first === undefined) throw new AprError('BAD_FORMAT', `${source.name}: a split model without parts`);
  if (expected !== undefined && tensors.size !== expected) {
    const message =
      `${source.name}: its ${parts.length} parts have ${tensors.size} tensors, expected ${expected} ` +
      '("split.tensors.count"); fetch the parts again';
    throw new AprError('BAD_FORMAT', message, { found: tensors.size, expected });
  }
  return { ...first, source, metadata: first.metadata.without('split.'), tensors };
}

function checkNumber(
  metadata: GgufMetadata,
  key: string,
  expected: number,
  foreign: (reason: string) => AprError,
): void {
  const found = metadata.uint(key);
  if (found !== expected) throw foreign(`"${key}" is ${found ?? 'missing'}, expected ${expected}`);
}

/**
 * The file if it is whole. Alone, a part lacks most tensors, which would be reported one by one.
 * @throws AprError UNSUPPORTED for a part whose name does not say where the others are
 */
export function refusePart(file: ModelFile): ModelFile {
  const parts = file.metadata.uint('split.count') ?? 1;
  if (parts <= 1) return file;
  const part = (file.metadata.uint('split.no') ?? 0) + 1;
  const five = (number: number): string => String(number).padStart(5, '0');
  throw new AprError(
    'UNSUPPORTED',
    `${file.source.name}: part ${part} of a model that is split over ${parts} files, expected a name like ` +
      `NAME-${five(part)}-of-${five(parts)}.gguf, with the other parts beside it; rename them, or join them with ` +
      "llama.cpp's llama-gguf-split --merge",
    { part, parts },
  );
}
