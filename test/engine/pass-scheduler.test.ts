/** Who goes along in a pass. */

import { setTimeout as wait } from 'node:timers/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { PassScheduler, type SequenceCache } from '../../src/batch.ts';
import { AprError } from '../../src/errors.ts';
import type { Backend, PassInputs } from '../../src/graph/backend.ts';
import type { PassRecord } from '../../src/graph/command.ts';

interface Pass {
  readonly inputs: PassInputs;
  readonly signal: AbortSignal | undefined;
  end(error?: Error): void;
}

/** A backend whose passes end when the test says so; the logit of a row is its token. */
function scheduler({ maxRows = 8, maxOutputs = 4 } = {}): { passes: PassScheduler; started: Pass[] } {
  const started: Pass[] = [];
  const backend = {
    maxRows,
    maxOutputs,
    execute: (_: PassRecord, inputs: PassInputs, __: unknown, signal?: AbortSignal) =>
      new Promise<Float32Array>((resolve, reject) => {
        signal?.addEventListener('abort', () => reject(new AprError('ABORTED', 'aborted')));
        const logits = Float32Array.from(inputs.outputRows, (row) => inputs.tokens[row]!);
        started.push({ inputs, signal, end: (error) => (error === undefined ? resolve(logits) : reject(error)) });
      }),
  } as unknown as Backend;
  const record = (rows: number, outputs: number) => ({ rows, outputs, logits: { width: 1 } }) as unknown as PassRecord;
  return { passes: new PassScheduler(backend, record), started };
}

const cache = (sequence: number): SequenceCache => ({ sequence, cached: [] });
const rowsOf = ({ inputs }: Pass) =>
  Array.from(inputs.sequences, (s, i) => `${s}:${inputs.tokens[i]}@${inputs.positions[i]}`);
const turn = () => wait(0);

test('those that wait share the next pass; single rows come first, prompts are cut as there is room', async () => {
  const { passes, started } = scheduler();
  const [a, b, c] = [cache(0), cache(1), cache(2)];
  const run = (of: SequenceCache, tokens: number[], position = of.cached.length) =>
    passes.run({ cache: of, tokens, position, outputs: 'last' });
  const first = run(a, [10]);
  const second = run(b, [20, 21, 22, 23, 24, 25, 26, 27, 28]);
  const third = run(c, [30]);
  await turn();
  assert.equal(rowsOf(started[0]!), ['0:10@0'], 'who comes first does not wait');
  started[0]!.end();
  assert.is((await first)[0], 10);
  const fourth = run(a, [11]);
  await turn();
  const middle = ['1:20@0', '1:21@1', '1:22@2', '1:23@3', '1:24@4', '1:25@5'];
  assert.equal(rowsOf(started[1]!).slice(2), middle);
  assert.equal(rowsOf(started[1]!).slice(0, 2).sort(), ['0:11@1', '2:30@0']);
  assert.equal([...started[1]!.inputs.outputRows], [0, 1], 'a prompt that goes on wants no logits');
  started[1]!.end();
  assert.equal([(await fourth)[0], (await third)[0]], [11, 30]);
  passes.leave(0);
  passes.leave(2);
  await turn();
  assert.equal(rowsOf(started[2]!), ['1:26@6', '1:27@7', '1:28@8']);
  started[2]!.end();
  assert.is((await second)[0], 28);
  assert.equal([a.cached, b.cached.length, c.cached], [[10, 11], 9, [30]]);
});

test('a sequence of the last pass is waited for a moment, and then no more', async () => {
  const { passes, started } = scheduler();
  const [a, b] = [cache(0), cache(1)];
  const run = (of: SequenceCache, token: number) =>
    passes.run({ cache: of, tokens: [token], position: of.cached.length, outputs: 'last' });
  const first = run(a, 1);
  const second = run(b, 5);
  await turn();
  started[0]!.end();
  await first;
  const third = run(a, 2);
  await turn();
  assert.is(started[1]!.inputs.tokens.length, 2);
  started[1]!.end();
  await Promise.all([second, third]);
  void run(a, 3);
  assert.is(started.length, 2, 'b may be about to come');
  await wait(60);
  assert.is(started.length, 3, 'it did not');
  assert.equal(rowsOf(started[2]!), ['0:3@2']);
});

test('more outputs than a pass has room for wait for the next one', async () => {
  const { passes, started } = scheduler({ maxOutputs: 2 });
  void passes.run({ cache: cache(9), tokens: [9], position: 0, outputs: 'last' });
  for (const sequence of [0, 1, 2])
    void passes.run({ cache: cache(sequence), tokens: [1], position: 0, outputs: 'last' });
  await turn();
  passes.leave(9);
  started[0]!.end();
  await wait(60);
  assert.is(started[1]!.inputs.outputRows.length, 2);
});

test('an aborted request rejects at once; the pass ends only when nobody wants it any more', async () => {
  const { passes, started } = scheduler();
  const [a, b] = [cache(0), cache(1)];
  const aborts = [new AbortController(), new AbortController()];
  void passes.run({ cache: cache(9), tokens: [9], position: 0, outputs: 'last' });
  const results = [a, b].map((one, i) =>
    passes.run({ cache: one, tokens: [1], position: 0, outputs: 'last', signal: aborts[i]!.signal }).then(
      () => 'done',
      (error: AprError) => error.code,
    ),
  );
  await turn();
  started[0]!.end();
  await wait(60);
  assert.equal(rowsOf(started[1]!), ['0:1@0', '1:1@0']);
  aborts[0]!.abort();
  assert.is(await results[0], 'ABORTED');
  assert.is(started[1]!.signal?.aborted, false);
  aborts[1]!.abort();
  assert.is(started[1]!.signal?.aborted, true);
  assert.is(await results[1], 'ABORTED');
  assert.equal([a.cached, b.cached], [[], []]);
  const late = passes.run({ cache: b, tokens: [5], position: 0, outputs: 'last' });
  await turn();
  started[2]!.end();
  assert.is((await late)[0], 5);
});

test('a pass that fails fails for all that are in it, and for nobody else', async () => {
  const { passes, started } = scheduler();
  const one = passes
    .run({ cache: cache(0), tokens: [1], position: 0, outputs: 'last' })
    .catch((error: Error) => error.message);
  const two = passes.run({ cache: cache(1), tokens: [2], position: 0, outputs: 'last' });
  await turn();
  started[0]!.end(new Error('broken'));
  assert.is(await one, 'broken');
  await turn();
  started[1]!.end();
  assert.is((await two)[0], 2);
});

test('a pass with an observer, or with all logits, has one request only', async () => {
  const { passes, started } = scheduler();
  const observer = { wants: () => false, onTap: () => {} };
  void passes.run({ cache: cache(0), tokens: [1], position: 0, outputs: 'last' });
  const observed = passes.run({ cache: cache(1), tokens: [2, 3], position: 0, outputs: 'last', observer });
  const all = passes.run({ cache: cache(2), tokens: [4, 5], position: 0, outputs: 'all' });
  await turn();
  for (const index of [0, 1, 2]) {
    started[index]!.end();
    await wait(40);
  }
  assert.equal(started.map(rowsOf), [['0:1@0'], ['1:2@0', '1:3@1'], ['2:4@0', '2:5@1']]);
  assert.equal([[...(await observed)], [...(await all)]], [[3], [4, 5]]);
});

test.run();
