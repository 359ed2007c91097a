import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { createLocalEngine } from '../../src/engines/local.ts';
import { AprError, createEngine, type Engine, loadTokenizer } from '../../src/index.ts';
import { createKernelPool } from '../../src/platform/node/kernel-pool.ts';
import { nodePlatform } from '../../src/platform/node/platform.ts';
import { buildGguf, typed } from '../formats/gguf-builder.ts';
import { DEMO } from '../repository.ts';

const QUESTION = { messages: [{ role: 'user', content: 'What is 2+2?' }] };

async function text(engine: Engine): Promise<string> {
  for await (const event of engine.generate(QUESTION)) if (event.event === 'final') return event.text;
  return assert.unreachable('no final event') as never;
}

async function code(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    assert.instance(error, AprError);
    return (error as AprError).code;
  }
  return 'none';
}

test('two engines live side by side', async () => {
  const [a, b] = await Promise.all([createEngine(DEMO, { threads: 2 }), createEngine(DEMO, { threads: 1 })]);
  assert.equal(await Promise.all([text(a), text(b)]), ['2 + 2 = 4', '2 + 2 = 4']);
  await a.dispose();
  assert.is(await text(b), '2 + 2 = 4');
  await b.dispose();
});

test('dispose is idempotent; later requests say that the engine is gone', async () => {
  const engine = await createEngine(DEMO, { threads: 2 });
  await Promise.all([engine.dispose(), engine.dispose()]);
  await engine.dispose();
  assert.is(await code(text(engine)), 'DISPOSED');
});

test('plain memory, one thread in this process, gives the same answer', async () => {
  const engine = await createEngine(DEMO, { shared: false });
  assert.is(engine.info.backend.threads, 1);
  assert.is(await text(engine), '2 + 2 = 4');
  await engine.dispose();
  assert.is(await code(createEngine(DEMO, { shared: false, threads: 3 })), 'USAGE');
});

test('a killed kernel thread rejects the answer and every later one; nothing hangs', async () => {
  let pool: ReturnType<typeof createKernelPool> | undefined;
  const platform = { ...nodePlatform, createPool: (threads: number) => (pool = createKernelPool(threads)) };
  const engine = await createLocalEngine(platform, DEMO, { threads: 2 });
  const request = { ...QUESTION, ignoreEos: true, maxTokens: 400 };
  const running = (async () => {
    for await (const event of engine.generate(request)) {
      if (event.event === 'token' && event.index === 2) await pool!.piscina.threads[0]!.terminate();
    }
  })();
  assert.is(await code(running), 'INFERENCE');
  assert.is(await code(text(engine)), 'INFERENCE');
  await engine.dispose();
});

/** Runs a script that imports createEngine; it must end by itself. */
function runScript(body: string): { stdout: string; stderr: string } {
  const script = `
    import { createEngine } from ${JSON.stringify(new URL('../../src/index.js', import.meta.url).href)};
    const request = ${JSON.stringify(QUESTION)};
    const engine = await createEngine(${JSON.stringify(DEMO)}, { threads: 2 });
    ${body}`;
  const { status, signal, error, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    timeout: 120_000,
  });
  assert.is(error, undefined);
  assert.is(signal, null);
  assert.is(status, 0, stderr);
  return { stdout, stderr };
}

test('a process that forgets to dispose still exits', () => {
  const { stdout, stderr } = runScript(
    "for await (const event of engine.generate(request)) if (event.event === 'final') console.log(event.text);",
  );
  assert.is(stderr, '');
  assert.is(stdout, '2 + 2 = 4\n');
});

test('a process that walks away from an answer half-way still exits', () => {
  const { stdout } = runScript(
    'const answer = engine.generate(request); globalThis.kept = answer; console.log((await answer.next()).value.text);',
  );
  assert.is(stdout, '2\n');
});

test('so does one that aborts a second answer after walking away from the first', () => {
  const { stdout } = runScript(`
    const two = await createEngine(${JSON.stringify(DEMO)}, { threads: 2, sequences: 2 });
    const answer = two.generate(request);
    globalThis.kept = answer;
    await answer.next();
    const prompt = Array.from({ length: 400 }, (_, i) => i % 256);
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 5);
    await two.forward(prompt, { signal: controller.signal }).catch((error) => console.log(error.code));`);
  assert.is(stdout, 'ABORTED\n');
});

for (const options of [{ threads: 2 }, { shared: false }, { backend: 'reference' as const }]) {
  const name = JSON.stringify(options);

  test(`${name}: a request that waits behind another one can be aborted, and ends with dispose`, async () => {
    const engine = await createEngine(DEMO, options);
    const first = engine.generate(QUESTION)[Symbol.asyncIterator]();
    await first.next();
    const controller = new AbortController();
    const aborted = code(engine.forward([1], { signal: controller.signal }));
    const waiting = code(engine.forward([1]));
    controller.abort();
    assert.is(await aborted, 'ABORTED');
    await engine.dispose();
    assert.is(await waiting, 'DISPOSED');
    assert.is(await code(first.next()), 'DISPOSED');
  });

  test(`${name}: a timer can abort the work, a prompt's and an answer's`, async () => {
    const engine = await createEngine(DEMO, options);
    try {
      const prompt = Array.from({ length: 400 }, (_, i) => i % 256);
      assert.is(await code(engine.forward(prompt, { signal: AbortSignal.timeout(1) })), 'ABORTED');
      const request = { ...QUESTION, ignoreEos: true, maxTokens: 480, signal: AbortSignal.timeout(100) };
      const answer = async (): Promise<void> => {
        for await (const _ of engine.generate(request));
      };
      assert.is(await code(answer()), 'ABORTED');
      assert.is(await text(engine), '2 + 2 = 4');
    } finally {
      await engine.dispose();
    }
  });

  test(`${name}: dispose in the middle of an answer ends it`, async () => {
    const engine = await createEngine(DEMO, options);
    const answer = async (): Promise<void> => {
      for await (const event of engine.generate({ ...QUESTION, ignoreEos: true, maxTokens: 400 })) {
        if (event.event === 'token' && event.index === 2) void engine.dispose();
      }
    };
    assert.is(await code(answer()), 'DISPOSED');
    assert.is(await code(engine.forward([1])), 'DISPOSED');
  });

  test(`${name}: an aborted load reads nothing and says so`, async () => {
    let loaded = 0;
    const onProgress = ({ loadedBytes }: { loadedBytes: number }): void => {
      loaded = loadedBytes;
    };
    assert.is(await code(createEngine(DEMO, { ...options, signal: AbortSignal.abort(), onProgress })), 'ABORTED');
    assert.is(loaded, 0);
  });

  test(`${name}: memory is counted before it is allocated`, async () => {
    const platform = { ...nodePlatform, availableMemory: () => 1_000_000 };
    assert.is(await code(createLocalEngine(platform, DEMO, options)), 'OUT_OF_MEMORY');
  });
}

test('an architecture that is not there is named, whatever its metadata lack', async () => {
  const path = join(mkdtempSync(join(tmpdir(), 'apr-engine-')), 'mamba.gguf');
  writeFileSync(
    path,
    buildGguf({
      metadata: {
        'general.architecture': 'mamba',
        'tokenizer.ggml.model': 'llama',
        'tokenizer.ggml.tokens': ['<unk>', '<s>', '</s>'],
        'tokenizer.ggml.scores': typed('float32', [0, 0, 0]),
      },
    }),
  );
  assert.is(await code(createEngine(path)), 'UNSUPPORTED');
});

test('what onProgress throws ends the load', async () => {
  const onProgress = (): void => {
    throw new Error('enough');
  };
  try {
    await createEngine(DEMO, { threads: 2, onProgress });
    assert.unreachable();
  } catch (error) {
    assert.is((error as Error).message, 'enough');
  }
});

test('a session keeps the kernel instances of its threads, and a list of ids may change behind our back', async () => {
  const engine = await createEngine(DEMO, { threads: 2 });
  try {
    const ids = Array.from({ length: 200 }, (_, i) => i);
    const expected = await engine.forward([...ids]);
    const running = engine.forward(ids);
    ids.fill(1e9);
    assert.equal(await running, expected);
  } finally {
    await engine.dispose();
  }
});

test('dispose in a pass gives the memory back, also while somebody holds the engine', async () => {
  let memory: WeakRef<WebAssembly.Memory> | undefined;
  const platform = {
    ...nodePlatform,
    createPool: (threads: number) => {
      const pool = createKernelPool(threads);
      const run: typeof pool.run = (tasks) => {
        memory = new WeakRef(tasks[0]!.setup.memories[0]!);
        return pool.run(tasks);
      };
      return { ...pool, run };
    },
  };
  const engine = await createLocalEngine(platform, DEMO, { threads: 2 });
  assert.is(await text(engine), '2 + 2 = 4');
  const running = code(engine.forward(Array.from({ length: 400 }, (_, i) => i % 256)));
  await new Promise((resolve) => setTimeout(resolve, 5));
  await engine.dispose();
  assert.is(await running, 'DISPOSED');
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let round = 0; round < 20 && memory?.deref() !== undefined; round++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    collect();
  }
  assert.is(memory?.deref(), undefined);
  assert.is(engine.info.backend.ran, 'cpu');
});

test('a thread that dies while loading is a failed load', async () => {
  const platform = {
    ...nodePlatform,
    createPool: (threads: number) => {
      const pool = createKernelPool(threads);
      const run: typeof pool.run = (tasks) => {
        const runs = pool.run(tasks);
        void pool.piscina.threads[0]!.terminate();
        return runs;
      };
      return { ...pool, run };
    },
  };
  assert.is(await code(createLocalEngine(platform, DEMO, { threads: 2 })), 'LOAD_FAILED');
});

test('loading can be aborted, and bad options are refused', async () => {
  const controller = new AbortController();
  controller.abort();
  assert.is(await code(createEngine(DEMO, { signal: controller.signal })), 'ABORTED');
  assert.is(await code(createEngine(DEMO, { threads: 0 })), 'USAGE');
  assert.is(await code(createEngine(DEMO, { threads: 1.5 })), 'USAGE');
  assert.is(await code(createEngine(DEMO, { contextLength: -1 })), 'USAGE');
  assert.is(await code(createEngine(DEMO, { backend: 'cuda' })), 'BACKEND_UNAVAILABLE');
  assert.is(await code(createEngine(DEMO, { backend: 'banana' as 'cpu' })), 'USAGE');
  assert.is(await code(createEngine(DEMO, { kernel: 'banana' as 'simd' })), 'USAGE');
  assert.is(await code(createEngine(5 as unknown as string)), 'USAGE');
  assert.is(await code(createEngine('no-such-file.gguf')), 'NOT_FOUND');
});

test('the demo model goes by its name here too', async () => {
  const engine = await createEngine('demo', { threads: 1 });
  try {
    assert.equal([engine.info.model, engine.info.architecture], ['demo', 'qwen3moe']);
    assert.is(await text(engine), '2 + 2 = 4');
  } finally {
    await engine.dispose();
  }
  assert.is((await loadTokenizer('demo')).vocabularySize, engine.info.vocabularySize);
});

test('a model that does not fit into memory is refused with both numbers', async () => {
  const platform = { ...nodePlatform, availableMemory: () => 1_000_000 };
  try {
    await createLocalEngine(platform, DEMO, { threads: 1 });
    assert.unreachable();
  } catch (error) {
    assert.is((error as AprError).code, 'OUT_OF_MEMORY');
    assert.is((error as AprError).details.available, 1_000_000);
    assert.match((error as AprError).message, /needs \d.*GiB.*available/);
  }
});

test('progress runs from nothing to everything', async () => {
  const seen: number[] = [];
  let total = 0;
  const engine = await createEngine(DEMO, {
    threads: 2,
    onProgress: ({ loadedBytes, totalBytes }) => {
      seen.push(loadedBytes);
      total = totalBytes;
    },
  });
  await engine.dispose();
  assert.ok(total > 4e6);
  assert.is(seen.at(-1), total);
});

test.run();
