import { spawnSync } from 'node:child_process';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { createLocalEngine } from '../../src/engines/local.ts';
import { AprError, createEngine, type Engine } from '../../src/index.ts';
import { createKernelPool } from '../../src/platform/node/kernel-pool.ts';
import { nodePlatform } from '../../src/platform/node/platform.ts';
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

test('dispose during an answer rejects it', async () => {
  const engine = await createEngine(DEMO, { threads: 2 });
  const request = { ...QUESTION, ignoreEos: true, maxTokens: 400 };
  const running = (async () => {
    for await (const event of engine.generate(request))
      if (event.event === 'token' && event.index === 2) void engine.dispose();
  })();
  assert.is(await code(running), 'DISPOSED');
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

test('a process that forgets to dispose still exits', () => {
  const script = `
    import { createEngine } from ${JSON.stringify(new URL('../../src/index.js', import.meta.url).href)};
    const engine = await createEngine(${JSON.stringify(DEMO)}, { threads: 2 });
    for await (const event of engine.generate(${JSON.stringify(QUESTION)})) if (event.event === 'final') console.log(event.text);
  `;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    timeout: 20_000,
  });
  assert.is(stderr, '');
  assert.is(stdout, '2 + 2 = 4\n');
  assert.is(status, 0);
});

test('loading can be aborted, and bad options are refused', async () => {
  const controller = new AbortController();
  controller.abort();
  assert.is(await code(createEngine(DEMO, { signal: controller.signal })), 'ABORTED');
  assert.is(await code(createEngine(DEMO, { threads: 0 })), 'USAGE');
  assert.is(await code(createEngine(DEMO, { threads: 1.5 })), 'USAGE');
  assert.is(await code(createEngine(DEMO, { contextLength: -1 })), 'USAGE');
  assert.is(await code(createEngine(DEMO, { backend: 'cuda' })), 'BACKEND_UNAVAILABLE');
  assert.is(await code(createEngine('no-such-file.gguf')), 'NOT_FOUND');
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
