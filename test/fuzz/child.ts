/** Damages files in a process of its own, which may end or hang; the parent sees which one it was. */

import { mutate } from './mutate.ts';
import { Random } from './random.ts';
import { loadSeeds } from './seeds.ts';
import { runOne } from './target.ts';

const [first, count, skipContract] = process.argv.slice(2).map(Number) as [number, number, number];
const seeds = await loadSeeds();
for (let number = first; number < first + count; number++) {
  const random = new Random(number);
  const seed = random.pick(seeds);
  process.send?.({ number, began: seed.name });
  const mutant = mutate(seed, random);
  const outcome = await runOne(`mutant-${number}`, mutant, skipContract === 1);
  process.send?.({ number, seed: seed.name, size: mutant.head.length + mutant.tail.length, ...outcome });
}
process.disconnect?.();
