/** The browser's side of chromium.test.ts: every exported function is a test that runs in the page. */

import { AprError, createEngine, createLocalEngine, type GenerateEvent, type RemoteEngine } from '../../src/web.ts';

const QUESTION = { messages: [{ role: 'user', content: 'What is 2+2?' }] } as const;
const LONG = { ...QUESTION, ignoreEos: true, maxTokens: 400 } as const;

interface Context {
  /** Of a server on another origin, which allows to be read. */
  readonly other: string;
  readonly model: string;
  /** What this browser is expected to take when nobody asks for one. */
  readonly kernel: 'simd' | 'relaxed';
}

function expect(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(message);
}

function equal(found: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  if (a !== b) throw new Error(`found ${a}, expected ${b}`);
}

async function answer(engine: Pick<RemoteEngine, 'generate'>): Promise<string> {
  for await (const event of engine.generate(QUESTION)) if (event.event === 'final') return event.text;
  throw new Error('no final event');
}

async function code(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof AprError) return error.code;
    throw error;
  }
  return 'none';
}

async function file({ model }: Context): Promise<File> {
  return new File([await (await fetch(model)).arrayBuffer()], 'my model.gguf');
}

/** In a page that is cross-origin isolated. */
export const ISOLATED: Readonly<Record<string, (context: Context) => Promise<void>>> = {
  'a page with threads: one, two and three give the same tokens': async ({ model, kernel }) => {
    const seen: string[] = [];
    for (const threads of [1, 2, 3]) {
      const engine = await createEngine(model, { threads });
      equal([engine.info.backend.threads, engine.info.backend.kernel], [threads, kernel]);
      for await (const event of engine.generate(QUESTION)) {
        if (event.event === 'final') seen.push(`${event.text} ${event.tokens.join()}`);
      }
      await engine.dispose();
    }
    equal(new Set(seen).size, 1);
    expect(seen[0]?.startsWith('2 + 2 = 4 '), `${seen[0]}`);
  },

  'the kernels without relaxed SIMD give the same answer': async ({ model }) => {
    const engine = await createEngine(model, { kernel: 'simd', threads: 2 });
    equal([engine.info.backend.kernel, await answer(engine)], ['simd', '2 + 2 = 4']);
    await engine.dispose();
  },

  'a File, bytes, another origin, and a server without ranges': async (context) => {
    const picked = await file(context);
    const bytes = new Uint8Array(await picked.arrayBuffer());
    const url = `${context.other}/ranges/demo.gguf`;
    for (const source of [picked, bytes, url, new URL(url), `${context.other}/whole/demo.gguf`]) {
      const engine = await createEngine(source, { threads: 2 });
      equal(await answer(engine), '2 + 2 = 4');
      if (source instanceof File) equal(engine.info.model, 'my model.gguf');
      await engine.dispose();
    }
    equal(bytes.length, picked.size);
  },

  'progress runs to the end, and what its listener throws ends the load': async ({ model }) => {
    const seen: [number, number][] = [];
    const engine = await createEngine(model, {
      onProgress: ({ loadedBytes, totalBytes }) => seen.push([loadedBytes, totalBytes]),
    });
    await engine.dispose();
    const [loaded, total] = seen.at(-1) ?? [0, 1];
    equal(loaded, total);
    const failed = createEngine(model, {
      onProgress: () => {
        throw new Error('enough');
      },
    });
    equal(await failed.catch((error: Error) => error.message), 'enough');
  },

  'events come one by one, and the page is free meanwhile': async ({ model }) => {
    const engine = await createEngine(model, { threads: 2 });
    const order: string[] = [];
    const timer = setInterval(() => order.push('tick'), 5);
    for await (const event of engine.generate({ ...LONG, maxTokens: 200 })) order.push(event.event);
    clearInterval(timer);
    await engine.dispose();
    equal(order.filter((entry) => entry === 'token').length, 200);
    const first = order.indexOf('token');
    const last = order.lastIndexOf('token');
    expect(order.slice(first, last).includes('tick'), 'all tokens came at once');
  },

  'an abort ends an answer, and the engine goes on': async ({ model }) => {
    const engine = await createEngine(model, { threads: 2 });
    const controller = new AbortController();
    let after = 0;
    const running = (async () => {
      for await (const event of engine.generate({ ...LONG, signal: controller.signal })) {
        if (controller.signal.aborted) after++;
        if (event.event === 'token' && event.index === 5) controller.abort();
      }
    })();
    equal([await code(running), after], ['ABORTED', 0]);
    equal(await answer(engine), '2 + 2 = 4');
    await engine.dispose();
  },

  'walking away from an answer gives its turn to the next one': async ({ model }) => {
    const engine = await createEngine(model, { threads: 2 });
    for await (const event of engine.generate(LONG)) if (event.event === 'token' && event.index === 3) break;
    equal(await answer(engine), '2 + 2 = 4');
    await engine.dispose();
  },

  'errors keep their code and details': async (context) => {
    equal(await code(createEngine(`${context.other}/nowhere/demo.gguf`)), 'NOT_FOUND');
    equal(await code(createEngine(new Blob(['hello, world, hello']))), 'BAD_FORMAT');
    equal(await code(createEngine('')), 'USAGE');
    equal(await code(createEngine('http://127.0.0.1:1/x.gguf')), 'IO');
    equal(await code(createEngine(context.model, { threads: 0 })), 'USAGE');
    equal(await code(createEngine(context.model, { signal: AbortSignal.abort() })), 'ABORTED');
    equal(await code(createEngine(context.model, { engineWorker: '/nowhere.js' })), 'LOAD_FAILED');
    equal(await code(createEngine(context.model, { kernelWorker: '/nowhere.js' })), 'LOAD_FAILED');
    const kernels = { [`${context.kernel}-shared`]: '/nowhere.wasm' };
    equal(await code(createEngine(context.model, { kernels })), 'LOAD_FAILED');
    const engine = await createEngine(context.model, { threads: 2 });
    equal(await code(answer({ generate: () => engine.generate({}) })), 'USAGE');
    equal(await code(engine.forward([1e9])), 'USAGE');
    equal(await code(engine.tokenize((() => {}) as unknown as string)), 'USAGE');
    await engine.dispose();
    await engine.dispose();
    equal(await code(answer(engine)), 'DISPOSED');
    equal(await code(engine.tokenize('x')), 'DISPOSED');
  },

  'tokenize, detokenize, template and logits': async ({ model }) => {
    const engine = await createEngine(model, { threads: 2 });
    const ids = await engine.tokenize('Hello, world');
    equal(await engine.detokenize(ids), 'Hello, world');
    expect((await engine.applyChatTemplate(QUESTION.messages)).includes('What is 2+2?'), 'template');
    const logits = await engine.forward(ids);
    equal([logits.length, logits.every(Number.isFinite)], [engine.info.vocabularySize, true]);
    await engine.dispose();
  },

  'kernel modules from bytes and compiled': async ({ model, kernel }) => {
    const build = `${kernel}-shared`;
    const bytes = new Uint8Array(await (await fetch(`/assembly/${build}.wasm`)).arrayBuffer());
    for (const module of [bytes, await WebAssembly.compile(bytes)]) {
      const engine = await createEngine(model, { kernels: { [build]: module } });
      equal(await answer(engine), '2 + 2 = 4');
      await engine.dispose();
    }
  },

  'an engine in the page itself, on plain memory': async ({ model }) => {
    const engine = await createLocalEngine(model, { shared: false });
    equal([engine.info.backend.threads, await answer(engine)], [1, '2 + 2 = 4']);
    await engine.dispose();
  },
};

/** In a page that is not. */
export const PLAIN: Readonly<Record<string, (context: Context) => Promise<void>>> = {
  'without isolation: one thread, the same answer, and a warning that says why': async ({ model }) => {
    const warnings: string[] = [];
    const engine = await createEngine(model, { onWarning: ({ rule, message }) => warnings.push(`${rule} ${message}`) });
    equal([engine.info.backend.threads, await answer(engine)], [1, '2 + 2 = 4']);
    expect(warnings.length === 1 && /^SINGLE-THREAD .*Cross-Origin-Opener-Policy/.test(`${warnings}`), warnings.join());
    equal(
      engine.info.warnings?.map(({ rule }) => rule),
      ['SINGLE-THREAD'],
    );
    await engine.dispose();
  },

  'without isolation: threads that were asked for are refused': async ({ model }) => {
    const error = await createEngine(model, { threads: 2 }).catch((error: AprError) => error);
    expect(error instanceof AprError && error.code === 'USAGE', String(error));
    expect(error.message.includes('Cross-Origin-Opener-Policy'), error.message);
  },

  'without isolation: an abort ends an answer': async (context) => {
    const engine = await createEngine(await file(context), { onWarning: () => {} });
    const controller = new AbortController();
    const events: GenerateEvent[] = [];
    const running = (async () => {
      for await (const event of engine.generate({ ...LONG, signal: controller.signal })) {
        events.push(event);
        if (events.length === 3) controller.abort();
      }
    })();
    equal([await code(running), events.length], ['ABORTED', 3]);
    await engine.dispose();
  },
};

/** Runs all tests of a table and posts how each ended. */
export async function runAll(tests: typeof ISOLATED, context: Context): Promise<void> {
  for (const [name, run] of Object.entries(tests)) {
    let error: string | undefined;
    try {
      await run(context);
    } catch (thrown) {
      error = thrown instanceof Error ? `${thrown.message}\n${thrown.stack}` : String(thrown);
    }
    await fetch('/report', {
      method: 'POST',
      body: JSON.stringify({ name, ...(error === undefined ? {} : { error }) }),
    });
  }
}
