/** Where the repository is, seen from a compiled test, whatever folder it was compiled to. */

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

function findRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    if (dirname(folder) === folder) throw new Error('no package.json above the tests');
    folder = dirname(folder);
  }
  return folder;
}

export const ROOT = findRoot();
export const FIXTURES = join(ROOT, 'models-fixtures');
/** The tiny chat model that `apr run demo` runs. */
export const DEMO = join(FIXTURES, 'demo-qwen3moe-q4_k_m.gguf');
const beside = join(ROOT, '..', 'shared');
/** The folder of models, vocabularies and golden values beside the repository; undefined where there is none. */
export const SHARED: string | undefined = existsSync(beside) ? beside : undefined;
