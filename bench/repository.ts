/** Folders and files of this repository, wherever the compiled code lies inside it. */

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

function findRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error('no package.json above the benchmarks; run them from a checkout');
    folder = parent;
  }
  return folder;
}

/** The folder of package.json. */
export const REPOSITORY = findRoot();

/** Downloads and generated models; ignored by git. */
export const CACHE = join(REPOSITORY, '.cache');

/** A compiled script of this build, given relative to the build's root. */
export function compiled(script: string): string {
  return fileURLToPath(new URL(`../${script}`, import.meta.url));
}
