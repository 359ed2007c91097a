import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { WorkerRunner } from '../../src/backends/wasm/runner.ts';
import { AprError } from '../../src/errors.ts';
import { CONTROL, CONTROL_BYTES } from '../../src/scheduling/control.ts';

test('threads that have lost one another end a pass with an error', async () => {
  const control = new Int32Array(new SharedArrayBuffer(CONTROL_BYTES));
  // A thread that takes the pass, and of which nothing is ever heard again.
  const pool = { run: () => [new Promise<void>(() => {})], dispose: async () => {} };
  const runner = new WorkerRunner(pool, control, () => [], 150);
  try {
    await runner.run(undefined);
    assert.unreachable('the pass ended');
  } catch (error) {
    assert.instance(error, AprError);
    assert.is((error as AprError).code, 'INFERENCE');
    assert.match((error as AprError).message, /lost one another: none got further/);
  }
  assert.is(control[CONTROL.ABORT], 1, 'threads that wait for one another are released');
  assert.is(control[CONTROL.STATE], 1, 'the session is told to end');
  let again: unknown;
  await runner.run(undefined).catch((error: unknown) => {
    again = error;
  });
  assert.match(String(again), /lost one another/, 'every later pass fails at once');
});

test('a pass that goes on slowly is let alone', async () => {
  const control = new Int32Array(new SharedArrayBuffer(CONTROL_BYTES));
  const pool = { run: () => [new Promise<void>(() => {})], dispose: async () => {} };
  const runner = new WorkerRunner(pool, control, () => [], 400);
  let steps = 0;
  const worker = setInterval(() => {
    Atomics.add(control, CONTROL.BARRIER + 1, 1);
    if (++steps === 12) Atomics.store(control, CONTROL.FINISHED, Atomics.load(control, CONTROL.SEQUENCE));
  }, 100);
  await runner.run(undefined);
  clearInterval(worker);
  assert.is(steps >= 12, true);
});

test.run();
