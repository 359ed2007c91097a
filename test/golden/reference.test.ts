/** WebAssembly kernels against the reference backend: same rounding of activations, f64 sums, no kernels. */

import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { createEngine, type Engine } from '../../src/index.ts';
import { skipped } from '../skip.ts';
import { committedModels, type GoldenModel, sharedModels } from './fixtures.ts';
import { cosine, quantile, rowsOf } from './numbers.ts';

/** Prompts a model: few, since the reference is slow, but with so many positions that 5 % of them are more than two. */
const CASES = 4;

/** Least cosine at 95 % of positions, and at half of them. */
const TRAINED = [0.9999, 0.99999] as const;
/**
 * Random weights have none of a trained model's redundancy: one activation that rounds the other way after another order
 * of a sum moves all logits.
 */
const RANDOM = [0.9995, 0.9999] as const;

/**
 * Random weights, and weights rounded to one or two bits with no search for good ones: a change of 10^-6 of the
 * reference backend's own activations moves its logits as far, 0.9998 at 5 % of positions.
 */
const SENSITIVE = /^tiny-|-q[12]_0$/;

async function logitsOf(engine: Engine, model: GoldenModel): Promise<Float32Array[]> {
  try {
    const rows: Float32Array[] = [];
    for (const { tokens } of model.cases.slice(-CASES)) {
      rows.push(...rowsOf(await engine.forward(tokens, { all: true }), engine.info.vocabularySize));
    }
    return rows;
  } finally {
    await engine.dispose();
  }
}

function checkModel(model: GoldenModel): void {
  test(`${model.name}: kernels against the reference backend`, async () => {
    const wasm = await logitsOf(await createEngine(model.path, { threads: 2 }), model);
    const engine = await createEngine(model.path, { backend: 'reference' });
    assert.is(engine.info.backend.ran, 'reference');
    assert.is(engine.info.backend.kernel, 'scalar');
    const reference = await logitsOf(engine, model);
    assert.is(wasm.length, reference.length);
    const cosines = wasm.map((row, position) => cosine(row, reference[position]!));
    assert.ok(cosines.every(Number.isFinite), 'every cosine is a number');
    const [fifth, median] = [quantile(cosines, 0.05), quantile(cosines, 0.5)];
    console.log(
      `# ${model.name}: cosine at 5 % ${fifth.toFixed(7)}, median ${median.toFixed(7)}, least ${Math.min(...cosines).toFixed(7)}`,
    );
    const [leastFifth, leastMedian] = SENSITIVE.test(model.name) ? RANDOM : TRAINED;
    assert.ok(fifth >= leastFifth, `cosine at 5 % of positions is ${fifth}, expected at least ${leastFifth}`);
    assert.ok(median >= leastMedian, `median cosine is ${median}, expected at least ${leastMedian}`);
  });
}

committedModels().forEach(checkModel);
const shared = sharedModels();
shared.forEach(checkModel);
if (shared.length === 0)
  skipped(7, 'no ../shared/golden beside the repository: its further demo models were not compared');
test.run();
