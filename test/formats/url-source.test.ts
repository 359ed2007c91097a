import { readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { openUrlSource } from '../../src/formats/url-source.ts';
import { createEngine } from '../../src/index.ts';
import { openReader } from '../../src/platform/web/reader.ts';
import { DEMO } from '../repository.ts';
import { type Behaviour, startServer, type TestServer } from '../web/server.ts';
import { rejection } from './rejection.ts';

const MODEL = new Uint8Array(readFileSync(DEMO));
const PAGE = new TextEncoder().encode(`<!doctype html><title>Sorry</title>${' '.repeat(5000)}`);
const MODELS = {
  'demo.gguf': MODEL,
  'page.gguf': PAGE,
  'empty.gguf': new Uint8Array(0),
  'tiny.gguf': MODEL.subarray(0, 100),
  'demo-00001-of-00002.gguf': MODEL.subarray(0, 3_000_000),
  'demo-00002-of-00002.gguf': MODEL.subarray(3_000_000),
  'lost-00001-of-00002.gguf': MODEL,
};
let server: TestServer;

test.before(async () => {
  server = await startServer({ models: MODELS });
});
test.after(() => server.close());

function open(behaviour: Behaviour | 'nowhere', name: keyof typeof MODELS = 'demo.gguf') {
  return openUrlSource(new URL(`${server.origin}/${behaviour}/${name}`));
}

const same = (found: Uint8Array, offset: number, length: number): void =>
  assert.ok(Buffer.compare(found, MODEL.subarray(offset, offset + length)) === 0, `${length} bytes from ${offset}`);

const RANGES = [
  [0, 10],
  [100, 70_000],
  [65_530, 12],
  [4_000_000, 1000],
  [MODEL.length - 3, 3],
  [5, 0],
] as const;

for (const behaviour of ['ranges', 'whole', 'chunked', 'hidden-size', 'redirect', 'cut-once', 'busy-once'] as const) {
  test(`${behaviour}: the bytes of the file, for the engine and for a thread`, async () => {
    const source = await open(behaviour);
    assert.is(source.size, MODEL.length);
    const reader = openReader(source.locator, source.name);
    for (const [offset, length] of RANGES) {
      same(await source.read(offset, length), offset, length);
      const target = new Uint8Array(new SharedArrayBuffer(length));
      await reader.readInto(target, offset);
      same(target, offset, length);
    }
    await rejection(() => source.read(MODEL.length - 2, 3), 'BAD_FORMAT', 'demo.gguf');
    await source.close();
  });
}

test('with ranges only what is asked for is fetched, and that behind a redirect', async () => {
  const before = server.requests.length;
  const source = await open('redirect');
  await source.read(0, 1000);
  await source.read(1_000_000, 1000);
  assert.equal(server.requests.slice(before), [
    'GET /redirect/demo.gguf bytes=0-65535',
    'GET /ranges/demo.gguf bytes=0-65535',
    'GET /ranges/demo.gguf bytes=1000000-1000999',
  ]);
});

test('without ranges one request fetches all, and progress is told', async () => {
  const before = server.requests.length;
  const told: [number, number | undefined][] = [];
  const source = await openUrlSource(new URL(`${server.origin}/whole/demo.gguf`), {
    onDownload: (bytes, total) => told.push([bytes, total]),
  });
  assert.is(source.locator.kind, 'blob');
  await source.read(1_000_000, 1000);
  assert.is(server.requests.length, before + 1);
  assert.equal(told.at(-1), [MODEL.length, MODEL.length]);
});

test('a file smaller than the first request, and an empty one', async () => {
  const tiny = await open('ranges', 'tiny.gguf');
  assert.is(tiny.size, 100);
  same(await tiny.read(0, 100), 0, 100);
  assert.is((await open('ranges', 'empty.gguf')).size, 0);
  assert.is((await open('whole', 'empty.gguf')).size, 0);
});

test('what is no model is not downloaded to its end', async () => {
  const source = await open('whole', 'page.gguf');
  assert.ok(source.size >= 512 && source.size <= PAGE.length);
  await rejection(() => createEngine(new URL(`${server.origin}/whole/page.gguf`)), 'BAD_FORMAT', 'HTML page');
});

test('faults of servers and networks are told as what they are', async () => {
  await rejection(() => open('nowhere'), 'NOT_FOUND', 'nowhere/demo.gguf', '404');
  await rejection(() => open('cut'), 'IO', 'cut/demo.gguf');
  await rejection(() => openUrlSource(new URL('http://127.0.0.1:1/x.gguf')), 'IO', '127.0.0.1:1');
  const read = async (behaviour: Behaviour): Promise<unknown> => (await open(behaviour)).read(1_000_000, 1000);
  await rejection(() => read('shifted'), 'IO', 'bytes from 1000001', '1000000');
  await rejection(() => read('changing'), 'BAD_FORMAT', 'changed on the server', `${MODEL.length + 1} bytes`);
  await rejection(() => read('versioned'), 'BAD_FORMAT', 'changed on the server', '"b"', '"a"');
});

test('a range that comes short, and a server that stays busy, are tried three times', async () => {
  for (const [behaviour, ...parts] of [
    ['short', '993 bytes', '1000'],
    ['busy', '429', 'try again later'],
  ] as const) {
    // The first answer of the one is short too.
    if (behaviour === 'short') {
      await rejection(() => open('short'), 'IO', '65529', '65536');
      continue;
    }
    const source = await open(behaviour);
    const before = server.requests.length;
    await rejection(() => source.read(1_000_000, 1000), 'IO', ...parts);
    assert.is(server.requests.length, before + 3);
  }
});

test('all parts of a split model are found beside the one that is named', async () => {
  const source = await open('ranges', 'demo-00002-of-00002.gguf');
  assert.is(source.parts?.length, 2);
  same(await source.read(2_999_990, 20), 2_999_990, 20);
  const target = new Uint8Array(20);
  await openReader(source.locator, source.name).readInto(target, 2_999_990);
  same(target, 2_999_990, 20);
  await rejection(() => open('ranges', 'lost-00001-of-00002.gguf'), 'NOT_FOUND', 'lost-00002', 'part 2 of the 2');
});

test('an abort ends a download', async () => {
  const controller = new AbortController();
  const loading = openUrlSource(new URL(`${server.origin}/whole/demo.gguf`), {
    signal: controller.signal,
    onDownload: () => controller.abort(),
  });
  await rejection(() => loading, 'ABORTED', 'whole/demo.gguf');
});

for (const behaviour of ['ranges', 'whole', 'cut-once'] as const) {
  for (const options of [{ threads: 2 }, { shared: false }]) {
    test(`an engine from a URL, ${behaviour}, ${JSON.stringify(options)}`, async () => {
      const engine = await createEngine(new URL(`${server.origin}/${behaviour}/demo.gguf`), options);
      try {
        const request = { messages: [{ role: 'user', content: 'What is 2+2?' }] };
        for await (const event of engine.generate(request)) {
          if (event.event === 'final') assert.is(event.text, '2 + 2 = 4');
        }
      } finally {
        await engine.dispose();
      }
    });
  }
}

test.run();
