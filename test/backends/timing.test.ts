/** Times of passes: measured in every thread, on one time line, and only when somebody asks. */

import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { WasmBackend } from '../../src/backends/wasm/backend.ts';
import { createInterpreter } from '../../src/backends/wasm/interpreter.ts';
import { KERNELS } from '../../src/backends/wasm/kernels.ts';
import { CALL, CALL_WORDS } from '../../src/backends/wasm/program.ts';
import { createStepClock, createTimesBuffer, readTimes } from '../../src/backends/wasm/step-clock.ts';
import { instantiate } from '../../src/backends/wasm/tasks.ts';
import type { PassRecord } from '../../src/graph/command.ts';
import type { PassObserver, PassTiming } from '../../src/graph/observer.ts';
import { createEngine } from '../../src/index.ts';
import { nodePlatform } from '../../src/platform/node/platform.ts';
import { CONTROL } from '../../src/scheduling/control.ts';
import { DEMO } from '../repository.ts';
import { openPasses } from './passes.ts';

const TOKENS = [1022, 84, 82, 290, 198, 287, 269, 220];

const VARIANTS = [
  { backend: 'wasm', threads: 1 },
  { backend: 'wasm', threads: 3 },
  { backend: 'wasm', shared: false },
  { backend: 'wasm', threads: 2, bankBytes: 79 * 65536 },
  { backend: 'reference' },
] as const;

for (const variant of VARIANTS) {
  test(`every thread's times of every step lie within the pass, in order: ${JSON.stringify(variant)}`, async () => {
    const passes = await openPasses(variant);
    try {
      const plain = await passes.run(TOKENS);
      const timings: PassTiming[] = [];
      const observer: PassObserver = { onPass: (timing) => timings.push(timing) };
      const timed = await passes.run(TOKENS, 0, { observer });
      assert.equal(timed, plain, 'the same bits');
      await passes.run([17], TOKENS.length, { observer });
      assert.is(timings.length, 2);
      assert.equal(timings[1]!.positions, [TOKENS.length]);
      for (const { record, steps, threads, start, handed, returned, end } of timings) {
        assert.is(threads.length, passes.backend.threads);
        assert.ok(start <= handed && handed <= returned && returned <= end);
        for (const thread of threads) {
          let last = thread.woke;
          assert.ok(last >= handed, 'a thread wakes behind the hand-over');
          steps.forEach((_, step) => {
            assert.ok(thread.begin[step]! >= last, `step ${step} begins behind the one before`);
            assert.ok(thread.end[step]! >= thread.begin[step]!, `step ${step} ends behind its begin`);
            last = thread.end[step]!;
          });
          assert.ok(last <= returned, 'and is done before the host goes on');
        }
        // Every command was computed by at least one step, in the order in which they were recorded.
        const commands = steps.map(({ command }) => command);
        assert.equal(
          [...new Set(commands)],
          record.commands.map((_, index) => index),
        );
        assert.equal(
          [...commands].sort((a, b) => a - b),
          commands,
        );
        const products = record.commands.filter(({ op }) => op === 'mulMat' || op === 'mulMatId' || op === 'embed');
        const read = steps.filter(({ weight }) => weight !== undefined);
        assert.is(read.length, products.length);
        for (const { weight } of read) assert.ok(weight!.bytes > 0 && /^[A-Z]/.test(weight!.type));
      }
    } finally {
      await passes.dispose();
    }
  });
}

test('a trace runs what production runs: the same record, and the same kernel calls once the taps are taken out', async () => {
  const seen: { record: PassRecord; traced: boolean }[] = [];
  const { execute } = WasmBackend.prototype;
  WasmBackend.prototype.execute = function (record, inputs, observer, signal) {
    seen.push({ record, traced: observer !== undefined });
    return execute.call(this, record, inputs, observer, signal);
  };
  try {
    const engine = await createEngine(DEMO, { threads: 2 });
    const prompt = engine.tokenize('What is 2+2?').slice(0, 3);
    const generate = async (observer?: PassObserver): Promise<void> => {
      // A new conversation each time: nothing comes from the cache.
      await engine.forward([5, 6, 7]);
      seen.length = 0;
      const request = { prompt, maxTokens: 4, ignoreEos: true, ...(observer === undefined ? {} : { observer }) };
      for await (const _ of engine.generate(request));
    };
    await generate();
    const production = seen.map(({ record }) => record);
    assert.is(production.length, 4);
    const timings: PassTiming[] = [];
    await generate({ onPass: (timing) => timings.push(timing) });
    let taps = 0;
    await generate({ wants: () => true, onTap: () => taps++, onPass: (timing) => timings.push(timing) });
    assert.ok(seen.every(({ traced }) => traced));
    assert.equal(
      seen.map(({ record }) => record.commands),
      production.map(({ commands }) => commands),
    );
    assert.is(taps, production.flatMap(({ activations }) => activations).length);
    const [bare, tapped] = [timings.slice(0, 4), timings.slice(4)];
    assert.equal(
      bare.map(({ steps }) => steps),
      tapped.map(({ steps }) => steps),
    );
    await engine.dispose();
  } finally {
    WasmBackend.prototype.execute = execute;
  }
});

test('with tracing off the interpreter looks at no clock', async () => {
  const memory = new WebAssembly.Memory({ initial: 4, maximum: 4, shared: true });
  const banks = await instantiate(await nodePlatform.loadKernels('simd-shared'), [memory]);
  const layout = { programPointer: 4096, countersPointer: 8192, scratchPointers: [16384], scratchBytes: 4096 };
  const interpreter = createInterpreter(banks, layout, 0, 1);
  const words = new Int32Array(memory.buffer, layout.programPointer, 2 * CALL_WORDS);
  for (let call = 0; call < 2; call++) {
    words.set([KERNELS.indexOf('scale'), 0, call, 1, 1], call * CALL_WORDS);
    words.set([65536, 65536, 4, 0], call * CALL_WORDS + CALL.ARGUMENTS);
  }
  interpreter.control[CONTROL.PROGRAM_LENGTH] = words.length;
  const times = createTimesBuffer(1, 2, true);
  const clock = createStepClock(times, 0);
  const { now } = performance;
  let looks = 0;
  performance.now = () => {
    looks++;
    return now.call(performance);
  };
  try {
    assert.ok(interpreter.run());
    assert.is(looks, 0);
    assert.ok(interpreter.run(clock));
    assert.is(looks, 3, 'one as the thread wakes, one behind each call');
  } finally {
    performance.now = now;
  }
  const [thread] = readTimes(times, 2, 0);
  assert.ok(thread!.woke > 0 && thread!.end[1]! >= thread!.end[0]!);
});

test('a long prompt needs the head once', async () => {
  const engine = await createEngine(DEMO, { threads: 2, contextLength: 512 });
  try {
    const prompt = Array.from({ length: 300 }, (_, i) => (37 * i) % 1000);
    const passes: PassTiming[] = [];
    const observer: PassObserver = { onPass: (timing) => passes.push(timing) };
    for await (const _ of engine.generate({ prompt, maxTokens: 1, ignoreEos: true, observer }));
    assert.equal(
      passes.map(({ record }) => [record.rows, record.outputs, record.logits?.rows]),
      [
        [128, 0, undefined],
        [128, 0, undefined],
        [44, 1, 1],
      ],
      'and an observer that wants no activation does not shorten the passes',
    );
  } finally {
    await engine.dispose();
  }
});

test.run();
