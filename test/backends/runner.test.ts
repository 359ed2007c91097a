import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { createInterpreter } from '../../src/backends/wasm/interpreter.ts';
import type { KernelExports } from '../../src/backends/wasm/kernels.ts';
import { CALL, CALL_WORDS } from '../../src/backends/wasm/program.ts';
import { WorkerRunner } from '../../src/backends/wasm/runner.ts';
import { AprError } from '../../src/errors.ts';
import { barrierState } from '../../src/scheduling/barrier.ts';
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

test('a worker alone shows that it gets further, and looks whether the pass was aborted', () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
  const control = new Int32Array(memory.buffer, 0, CONTROL_BYTES / 4);
  let calls = 0;
  let abortAt = 0;
  const kernel = (): void => {
    if (++calls === abortAt) Atomics.store(control, CONTROL.ABORT, 1);
  };
  const exports = new Proxy({}, { get: () => kernel }) as unknown as KernelExports;
  const [programPointer, steps] = [CONTROL_BYTES, 5];
  const countersPointer = programPointer + steps * CALL_WORDS * 4;
  const program = new Int32Array(memory.buffer, programPointer, steps * CALL_WORDS);
  for (let step = 0; step < steps; step++) {
    program[step * CALL_WORDS + CALL.BARRIER] = step === 0 ? 0 : 1;
    program[step * CALL_WORDS + CALL.ITEMS] = 1;
  }
  Atomics.store(control, CONTROL.PROGRAM_LENGTH, program.length);
  const layout = { programPointer, countersPointer, scratchPointers: [0], scratchBytes: 0 };
  const interpreter = createInterpreter([{ exports, memory }], layout, 0, 1);
  const before = barrierState(control);
  assert.is(interpreter.run(), true);
  assert.is(calls, steps);
  assert.not.equal(barrierState(control), before, 'the watch sees progress');
  calls = 0;
  abortAt = 2;
  assert.is(interpreter.run(), false);
  assert.is(calls, 2, 'nothing is computed behind the abort');
});

test('a session of many passes does not grow', async () => {
  const control = new Int32Array(new SharedArrayBuffer(CONTROL_BYTES));
  const pool = { run: () => [new Promise<void>(() => {})], dispose: async () => {} };
  const runner = new WorkerRunner(pool, control, () => []);
  const passes = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) {
      const pass = runner.run(undefined);
      // Behind the pass's begin: it has to wait.
      setImmediate(() => {
        Atomics.store(control, CONTROL.FINISHED, Atomics.load(control, CONTROL.SEQUENCE));
        Atomics.notify(control, CONTROL.FINISHED);
      });
      await pass;
    }
  };
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const heap = async (): Promise<number> => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    collect();
    return process.memoryUsage().heapUsed;
  };
  await passes(2000);
  const before = await heap();
  await passes(10_000);
  const grown = (await heap()) - before;
  runner.fail(new AprError('DISPOSED', 'the engine was disposed'));
  assert.ok(grown < 1_000_000, `10000 passes left ${grown} bytes behind`);
});

test.run();
