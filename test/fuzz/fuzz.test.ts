/** The first few hundred mutants of `npm run fuzz`, in this process. */

import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { mutate } from './mutate.ts';
import { Random } from './random.ts';
import { loadSeeds } from './seeds.ts';
import { runOne } from './target.ts';

const COUNT = 400;
const SKIP_COUNT = 300;

test('sound files run', async () => {
  for (const { name, bytes } of await loadSeeds()) {
    const outcome = await runOne(name, { head: bytes.subarray(0, 100), tail: bytes.subarray(100) });
    assert.is(outcome.crash, undefined);
    assert.is(outcome.result, 'ran', name);
  }
});

test(`${COUNT} damaged files: each runs or ends with a typed error that names it`, async () => {
  const seeds = await loadSeeds();
  const results: Record<string, number> = {};
  for (let number = 1; number <= COUNT; number++) {
    const random = new Random(number);
    const seed = random.pick(seeds);
    const { result, crash } = await runOne(`mutant-${number}`, mutate(seed, random));
    assert.is(crash, undefined, `number ${number} (${seed.name}): ${crash}`);
    results[result] = (results[result] ?? 0) + 1;
  }
  // The damage is neither too coarse nor without effect.
  for (const expected of ['ran', 'BAD_FORMAT', 'CONTRACT', 'UNSUPPORTED']) {
    assert.ok((results[expected] ?? 0) >= 5, `${expected}: ${JSON.stringify(results)}`);
  }
});

test(`${SKIP_COUNT} damaged files with the contract skipped: the same, and more of them run`, async () => {
  const seeds = await loadSeeds();
  const results: Record<string, number> = {};
  for (let number = 1; number <= SKIP_COUNT; number++) {
    // The numbers behind those of the test before, so that they are other files.
    const random = new Random(COUNT + number);
    const seed = random.pick(seeds);
    const { result, crash } = await runOne(`mutant-${number}`, mutate(seed, random), true);
    assert.is(crash, undefined, `number ${COUNT + number} (${seed.name}): ${crash}`);
    results[result] = (results[result] ?? 0) + 1;
  }
  for (const expected of ['ran', 'ran with warnings', 'CONTRACT']) {
    assert.ok((results[expected] ?? 0) >= 3, `${expected}: ${JSON.stringify(results)}`);
  }
});

test.run();
