/** No byte of a file belongs to two tensors. */

import { AprError } from '../errors.ts';
import type { TensorInfo } from './model-file.ts';
import { printable } from './printable.ts';

/** @throws AprError BAD_FORMAT naming two tensors that share bytes */
export function refuseOverlaps(sourceName: string, tensors: readonly TensorInfo[]): void {
  const byOffset = tensors.filter(({ byteLength }) => byteLength > 0).sort((a, b) => a.offset - b.offset);
  for (let i = 1; i < byOffset.length; i++) {
    const before = byOffset[i - 1]!;
    const tensor = byOffset[i]!;
    if (before.offset + before.byteLength <= tensor.offset) continue;
    throw new AprError(
      'BAD_FORMAT',
      `${sourceName}: tensor "${printable(tensor.name)}" lies at byte ${tensor.offset}, within tensor ` +
        `"${printable(before.name)}", which ends at byte ${before.offset + before.byteLength}`,
    );
  }
}
