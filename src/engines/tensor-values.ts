/** The data of a tensor, some blocks at a time: a tensor may be larger than the memory. */

import { dequantize, REFERENCE_TYPES } from '../backends/reference/dequantize.ts';
import { AprError } from '../errors.ts';
import type { ModelFile, TensorInfo } from '../formats/model-file.ts';

/** Values of one stretch at most; whole blocks of every type, since none has more than 256. */
const STRETCH_VALUES = 1 << 19;

export interface Stretch {
  readonly bytes: Uint8Array;
  /** The same as f32, valid until the next stretch; undefined for a type without a decoder. */
  decode(): Float32Array | undefined;
}

/** Whether the values of that type can be looked at. */
export function isDecodable(tensor: TensorInfo): boolean {
  return REFERENCE_TYPES.has(tensor.type.name);
}

/**
 * The tensor from its first value to its last. Stretches hold the same number of values for every type, so that two
 * tensors of one shape can be read side by side. Whole blocks and not whole rows: a damaged file may declare a single
 * row of any length.
 * @throws AprError ABORTED, IO, BAD_FORMAT
 */
export async function* readStretches(
  { source }: ModelFile,
  tensor: TensorInfo,
  signal?: AbortSignal,
): AsyncGenerator<Stretch> {
  const { type, offset, byteLength } = tensor;
  const step = (STRETCH_VALUES / type.blockSize) * type.blockBytes;
  // The first stretch is the longest: if it was not decoded, none is.
  let decoded: Float32Array | undefined;
  for (let at = 0; at < byteLength; at += step) {
    if (signal?.aborted) throw new AprError('ABORTED', `reading ${source.name} was aborted`);
    const bytes = await source.read(offset + at, Math.min(step, byteLength - at));
    const decode = (): Float32Array | undefined => {
      if (!isDecodable(tensor)) return undefined;
      const count = (bytes.length / type.blockBytes) * type.blockSize;
      decoded ??= new Float32Array(count);
      const values = decoded.subarray(0, count);
      dequantize(type, new DataView(bytes.buffer, bytes.byteOffset, bytes.length), 0, count, values);
      return values;
    };
    yield { bytes, decode };
  }
}
