/** Whole models against llama.cpp: prompt ids, log-probabilities, greedy ids, text. */

import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { FinalEvent } from '../../src/engine.ts';
import { createEngine, type Engine } from '../../src/index.ts';
import { skipped } from '../skip.ts';
import { committedModels, type GoldenCase, type GoldenModel, type Scored, sharedModels } from './fixtures.ts';
import { argmax, logSoftMax, rowsOf } from './numbers.ts';

interface Tolerance {
  /** Mean difference of the best three log-probabilities. */
  readonly meanLogprob: number;
  /** Greedy ids agree where llama.cpp's best two are further apart than this. */
  readonly margin: number;
}

/** Two of llama.cpp's own ways through attention differ as much as this for a mixture of experts. */
function toleranceOf({ info }: Engine): Tolerance {
  const types = Object.keys(info.tensorTypes);
  const float = types.every((type) => ['F32', 'F16', 'BF16'].includes(type));
  const margin = float ? 0.15 : 0.5;
  if (info.expertCount > 0) return { meanLogprob: 0.07, margin };
  if (float) return { meanLogprob: 0.005, margin };
  const only8Bit = types.every((type) => ['F32', 'F16', 'BF16', 'Q8_0'].includes(type));
  return { meanLogprob: only8Bit ? 0.01 : 0.04, margin };
}

class Differences {
  count = 0;
  sum = 0;
  most = 0;

  add(ours: Float64Array, theirs: readonly Scored[]): void {
    for (const [id, logprob] of theirs.slice(0, 3)) {
      const difference = Math.abs(ours[id]! - logprob);
      this.count++;
      this.sum += difference;
      this.most = Math.max(this.most, difference);
    }
  }

  get mean(): number {
    return this.sum / this.count;
  }
}

const marginOf = (top: readonly Scored[]): number => top[0]![1] - top[1]![1];

/** Every position with llama.cpp's tokens before it. */
async function compareLogprobs(engine: Engine, golden: GoldenCase, margin: number, all: Differences): Promise<void> {
  const { tokens, prompt_logprobs, generated, prompt } = golden;
  const ids = generated.map(({ id }) => id);
  const logits = await engine.forward([...tokens, ...ids.slice(0, -1)], { all: true });
  const rows = rowsOf(logits, engine.info.vocabularySize).map(logSoftMax);
  assert.is(rows.length, tokens.length + ids.length - 1);
  for (const [position, theirs] of prompt_logprobs.entries()) all.add(rows[position]!, theirs);
  let agreed = true;
  for (const [index, { id, top }] of generated.entries()) {
    const ours = rows[tokens.length - 1 + index]!;
    const same = argmax(ours) === id;
    if (marginOf(top) > margin)
      assert.ok(same, `${JSON.stringify(prompt)}, greedy token ${index}: ${argmax(ours)}, llama.cpp ${id}`);
    agreed &&= same;
    if (agreed) all.add(ours, top);
  }
}

/** Token by token, as a user gets it: the first id that differs is one that llama.cpp was not sure about. */
async function compareGeneration(engine: Engine, golden: GoldenCase, margin: number): Promise<void> {
  const { tokens, generated, prompt, text } = golden;
  const expected = generated.map(({ id }) => id);
  let final: FinalEvent | undefined;
  // The values hold the end token as well.
  for await (const event of engine.generate({ prompt: tokens, maxTokens: expected.length, ignoreEos: true })) {
    if (event.event === 'final') final = event;
  }
  assert.ok(final);
  const first = expected.findIndex((id, index) => final.tokens[index] !== id);
  if (first >= 0) {
    const found = marginOf(generated[first]!.top);
    assert.ok(
      found <= margin,
      `${JSON.stringify(prompt)}: token ${first} is ${final.tokens[first]}, llama.cpp's ${expected[first]} leads by ${found}`,
    );
  } else {
    // Cut-off characters at the end are written differently: compare what is whole.
    const whole = text.replace(/\uFFFD+$/u, '');
    assert.is(engine.detokenize(expected).slice(0, whole.length), whole, JSON.stringify(prompt));
  }
}

function checkModel(model: GoldenModel): void {
  test(`${model.name}: as llama.cpp computes it`, async () => {
    const engine = await createEngine(model.path, { threads: 2 });
    try {
      assert.is(engine.info.vocabularySize, model.vocab);
      const { meanLogprob, margin } = toleranceOf(engine);
      const differences = new Differences();
      for (const golden of model.cases) {
        assert.equal(engine.tokenize(golden.prompt, { special: true }), golden.tokens, JSON.stringify(golden.prompt));
        await compareLogprobs(engine, golden, margin, differences);
        await compareGeneration(engine, golden, margin);
      }
      const { mean, most, count } = differences;
      const found = `mean ${mean.toFixed(5)}, most ${most.toFixed(4)} of ${count} log-probabilities`;
      console.log(`# ${model.name}: ${found}, limit ${meanLogprob}`);
      assert.ok(mean <= meanLogprob, `${found}, expected a mean of at most ${meanLogprob}`);
    } finally {
      await engine.dispose();
    }
  });
}

const committed = committedModels();
test('there are golden values for every architecture and tensor type', () => {
  const names = committed.map(({ name }) => name).join(' ');
  for (const part of [
    'llama-',
    'llama3',
    'mixtral',
    'qwen2',
    'qwen3-',
    'qwen3moe',
    'gemma3',
    'gemma2',
    'granite',
    'smollm3',
    'olmo2',
    'phi3-q',
    'phi3-longrope',
    'qwen2moe',
    'f32',
    'f16',
    'bf16',
    'q4_0',
    'q8_0',
    'q4_k',
    'q5_k',
    'q6_k',
  ]) {
    assert.ok(names.includes(part), `${part} in ${names}`);
  }
});
committed.forEach(checkModel);
const shared = sharedModels();
shared.forEach(checkModel);
if (shared.length === 0)
  skipped(7, 'no ../shared/golden beside the repository: its further demo models were not compared');
test.run();
