import { Worker } from 'node:worker_threads';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { compileBuild, createBench } from './ops-fixtures.ts';

/** Words of the control area, as the worker below uses them: the barrier's three, then what the workers write. */
const COUNTERS = 16;

/**
 * Goes through the barrier `rounds` times; counts itself into a cell of its own before each and looks after each
 * whether everybody has done so. Between two barriers nobody may be ahead or behind: a mismatch ends with its round.
 */
const WORKER = `
const { parentPort, workerData } = require('node:worker_threads');
const { module, memory, worker, workers, rounds, spin } = workerData;
WebAssembly.instantiate(module, { env: { memory } }).then(({ exports }) => {
  const words = new Int32Array(memory.buffer);
  const cells = Array.from({ length: workers }, (_, i) => ${COUNTERS} * (i + 1));
  parentPort.postMessage('ready');
  for (let round = 1; round <= rounds; round++) {
    words[cells[worker]] = round;
    if (exports.barrier(0, workers, spin) !== 0) return parentPort.postMessage({ aborted: round });
    for (const cell of cells) if (words[cell] !== round) return parentPort.postMessage({ wrong: round });
    if (exports.barrier(0, workers, spin) !== 0) return parentPort.postMessage({ aborted: round });
  }
  parentPort.postMessage({ done: rounds });
}, (error) => parentPort.postMessage({ error: String(error) }));
`;

type Outcome = { done: number } | { aborted: number } | { wrong: number } | { error: string };

interface Crew {
  readonly memory: WebAssembly.Memory;
  readonly ready: Promise<unknown>;
  readonly outcomes: Promise<Outcome[]>;
}

async function crew(
  workers: number,
  rounds: number,
  spin: number,
  spinOf = (_worker: number) => spin,
  started = workers,
): Promise<Crew> {
  const module = await compileBuild('simd-shared');
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
  const ready: Promise<void>[] = [];
  const outcomes: Promise<Outcome>[] = [];
  for (let worker = 0; worker < started; worker++) {
    const thread = new Worker(WORKER, {
      eval: true,
      workerData: { module, memory, worker, workers, rounds, spin: spinOf(worker) },
    });
    ready.push(new Promise((resolve) => thread.once('message', () => resolve())));
    outcomes.push(
      new Promise((resolve, reject) => {
        thread.on('message', (message: Outcome | 'ready') => {
          if (message === 'ready') return;
          resolve(message);
          void thread.terminate();
        });
        thread.once('error', reject);
      }),
    );
  }
  return { memory, ready: Promise.all(ready), outcomes: Promise.all(outcomes) };
}

for (const [workers, spin] of [
  [2, 4000],
  [2, 0],
  [5, 100],
  [5, 0],
] as const) {
  test(`${workers} workers meet 20,000 times, spinning ${spin} times`, async () => {
    const { memory, outcomes } = await crew(workers, 10_000, spin);
    assert.equal(await outcomes, new Array(workers).fill({ done: 10_000 }));
    const [arrived, , abort] = new Int32Array(memory.buffer, 0, 3);
    assert.is(arrived, 0);
    assert.is(abort, 0);
  });
}

test('workers that sleep and workers that spin wake each other', async () => {
  const { outcomes } = await crew(3, 2_000, 0, (worker) => (worker === 0 ? 100_000 : 0));
  assert.equal(await outcomes, new Array(3).fill({ done: 2_000 }));
});

for (const spin of [0, 1_000_000]) {
  test(`abort releases all who wait for one that never comes, spinning ${spin} times`, async () => {
    // Five are awaited, four exist.
    const { memory, ready, outcomes } = await crew(5, 1, spin, () => spin, 4);
    await ready;
    const words = new Int32Array(memory.buffer);
    while (Atomics.load(words, 0) < 4) await new Promise((resolve) => setTimeout(resolve, 1));
    const module = (await compileBuild('simd-shared')) as WebAssembly.Module;
    const { exports } = await WebAssembly.instantiate(module, { env: { memory } });
    (exports.barrier_abort as (control: number, code: number) => void)(0, 7);
    assert.equal(await outcomes, new Array(4).fill({ aborted: 1 }));
    assert.is(Atomics.load(words, 2), 7);
    // Who comes later does not wait either.
    assert.is((exports.barrier as (...args: number[]) => number)(0, 5, 0), 1);
  });
}

test('abort in the middle of the work ends every worker', async () => {
  const { memory, ready, outcomes } = await crew(3, 1_000_000_000, 50);
  await ready;
  const words = new Int32Array(memory.buffer);
  while (Atomics.load(words, COUNTERS) < 100) await new Promise((resolve) => setTimeout(resolve, 1));
  const module = (await compileBuild('simd-shared')) as WebAssembly.Module;
  const { exports } = await WebAssembly.instantiate(module, { env: { memory } });
  (exports.barrier_abort as (control: number, code: number) => void)(0, 0);
  for (const outcome of await outcomes) assert.ok('aborted' in outcome, JSON.stringify(outcome));
  assert.is(Atomics.load(words, 2), 1);
});

test('one worker passes at once, also on plain memory', async () => {
  for (const build of ['simd-shared', 'simd-plain'] as const) {
    const bench = (await createBench(build, 1))!;
    const control = bench.ints([0, 0, 0]);
    for (let i = 0; i < 3; i++) assert.is(bench.call('barrier', control, 1, 0), 0);
    bench.call('barrier_abort', control, 3);
    assert.is(bench.call('barrier', control, 1, 0), 1);
  }
});

test.run();
