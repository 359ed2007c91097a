/** The same bits, however many threads compute them, on which memory and kernel build, watched or not. */

import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { EngineOptions, FinalEvent, PassObserver } from '../../src/engine.ts';
import { createEngine, type Engine } from '../../src/index.ts';
import { nodePlatform } from '../../src/platform/node/platform.ts';
import { skipped } from '../skip.ts';
import { committedModel } from './fixtures.ts';
import { logSoftMax, rowsOf } from './numbers.ts';

const MODELS = [
  'demo-qwen3moe-q4_k_m',
  'demo-qwen2-q8_0',
  'tiny-llama3-q4_k',
  'tiny-qwen3-q5_k',
  'tiny-qwen2-bf16',
  'tiny-gemma3-f16',
  'tiny-phi3-q4_k',
  'tiny-qwen2moe-q8_0',
];
const RELAXED = nodePlatform.supportsRelaxedSimd();
const GENERATED = 24;

interface Outcome {
  readonly ids: readonly number[];
  readonly text: string;
  /** [tokens × vocabulary] */
  readonly logits: Float32Array;
}

async function outcome(engine: Engine, prompt: readonly number[], observer?: PassObserver): Promise<Outcome> {
  const watched = observer === undefined ? {} : { observer };
  const logits = await engine.forward(prompt, { all: true, ...watched });
  let final: FinalEvent | undefined;
  for await (const event of engine.generate({ prompt, maxTokens: GENERATED, ignoreEos: true, ...watched })) {
    if (event.event === 'final') final = event;
  }
  assert.ok(final);
  assert.is(final.tokens.length, GENERATED);
  return { ids: final.tokens, text: final.text, logits };
}

async function withEngine<T>(path: string, options: EngineOptions, use: (engine: Engine) => Promise<T>): Promise<T> {
  const engine = await createEngine(path, options);
  try {
    return await use(engine);
  } finally {
    await engine.dispose();
  }
}

const VARIANTS: readonly (EngineOptions & { readonly threads: number })[] = [
  { threads: 2, kernel: 'simd' },
  { threads: 5, kernel: 'simd' },
  { threads: 1, kernel: 'simd', shared: false },
  ...(RELAXED
    ? ([
        { threads: 1, kernel: 'relaxed' },
        { threads: 5, kernel: 'relaxed' },
        { threads: 1, kernel: 'relaxed', shared: false },
      ] as const)
    : []),
];

for (const name of MODELS) {
  const { path, cases } = committedModel(name);
  // The longest prompt, and again behind itself, so that attention and prefill run over more than one chunk.
  const longest = cases.map(({ tokens }) => tokens).reduce((a, b) => (b.length > a.length ? b : a));
  const prompt = [...longest, ...longest];

  test(`${name}: the same bits for 1, 2 and 5 threads, shared and plain memory, simd and relaxed`, async () => {
    const expected = await withEngine(path, { threads: 1, kernel: 'simd' }, (engine) => outcome(engine, prompt));
    for (const options of VARIANTS) {
      const label = JSON.stringify(options);
      const found = await withEngine(path, options, (engine) => {
        assert.is(engine.info.backend.threads, options.threads, label);
        assert.is(engine.info.backend.kernel, options.kernel, label);
        return outcome(engine, prompt);
      });
      assert.equal(found.ids, expected.ids, label);
      assert.is(found.text, expected.text, label);
      assert.ok(Buffer.compare(bytesOf(found.logits), bytesOf(expected.logits)) === 0, `logits differ: ${label}`);
    }
  });

  test(`${name}: an observer of everything changes no bit`, async () => {
    await withEngine(path, { threads: 2 }, async (engine) => {
      const plain = await outcome(engine, prompt);
      let taps = 0;
      const observer: PassObserver = {
        wants: () => true,
        onTap({ name: tapName, shape, values, positions }) {
          taps++;
          assert.is(values.length, shape[0] * shape[1], tapName);
          assert.is(positions.length > 0, true, tapName);
        },
      };
      const observed = await outcome(engine, prompt, observer);
      assert.ok(taps > engine.info.layerCount * 10, `${taps} taps`);
      assert.equal(observed.ids, plain.ids);
      assert.ok(Buffer.compare(bytesOf(observed.logits), bytesOf(plain.logits)) === 0, 'logits differ');
    });
  });

  test(`${name}: prefill of n tokens equals n decode steps`, async () => {
    await withEngine(path, { threads: 2 }, async (engine) => {
      const decoded: { id: number; logprob: number }[] = [];
      const request = { prompt: prompt.slice(0, 1), maxTokens: 64, ignoreEos: true, logprobs: 1 };
      for await (const event of engine.generate(request)) {
        if (event.event === 'final')
          decoded.push(...event.logprobs!.map(({ token_id: id, logprob }) => ({ id, logprob })));
      }
      assert.is(decoded.length, 64);
      const tokens = [prompt[0]!, ...decoded.slice(0, -1).map(({ id }) => id)];
      const rows = rowsOf(await engine.forward(tokens, { all: true }), engine.info.vocabularySize).map(logSoftMax);
      for (const [step, { id, logprob }] of decoded.entries()) {
        // Equal but for the rounding of a logarithm.
        assert.ok(Math.abs(rows[step]![id]! - logprob) < 1e-5, `step ${step}: ${rows[step]![id]} and ${logprob}`);
      }
    });
  });
}

if (!RELAXED) skipped(MODELS.length, 'this runtime has no relaxed SIMD: only simd kernels were compared');
test.run();

function bytesOf(values: Float32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}
