/** Where the repository is, seen from a compiled test, whatever folder it was compiled to. */

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { REPOSITORY } from '../bench/repository.ts';

export const ROOT = REPOSITORY;
export const FIXTURES = join(ROOT, 'models-fixtures');
/** The tiny chat model that `apr run demo` runs. */
export const DEMO = join(FIXTURES, 'demo-qwen3moe-q4_k_m.gguf');
const beside = join(ROOT, '..', 'shared');
/** The folder of models, vocabularies and golden values beside the repository; undefined where there is none. */
export const SHARED: string | undefined = existsSync(beside) ? beside : undefined;

/** Paths of the GGUF files in one of its folders; none where there is no such folder. */
export function sharedFiles(kind: 'models' | 'vocab'): string[] {
  if (SHARED === undefined) return [];
  const folder = join(SHARED, kind);
  return readdirSync(folder)
    .filter((name) => name.endsWith('.gguf'))
    .map((name) => join(folder, name));
}
