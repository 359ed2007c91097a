/** Copies of a model file with one tensor changed in place. */

import { readFileSync, writeFileSync } from 'node:fs';
import { openModel } from '../../src/formats/open-model.ts';
import { nodePlatform } from '../../src/platform/node/platform.ts';

/** @param change gets the tensor's bytes, to be changed where they stand */
export async function damagedCopy(
  source: string,
  target: string,
  tensor: string,
  change: (bytes: DataView) => void,
): Promise<void> {
  const bytes = readFileSync(source);
  const opened = await nodePlatform.openSource(source);
  try {
    const info = (await openModel(opened)).tensors.get(tensor);
    if (info === undefined) throw new Error(`${source} has no tensor ${tensor}`);
    change(new DataView(bytes.buffer, bytes.byteOffset + info.offset, info.byteLength));
  } finally {
    await opened.close();
  }
  writeFileSync(target, bytes);
}

/** Multiplies every value of an F32 tensor. */
export function scaled(factor: number): (bytes: DataView) => void {
  return (bytes) => {
    for (let at = 0; at < bytes.byteLength; at += 4) bytes.setFloat32(at, bytes.getFloat32(at, true) * factor, true);
  };
}
