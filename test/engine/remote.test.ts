/** An engine behind Comlink: host and caller on the two ends of a channel. */

import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { type Endpoint, expose } from 'comlink';
import adapter from 'comlink/dist/umd/node-adapter.js';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Engine, EngineOptions, GenerateEvent } from '../../src/engine.ts';
import { createEngineHost } from '../../src/engines/host.ts';
import { connectEngine, type RemoteEngine } from '../../src/engines/remote.ts';
import { AprError } from '../../src/errors.ts';
import { createEngine } from '../../src/index.ts';
import { DEMO } from '../repository.ts';

// Its types are those of an ES module, which the file is not.
const nodeEndpoint = adapter as unknown as (port: MessagePort) => Endpoint;

const QUESTION = { messages: [{ role: 'user', content: 'What is 2+2?' }] };
const LONG = { ...QUESTION, ignoreEos: true, maxTokens: 400 };

const ports: MessagePort[] = [];
test.after(() => {
  for (const port of ports) port.close();
});

/** A channel with a host behind it, and the means to let it die. */
function channel(create: (source: never, options: EngineOptions) => Promise<Engine> = createEngine) {
  const { port1, port2 } = new MessageChannel();
  ports.push(port1, port2);
  expose(createEngineHost(create as typeof createEngine), nodeEndpoint(port1));
  let die = (_: Error): void => {};
  const death = new Promise<never>((_, reject) => {
    die = reject;
  });
  death.catch(() => {});
  let terminated = 0;
  const thread = { endpoint: nodeEndpoint(port2), death, terminate: () => void terminated++ };
  return { thread, die: (error: Error) => die(error), terminated: () => terminated };
}

function connect(options: EngineOptions = { threads: 2 }): Promise<RemoteEngine> {
  return connectEngine(channel().thread, DEMO, options);
}

async function text(engine: Pick<RemoteEngine, 'generate'>): Promise<string> {
  for await (const event of engine.generate(QUESTION)) if (event.event === 'final') return event.text;
  return assert.unreachable('no final event') as never;
}

async function failure(promise: Promise<unknown>): Promise<AprError> {
  try {
    await promise;
  } catch (error) {
    assert.instance(error, AprError, String(error));
    return error as AprError;
  }
  return assert.unreachable('it did not fail') as never;
}

/** An engine of which nothing is real but its answer. */
function fakeEngine(
  generate: (signal: AbortSignal) => AsyncGenerator<GenerateEvent>,
  dispose = async () => {},
): Engine {
  const engine = {
    info: { model: 'fake' },
    generate: ({ signal }: { signal: AbortSignal }) => generate(signal),
    dispose,
  };
  return engine as unknown as Engine;
}

const token = (index: number): GenerateEvent => ({ event: 'token', index, token_id: index, text: `${index} ` });

test('says and answers what the engine itself does', async () => {
  const local = await createEngine(DEMO, { threads: 2 });
  const remote = await connect();
  try {
    assert.equal({ ...remote.info, loadMs: 0 }, { ...local.info, loadMs: 0 });
    const events = async (engine: Pick<RemoteEngine, 'generate'>): Promise<unknown[]> => {
      const all: unknown[] = [];
      for await (const event of engine.generate({ ...QUESTION, logprobs: 2 })) {
        all.push(event.event === 'final' ? [event.text, event.tokens, event.stop_reason, event.logprobs] : event);
      }
      return all;
    };
    assert.equal(await events(remote), await events(local));
    const ids = local.tokenize('Hello <|im_end|>');
    assert.equal(await remote.tokenize('Hello <|im_end|>'), ids);
    assert.is(await remote.detokenize(ids), 'Hello <|im_end|>');
    const rendered = local.applyChatTemplate(QUESTION.messages);
    assert.is(await remote.applyChatTemplate(QUESTION.messages), rendered);
    assert.equal(await remote.forward(ids), await local.forward(ids));
    assert.equal(await remote.forward(ids, { all: true }), await local.forward(ids, { all: true }));
  } finally {
    await remote.dispose();
    await local.dispose();
  }
});

test('events come as they arise, not in the end', async () => {
  let release = (): void => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const engine = fakeEngine(async function* () {
    yield token(0);
    await gate;
    yield token(1);
  });
  const remote = await connectEngine(channel(async () => engine).thread, 'fake');
  const events = remote.generate(QUESTION)[Symbol.asyncIterator]();
  assert.is((await events.next()).value.index, 0);
  release();
  assert.is((await events.next()).value.index, 1);
  assert.is((await events.next()).done, true);
  await remote.dispose();
});

test('the engine runs a few tokens ahead of its reader, and no further', async () => {
  let made = 0;
  const engine = fakeEngine(async function* () {
    for (; made < 1000; made++) yield token(made);
  });
  const remote = await connectEngine(channel(async () => engine).thread, 'fake');
  const events = remote.generate(QUESTION)[Symbol.asyncIterator]();
  assert.is((await events.next()).value.index, 0);
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.ok(made >= 15 && made <= 40, `${made} tokens ahead`);
  for (let i = 1; i < 1000; i++) assert.is((await events.next()).value.index, i);
  assert.is((await events.next()).done, true);
  await remote.dispose();
});

test('an abort stops the engine within a token; nothing that came before it is told after it', async () => {
  let made = 0;
  const engine = fakeEngine(async function* (signal) {
    for (; ; made++) {
      await new Promise((resolve) => setTimeout(resolve, 2));
      if (signal.aborted) throw new AprError('ABORTED', 'the generation was aborted');
      yield token(made);
    }
  });
  const remote = await connectEngine(channel(async () => engine).thread, 'fake');
  const controller = new AbortController();
  const seen: number[] = [];
  const error = await failure(
    (async () => {
      for await (const event of remote.generate({ ...QUESTION, signal: controller.signal })) {
        if (event.event === 'token') seen.push(event.index);
        // Lets some pile up.
        if (seen.length === 3) await new Promise((resolve) => setTimeout(resolve, 20));
        if (seen.length === 3) controller.abort();
      }
    })(),
  );
  assert.is(error.code, 'ABORTED');
  assert.equal(seen, [0, 1, 2]);
  const after = made;
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.is(made, after);
  await remote.dispose();
});

test('an abort before the first event, in an answer and in a forward pass; then the engine goes on', async () => {
  const engine = await connect();
  try {
    const signal = AbortSignal.abort();
    const answer = async (): Promise<void> => {
      for await (const _ of engine.generate({ ...LONG, signal }));
    };
    assert.is((await failure(answer())).code, 'ABORTED');
    assert.is((await failure(engine.forward([1, 2, 3], { signal }))).code, 'ABORTED');
    assert.is(await text(engine), '2 + 2 = 4');
  } finally {
    await engine.dispose();
  }
});

test('walking away from an answer gives its turn to the next one', async () => {
  const engine = await connect();
  for await (const event of engine.generate(LONG)) if (event.event === 'token' && event.index === 3) break;
  assert.is(await text(engine), '2 + 2 = 4');
  await engine.dispose();
});

test('errors keep code, message and details', async () => {
  const { thread, terminated } = channel();
  const missing = await failure(connectEngine(thread, 'no-such-file.gguf'));
  assert.is(missing.code, 'NOT_FOUND');
  assert.match(missing.message, 'no-such-file.gguf: no such file');
  assert.is(missing.details.path, 'no-such-file.gguf');
  assert.is(terminated(), 1);

  const engine = await connect();
  const outside = await failure(engine.forward([1e9]));
  assert.is(outside.code, 'USAGE');
  assert.match(outside.message, '1000000000');
  const tooLong = await failure(engine.forward(Array<number>(100_000).fill(1)));
  assert.is(tooLong.code, 'CONTEXT_EXCEEDED');
  assert.is(tooLong.details.promptTokens, 100_000);
  await engine.dispose();
});

test('what cannot be sent is refused by name', async () => {
  const engine = await connect();
  const observer = { wants: () => true, onTap: () => {} };
  const generation = async (): Promise<void> => {
    for await (const _ of engine.generate({ ...QUESTION, observer }));
  };
  assert.match((await failure(generation())).message, 'observer');
  assert.match((await failure(engine.forward([1], { onLogits: () => {} }))).message, 'onLogits');
  const functions = await failure(engine.tokenize((() => {}) as unknown as string));
  assert.is(functions.code, 'USAGE');
  assert.is(await text(engine), '2 + 2 = 4');
  await engine.dispose();
});

test('dispose ends what is pending, once and for all, and the thread', async () => {
  const { thread, terminated } = channel();
  const engine = await connectEngine(thread, DEMO, { threads: 2 });
  const events = engine.generate(LONG)[Symbol.asyncIterator]();
  await events.next();
  const pending = (async () => {
    while (!(await events.next()).done);
  })();
  const failed = failure(pending);
  await Promise.all([engine.dispose(), engine.dispose()]);
  assert.is((await failed).code, 'DISPOSED');
  assert.is(terminated(), 1);
  assert.is((await failure(text(engine))).code, 'DISPOSED');
  assert.is((await failure(engine.tokenize('x'))).code, 'DISPOSED');
});

test('a thread that dies rejects what is pending and everything later; nothing hangs', async () => {
  const { thread, die, terminated } = channel();
  const engine = await connectEngine(thread, DEMO, { threads: 1 });
  const events = engine.generate(LONG)[Symbol.asyncIterator]();
  await events.next();
  const pending = failure(
    (async () => {
      while (!(await events.next()).done);
    })(),
  );
  die(new Error('out of memory'));
  const error = await pending;
  assert.is(error.code, 'INFERENCE');
  assert.match(error.message, /thread died \(out of memory\)/);
  assert.is((await failure(engine.forward([1]))).code, 'INFERENCE');
  await engine.dispose();
  assert.is(terminated(), 1);
});

test('a thread that dies while loading is a failed load; an abort gives the thread up at once', async () => {
  const never = async (): Promise<Engine> => new Promise(() => {});
  const dying = channel(never);
  const load = failure(connectEngine(dying.thread, 'fake'));
  dying.die(new Error('its script could not be loaded'));
  const error = await load;
  assert.is(error.code, 'LOAD_FAILED');
  assert.match(error.message, 'its script could not be loaded');
  assert.is(dying.terminated(), 1);

  const hanging = channel(never);
  const controller = new AbortController();
  const aborted = failure(connectEngine(hanging.thread, 'fake', { signal: controller.signal }));
  setTimeout(() => controller.abort(), 20);
  assert.is((await aborted).code, 'ABORTED');
  assert.is(hanging.terminated(), 1);
});

test('warnings come through', async () => {
  const engine = fakeEngine(async function* () {});
  const warning = { rule: 'SOME-RULE', message: 'one sentence' };
  const { thread } = channel(async (_, { onWarning }) => {
    onWarning?.(warning);
    return engine;
  });
  const seen: unknown[] = [];
  await connectEngine(thread, 'fake', { onWarning: (found) => seen.push(found) });
  assert.equal(seen, [warning]);
});

test('progress comes through, and what its listener throws ends the load', async () => {
  const seen: number[] = [];
  const engine = await connect({
    threads: 2,
    onProgress: ({ loadedBytes, totalBytes }) => seen.push(loadedBytes / totalBytes),
  });
  await engine.dispose();
  assert.is(seen.at(-1), 1);
  const onProgress = (): void => {
    throw new Error('enough');
  };
  try {
    await connect({ threads: 2, onProgress });
    assert.unreachable();
  } catch (error) {
    assert.is((error as Error).message, 'enough');
  }
});

test.run();
