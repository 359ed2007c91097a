/** Requests that run together give each what it gets alone, to the last bit. */

import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  AprError,
  createEngine,
  type Engine,
  type EngineOptions,
  type FinalEvent,
  type GenerateRequest,
} from '../../src/index.ts';
import { DEMO, FIXTURES } from '../repository.ts';

async function answer(engine: Engine, request: GenerateRequest): Promise<FinalEvent> {
  let final: FinalEvent | undefined;
  for await (const event of engine.generate(request)) if (event.event === 'final') final = event;
  assert.ok(final);
  return final as FinalEvent;
}

/** What must not depend on the company: ids, and log-probabilities to the last bit. */
function essence({ tokens, stop_reason, prompt_tokens, logprobs }: FinalEvent): string {
  return JSON.stringify({ tokens, stop_reason, prompt_tokens, logprobs });
}

async function withEngine<T>(model: string, options: EngineOptions, use: (engine: Engine) => Promise<T>): Promise<T> {
  const engine = await createEngine(model, { contextLength: 256, ...options });
  try {
    return await use(engine);
  } finally {
    await engine.dispose();
  }
}

/** Prompts of one to 200 tokens, short and long answers, greedy and sampled, some with a common beginning. */
function requests(vocabularySize: number, common: GenerateRequest = { logprobs: 2 }): GenerateRequest[] {
  const lengths = [5, 200, 1, 37, 130, 9, 64, 3, 5, 90];
  return lengths.map((length, index) => ({
    prompt: Array.from({ length }, (_, i) => (i < 3 ? 7 + i : 11 + 31 * i + 17 * index) % (vocabularySize - 16)),
    maxTokens: 3 + ((index * 7) % 19),
    ignoreEos: true,
    ...(index % 3 === 1 ? { temperature: 1.2, topP: 0.9, seed: index } : {}),
    ...common,
  }));
}

for (const [file, settings] of [
  [
    'demo-qwen3moe-q4_k_m.gguf',
    [
      { sequences: 3, threads: 1 },
      { sequences: 8, threads: 2 },
      { sequences: 5, shared: false },
    ],
  ],
  ['demo-qwen2-q4_0.gguf', [{ sequences: 8, threads: 2 }]],
  ['demo-qwen2-q8_0.gguf', [{ sequences: 2, threads: 2 }]],
  ['tiny-mixtral-q8_0.gguf', [{ sequences: 8, threads: 2 }]],
  ['tiny-qwen2moe-q8_0.gguf', [{ sequences: 8, threads: 2 }]],
  ['tiny-gemma3-f16.gguf', [{ sequences: 8, threads: 2 }]],
  ['tiny-phi3-q4_k.gguf', [{ sequences: 4, threads: 1 }]],
] as const) {
  test(`${file}: together as alone`, async () => {
    const model = join(FIXTURES, file);
    const alone = await withEngine(model, { threads: 1 }, async (engine) => {
      const answers: string[] = [];
      for (const request of requests(engine.info.vocabularySize)) answers.push(essence(await answer(engine, request)));
      return answers;
    });
    for (const options of settings) {
      await withEngine(model, options, async (engine) => {
        assert.is(engine.info.sequences, options.sequences);
        const together = requests(engine.info.vocabularySize).map((request) => answer(engine, request));
        for (const [index, final] of (await Promise.all(together)).entries()) {
          assert.is(essence(final), alone[index], `${JSON.stringify(options)}, request ${index}`);
        }
      });
    }
  });
}

test('the reference backend keeps sequences apart too', async () => {
  const few = (size: number) => requests(size, {}).filter((_, index) => [0, 2, 5].includes(index));
  const ids = (options: EngineOptions) =>
    withEngine(DEMO, { backend: 'reference', ...options }, async (engine) =>
      (await Promise.all(few(engine.info.vocabularySize).map((request) => answer(engine, request)))).map(essence),
    );
  assert.equal(await ids({ sequences: 3 }), await ids({}));
});

test('one that is aborted or read slowly, or no further, holds up nobody and changes nothing', async () => {
  await withEngine(DEMO, { sequences: 4, threads: 2 }, async (engine) => {
    const [first, second] = requests(engine.info.vocabularySize) as [GenerateRequest, GenerateRequest];
    const expected = [essence(await answer(engine, first)), essence(await answer(engine, second))];
    // Walks away after its second token, and keeps its slot.
    const half = engine.generate({ ...second, seed: 9 })[Symbol.asyncIterator]();
    await half.next();
    await half.next();
    const abort = new AbortController();
    const aborted = (async () => {
      try {
        const request = { ...first, maxTokens: 200, signal: abort.signal };
        for await (const event of engine.generate(request))
          if (event.event === 'token' && event.index === 4) abort.abort();
      } catch (error) {
        return error instanceof AprError ? error.code : error;
      }
      return 'it came to its end';
    })();
    const slow = (async () => {
      let final: FinalEvent | undefined;
      for await (const event of engine.generate(first)) {
        await wait(3);
        if (event.event === 'final') final = event;
      }
      return essence(final as FinalEvent);
    })();
    const quick = answer(engine, second);
    assert.is(await aborted, 'ABORTED');
    assert.equal([await slow, essence(await quick)], expected);
    await half.return?.();
  });
});

test('a conversation finds its cache again among the others', async () => {
  await withEngine(DEMO, { sequences: 3, threads: 2 }, async (engine) => {
    const say = async (words: string[]): Promise<FinalEvent> => {
      const messages = words.map((content, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content }));
      return answer(engine, { messages });
    };
    const [a, b] = await Promise.all([say(['What is 2+2?']), say(['List 3 colors:'])]);
    await say(['Hello']);
    for (const [words, before] of [
      [['List 3 colors:', 'Red, blue, and green.', 'Hello'], b],
      [['What is 2+2?', '2 + 2 = 4', 'Hello'], a],
    ] as const) {
      const final = await say([...words]);
      assert.is(final.cached_tokens, before.prompt_tokens.length + before.tokens_generated);
    }
  });
});

test('forward and observers work beside requests that run', async () => {
  await withEngine(DEMO, { sequences: 3, threads: 2 }, async (engine) => {
    const list = requests(engine.info.vocabularySize);
    const tokens = (list[3]?.prompt ?? []) as number[];
    const alone = await engine.forward(tokens);
    const expected = essence(await answer(engine, list[1]!));
    const rows = new Set<number>();
    const observer = {
      wants: (name: string) => name === 'embd',
      onTap: ({ positions }: { positions: readonly number[] }) => void rows.add(positions.length),
    };
    const [one, logits, observed] = await Promise.all([
      answer(engine, list[1]!),
      engine.forward(tokens),
      answer(engine, { ...list[1]!, observer }),
    ]);
    assert.equal([essence(one), essence(observed)], [expected, expected]);
    assert.ok(Buffer.from(logits.buffer).equals(Buffer.from(alone.buffer)));
    assert.ok(rows.has(1), 'the observer sees rows of its own request only');
  });
});

test('dispose ends all that run and wait', async () => {
  const engine = await createEngine(DEMO, { sequences: 2, threads: 2 });
  const running = Array.from({ length: 5 }, () =>
    answer(engine, { prompt: 'Hello', maxTokens: 400, ignoreEos: true }).then(
      () => 'done',
      (error: unknown) => (error instanceof AprError ? error.code : error),
    ),
  );
  await wait(50);
  await engine.dispose();
  assert.equal(
    await Promise.all(running),
    Array.from({ length: 5 }, () => 'DISPOSED'),
  );
});

test('memory is counted for all sequences, and a number out of range is refused', async () => {
  const one = await withEngine(DEMO, { threads: 1 }, async ({ info }) => info.kvCacheBytes);
  const four = await withEngine(DEMO, { threads: 1, sequences: 4 }, async ({ info }) => info.kvCacheBytes);
  assert.is(four, 4 * one);
  for (const sequences of [0, 65, 1.5]) {
    try {
      await createEngine(DEMO, { sequences });
      assert.unreachable('it was accepted');
    } catch (error) {
      assert.is((error as AprError).code, 'USAGE');
      assert.match((error as AprError).message, /sequences is .*, expected a whole number from 1 to 64/);
    }
  }
});

test.run();
