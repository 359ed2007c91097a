import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type AprError, createEngine, perplexityOf } from '../../src/index.ts';
import { DEMO, SHARED } from '../repository.ts';
import { skipped } from '../skip.ts';

const TEXT = 'The fox said hello to the moon. What is 2+2? 2 + 2 = 4. Red, blue, and green. '.repeat(8);

/** Largest share by which a perplexity may differ from llama.cpp's. */
function tolerance(name: string): number {
  return /-(f32|f16)$/.test(name) ? 0.0005 : 0.007;
}

test('the second half of every window is scored, from the logits of its own passes', async () => {
  const window = 32;
  const engine = await createEngine(DEMO, { contextLength: window, threads: 2 });
  try {
    const found = await perplexityOf(engine, TEXT, { window });
    const tokens = engine.tokenize(TEXT, { addSpecial: true });
    const size = engine.info.vocabularySize;
    let nats = 0;
    let count = 0;
    for (let at = 0; at + window <= tokens.length; at += window) {
      const input = tokens.slice(at, at + window);
      const all = await engine.forward(input, { all: true });
      for (let i = window / 2; i < window - 1; i++) {
        const logits = all.subarray(i * size, (i + 1) * size);
        const sum = logits.reduce((total, logit) => total + Math.exp(logit), 0);
        nats -= logits[input[i + 1]!]! - Math.log(sum);
        count++;
      }
    }
    assert.is(found.scoredTokens, count);
    assert.ok(Math.abs(found.natsPerToken - nats / count) < 1e-6);
    assert.ok(Math.abs(found.perplexity - Math.exp(nats / count)) < 1e-4);
  } finally {
    await engine.dispose();
  }
});

test('a text that is too short, and a window that cannot be, say so', async () => {
  const engine = await createEngine(DEMO, { contextLength: 64, threads: 1 });
  try {
    for (const [text, window, message] of [
      ['Hello', 32, /expected at least two windows of 32/],
      [TEXT, 31, /window is 31/],
    ] as const) {
      try {
        await perplexityOf(engine, text, { window });
        assert.unreachable();
      } catch (error) {
        assert.is((error as AprError).code, 'USAGE');
        assert.match((error as AprError).message, message);
      }
    }
  } finally {
    await engine.dispose();
  }
});

const golden = SHARED === undefined ? undefined : join(SHARED, 'golden', 'perplexity.json');
if (SHARED === undefined || golden === undefined || !existsSync(golden)) {
  skipped(30, 'perplexities of llama.cpp need ../shared/golden');
} else {
  const { perplexity, context_length: window, text } = JSON.parse(readFileSync(golden, 'utf8'));
  const words = readFileSync(join(SHARED, 'golden', text), 'utf8');
  const models = join(SHARED, 'models');
  for (const [name, expected] of Object.entries(perplexity as Record<string, number>)) {
    test(`${name}: perplexity as of llama.cpp, ${expected}`, async () => {
      const engine = await createEngine(join(models, `${name}.gguf`), { contextLength: window });
      try {
        const found = await perplexityOf(engine, words, { window });
        const share = Math.abs(found.perplexity / expected - 1);
        assert.ok(share <= tolerance(name), `${found.perplexity.toFixed(4)}, ${(share * 100).toFixed(3)} % off`);
      } finally {
        await engine.dispose();
      }
    });
  }
}

test.run();
