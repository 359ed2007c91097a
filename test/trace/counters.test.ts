/** Counters that can fire, and clocks that do not agree. */

import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { PassTiming } from '../../src/graph/observer.ts';
import { createEngine, createTraceRecorder, type FinalEvent, type TraceRun } from '../../src/index.ts';
import { type Counters, violations } from '../../src/trace/counters.ts';
import { samplePass } from '../../src/trace/sample.ts';
import { DEMO } from '../repository.ts';

const engine = await createEngine(DEMO, { threads: 2 });

/** Warnings of a run of which `change` alters what the recorder is told. */
async function warningsOf(
  change: (timing: PassTiming, index: number) => PassTiming | undefined,
): Promise<readonly string[]> {
  const recorder = await createTraceRecorder({ level: 'basic' });
  // Nothing of the run before is in the cache.
  await engine.forward([5, 6, 7]);
  let index = 0;
  let final: FinalEvent | undefined;
  const observer = {
    onSpan: recorder.onSpan.bind(recorder),
    onPass: (timing: PassTiming) => {
      const changed = change(timing, index++);
      if (changed !== undefined) recorder.onPass(changed);
    },
  };
  const prompt = engine.tokenize('What is 2+2?');
  for await (const event of engine.generate({ prompt, maxTokens: 5, ignoreEos: true, observer })) {
    if (event.event === 'final') final = event;
  }
  const { info } = engine;
  const run: TraceRun = {
    model: {
      name: info.name,
      architecture: info.architecture,
      num_layers: info.layerCount,
      hidden_dim: info.embeddingLength,
      vocab_size: info.vocabularySize,
      num_heads: info.headCount,
    },
    threads: 2,
    kernel: info.backend.kernel,
    outcome: {
      promptTokens: final!.prompt_tokens.length,
      cachedTokens: final!.cached_tokens,
      generatedTokens: final!.tokens_generated,
      ended: false,
      prefillMs: final!.timings.prefill_ms,
      decodeMs: final!.timings.decode_ms,
    },
  };
  const recording = recorder.finish(run);
  const text = [...recorder.text(recording)].join('');
  const document = JSON.parse(text);
  assert.is(document.warning_count, recording.warnings.length);
  assert.is(
    document.events.filter(({ type }: { type: string }) => type === 'Warning').length,
    recording.warnings.length,
  );
  return recording.warnings;
}

test('a healthy run warns of nothing', async () => {
  assert.equal(await warningsOf((timing) => timing), []);
});

test('a lost pass fires', async () => {
  const warnings = await warningsOf((timing, index) => (index === 2 ? undefined : timing));
  assert.is(warnings.length, 2);
  assert.match(
    warnings[0]!,
    /^positions through the model: counted \d+, expected \d+ \(\d+ of the prompt \+ 4 fed back\)$/,
  );
  assert.match(warnings[1]!, /^runs of the output head: counted 4, expected 5/);
});

test('attention that no thread computed fires', async () => {
  const warnings = await warningsOf((timing, index) => {
    if (index !== 1) return timing;
    const lost = timing.steps.findIndex(({ command }) => timing.record.commands[command]?.op === 'attention');
    for (const { end } of timing.threads) end[lost] = Number.NaN;
    return timing;
  });
  assert.equal(warnings, ['runs of attention: counted 19, expected 20 (4 layers x 5 passes)']);
});

test("a thread whose clock is another's fires", async () => {
  const warnings = await warningsOf((timing, index) => {
    const { begin, end } = timing.threads[1]!;
    for (let step = 0; index === 3 && step < end.length; step++) {
      begin[step]! += 60_000;
      end[step]! += 60_000;
    }
    return timing;
  });
  assert.equal(warnings, ["threads' clocks: times of 1 of 5 passes lie outside of the pass they measure"]);
});

test('a NaN fires at level payload, and is named where it came up first', async () => {
  const recorder = await createTraceRecorder({ level: 'payload' });
  await engine.forward([5, 6, 7]);
  for await (const _ of engine.generate({
    prompt: [1, 2, 3],
    maxTokens: 3,
    ignoreEos: true,
    observer: {
      wants: () => true,
      onTap: (tap) => {
        if (tap.positions[0] === 4 && tap.name === 'blk.2.attn_norm') tap.values[5] = Number.NaN;
        if (tap.positions[0] === 4 && tap.name === 'blk.3.attn_norm') tap.values.fill(Number.POSITIVE_INFINITY);
        recorder.onTap(tap);
      },
      onPass: (timing) => recorder.onPass(timing),
    },
  }));
  const model = { name: '', architecture: '', num_layers: 4, hidden_dim: 0, vocab_size: 0, num_heads: 0 };
  const { warnings } = recorder.finish({ model, threads: 2, kernel: '' });
  assert.equal(warnings, [
    'values that are not finite, first in blk.2.attn_norm, pass over 1 row from position 4: 1 NaN and 0 infinite of 256',
  ]);
});

test('every invariant has a sentence of its own', () => {
  const expected = { promptTokens: 20, cachedTokens: 4, generatedTokens: 7, ended: true, layers: 2 };
  const healthy: Counters = { passes: 8, positions: 23, head_runs: 8, attention_runs: 16, sampled: 8 };
  assert.equal(violations(healthy, expected), []);
  for (const [key, words] of [
    ['positions', 'positions through the model: counted 24, expected 23 (20 of the prompt - 4 cached + 7 fed back)'],
    ['head_runs', 'runs of the output head: counted 9, expected 8 (one for each chosen token)'],
    ['attention_runs', 'runs of attention: counted 17, expected 16 (2 layers x 8 passes)'],
    ['sampled', 'chosen tokens: counted 9, expected 8 (7 in the answer and the end token)'],
  ] as const) {
    assert.equal(violations({ ...healthy, [key]: healthy[key] + 1 }, expected), [words]);
  }
  const prompt = { promptTokens: 3, cachedTokens: 0, generatedTokens: 0, ended: false, layers: 2 };
  assert.equal(violations({ passes: 1, positions: 3, head_runs: 1, attention_runs: 2, sampled: 0 }, prompt), []);
});

test("steps on one line: the last thread's end counts, and each thread's time is either busy or waiting", () => {
  const record = { rows: 1, outputs: 0, commands: [], activations: [], logits: undefined };
  const steps = [0, 1, 2].map((command) => ({ command, kernel: 'add' }));
  const sample = samplePass(
    {
      record,
      steps,
      positions: [9],
      start: 0,
      handed: 1,
      returned: 20,
      end: 21,
      threads: [
        { woke: 2, begin: Float64Array.of(2, 6, 9), end: Float64Array.of(5, 8, 14) },
        { woke: 3, begin: Float64Array.of(3, 6, 12), end: Float64Array.of(6, 11, 12) },
      ],
    },
    'decode',
    false,
  );
  assert.equal([...sample.done], [6, 11, 14]);
  assert.is(sample.taken, 2);
  assert.equal([...sample.busy], [3 + 2 + 5, 3 + 5 + 0]);
  assert.equal([...sample.waiting], [1 + 1, 1 + 1 + 2]);
  for (const thread of [0, 1]) assert.is(sample.busy[thread]! + sample.waiting[thread]!, 14 - 2);
  assert.ok(sample.aligned);
});

test('the engine of this test ends', async () => {
  await engine.dispose();
});

test.run();
