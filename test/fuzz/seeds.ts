/** The sound files that are damaged: small models of the repository, and two of them as .apr files. */

import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { writeApr } from '../../src/formats/apr/write.ts';
import { memorySource } from '../../src/formats/memory-source.ts';
import { openModel } from '../../src/formats/open-model.ts';
import { DEMO, FIXTURES } from '../repository.ts';
import { createSeed, type Seed } from './mutate.ts';

/** Every architecture and tokenizer has one. */
const SMALL = readdirSync(FIXTURES)
  .filter((name) => /^tiny-.*\.gguf$/.test(name))
  .sort();

export async function loadSeeds(): Promise<Seed[]> {
  const seeds = [...SMALL.map((name) => join(FIXTURES, name)), DEMO].map((path) =>
    createSeed(basename(path), readFileSync(path)),
  );
  for (const name of ['tiny-qwen2-f16.gguf', 'tiny-mixtral-q8_0.gguf'] as const) {
    const { bytes } = seeds.find((seed) => seed.name === name) as Seed;
    const pieces: Uint8Array[] = [];
    const file = await openModel(memorySource(name, bytes));
    await writeApr(file, { write: async (piece) => void pieces.push(piece.slice()) });
    seeds.push(createSeed(name.replace('.gguf', '.apr'), Buffer.concat(pieces)));
  }
  return seeds;
}
