import { Worker } from 'node:worker_threads';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { abortBarrier, barrierState, meet, resetBarrier, SPIN } from '../../src/scheduling/barrier.ts';
import { CONTROL, CONTROL_BYTES } from '../../src/scheduling/control.ts';

/** Workers' own words lie behind the control block, so far apart. */
const CELL = 16;
const CELLS = CONTROL_BYTES / 4;

/**
 * Meets the others `rounds` times; counts itself into a cell of its own before each and looks after each whether
 * everybody has done so. Between two meetings nobody may be ahead or behind: a mismatch ends with its round. Worker 0
 * comes late to every tenth round, if `late` says by how many milliseconds.
 */
const WORKER = `
const { parentPort, workerData } = require('node:worker_threads');
const { url, words, worker, workers, rounds, spin, late } = workerData;
import(url).then(({ meet }) => {
  const cells = Array.from({ length: workers }, (_, i) => ${CELLS} + ${CELL} * i);
  parentPort.postMessage('ready');
  for (let round = 1; round <= rounds; round++) {
    if (worker === 0 && late > 0 && round % 10 === 3) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, late);
    words[cells[worker]] = round;
    if (!meet(words, workers, spin)) return parentPort.postMessage({ aborted: round });
    for (const cell of cells) if (words[cell] !== round) return parentPort.postMessage({ wrong: round });
    if (!meet(words, workers, spin)) return parentPort.postMessage({ aborted: round });
  }
  parentPort.postMessage({ done: rounds });
}).catch((error) => parentPort.postMessage({ error: String(error) }));
`;

type Outcome = { done: number } | { aborted: number } | { wrong: number } | { error: string };

interface Crew {
  readonly words: Int32Array;
  readonly ready: Promise<unknown>;
  readonly outcomes: Promise<Outcome[]>;
}

interface CrewOptions {
  readonly workers: number;
  readonly rounds: number;
  /** By worker. */
  readonly spin: (worker: number) => number;
  /** Workers there are; fewer than are awaited, if it says so. */
  readonly started?: number;
  readonly late?: number;
}

function crew({ workers, rounds, spin, started = workers, late = 0 }: CrewOptions): Crew {
  const words = new Int32Array(new SharedArrayBuffer(CONTROL_BYTES + 4 * CELL * workers));
  const url = new URL('../../src/scheduling/barrier.js', import.meta.url).href;
  const ready: Promise<void>[] = [];
  const outcomes: Promise<Outcome>[] = [];
  for (let worker = 0; worker < started; worker++) {
    const workerData = { url, words, worker, workers, rounds, spin: spin(worker), late };
    const thread = new Worker(WORKER, { eval: true, workerData });
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
  return { words, ready: Promise.all(ready), outcomes: Promise.all(outcomes) };
}

for (const [workers, spin] of [
  [2, SPIN],
  [2, 0],
  [5, 100],
  [5, 0],
] as const) {
  test(`${workers} workers meet 20,000 times, looking ${spin} times before they sleep`, async () => {
    const { words, outcomes } = crew({ workers, rounds: 10_000, spin: () => spin });
    assert.equal(await outcomes, new Array(workers).fill({ done: 10_000 }));
    assert.equal(Array.from(words.subarray(CONTROL.BARRIER, CONTROL.BARRIER + 4)), [0, 20_000, 0, 0]);
  });
}

test('nobody leaves before one who comes later than a sleep lasts', async () => {
  const { outcomes } = crew({ workers: 2, rounds: 30, spin: () => 100, late: 350 });
  assert.equal(await outcomes, new Array(2).fill({ done: 30 }));
});

test('workers that sleep and workers that spin wake each other', async () => {
  const { outcomes } = crew({ workers: 3, rounds: 2_000, spin: (worker) => (worker === 0 ? 100_000 : 0) });
  assert.equal(await outcomes, new Array(3).fill({ done: 2_000 }));
});

for (const spin of [0, 1_000_000]) {
  test(`abort releases all who wait for one that never comes, looking ${spin} times before they sleep`, async () => {
    const { words, ready, outcomes } = crew({ workers: 5, rounds: 1, spin: () => spin, started: 4 });
    await ready;
    while (barrierState(words)[0] < 4) await new Promise((resolve) => setTimeout(resolve, 1));
    abortBarrier(words);
    assert.equal(await outcomes, new Array(4).fill({ aborted: 1 }));
    // Who comes later does not wait either.
    assert.is(meet(words, 5, 0), false);
  });
}

test('abort in the middle of the work ends every worker', async () => {
  const { words, ready, outcomes } = crew({ workers: 3, rounds: 1_000_000_000, spin: () => 50 });
  await ready;
  while (Atomics.load(words, CELLS) < 100) await new Promise((resolve) => setTimeout(resolve, 1));
  abortBarrier(words);
  for (const outcome of await outcomes) assert.ok('aborted' in outcome, JSON.stringify(outcome));
});

test('a barrier made new serves again', async () => {
  const words = new Int32Array(new SharedArrayBuffer(CONTROL_BYTES));
  abortBarrier(words);
  resetBarrier(words);
  assert.equal(barrierState(words), [0, 0]);
  assert.is(meet(words, 1), true);
});

test('one worker passes at once, also on plain memory', () => {
  const words = new Int32Array(CONTROL_BYTES / 4);
  for (let i = 0; i < 3; i++) assert.is(meet(words, 1), true);
  Atomics.store(words, CONTROL.ABORT, 1);
  assert.is(meet(words, 1), false);
});

test.run();
