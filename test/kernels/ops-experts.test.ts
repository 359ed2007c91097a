import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type KernelBench, randomFloats, simdBench } from './ops-fixtures.ts';

interface Routing {
  readonly ids: number[];
  readonly weights: number[];
}

function topK(
  bench: KernelBench,
  logits: ArrayLike<number>,
  experts: number,
  slots: number,
  normalise: boolean,
): Routing[] {
  const rows = logits.length / experts;
  const scratch = bench.reserve(bench.constant('TOP_K_EXPERTS') * 4);
  const dst = bench.reserve(rows * slots * 8);
  const from = bench.floats(logits);
  // One row at a time, last first: rows do not depend on each other.
  for (let row = rows - 1; row >= 0; row--) {
    bench.call('top_k', row, row + 1, scratch, dst, from, experts, slots, normalise ? 1 : 0);
  }
  return Array.from({ length: rows }, (_, row) => {
    const at = dst + row * slots * 8;
    return {
      ids: Array.from(new Int32Array(bench.memory.buffer, at, slots)),
      weights: Array.from(bench.read(at + slots * 4, slots)),
    };
  });
}

function expected(logits: Float32Array, slots: number, normalise: boolean): Routing {
  // The difference is taken in f32, as the kernel takes it.
  const largest = Math.max(...logits);
  const powers = Array.from(logits, (value) => Math.exp(Math.fround(value - largest)));
  const sum = powers.reduce((a, b) => a + b, 0);
  const ids = powers
    .map((_, id) => id)
    .sort((a, b) => logits[b]! - logits[a]! || a - b)
    .slice(0, slots);
  const chosen = ids.map((id) => powers[id]! / sum);
  const total = normalise ? chosen.reduce((a, b) => a + b, 0) : 1;
  return { ids, weights: chosen.map((value) => value / total) };
}

test('top_k against its twin', async () => {
  const bench = await simdBench(64);
  for (const [experts, slots] of [
    [1, 1],
    [8, 2],
    [60, 4],
    [128, 8],
    [1024, 1024],
  ] as const) {
    for (const normalise of [false, true]) {
      const logits = randomFloats(experts * 3, experts + slots, 6);
      topK(bench, logits, experts, slots, normalise).forEach(({ ids, weights }, row) => {
        const twin = expected(logits.subarray(row * experts, (row + 1) * experts), slots, normalise);
        assert.equal(ids, twin.ids);
        weights.forEach((weight, slot) => {
          assert.ok(Math.abs(weight - twin.weights[slot]!) <= 5e-7 * twin.weights[slot]!, `slot ${slot}`);
        });
      });
    }
  }
});

test('ties go to the lower id', async () => {
  const bench = await simdBench();
  const logits = [1, 3, 3, 2, 3, 2];
  assert.equal(topK(bench, logits, 6, 5, true)[0]!.ids, [1, 2, 4, 3, 5]);
  assert.equal(topK(bench, new Array(16).fill(0), 16, 4, true)[0], {
    ids: [0, 1, 2, 3],
    weights: [0.25, 0.25, 0.25, 0.25],
  });
});

test('NaN and infinite logits give valid, distinct ids', async () => {
  const bench = await simdBench();
  for (const bad of [Number.NaN, Number.POSITIVE_INFINITY]) {
    const { ids, weights } = topK(bench, [0, bad, 1, 2], 4, 4, true)[0]!;
    assert.equal([...ids].sort(), [0, 1, 2, 3]);
    assert.ok(weights.every((weight) => Number.isNaN(weight)));
  }
  const low = topK(bench, [0, Number.NEGATIVE_INFINITY, 1], 3, 3, false)[0]!;
  assert.equal(low.ids, [2, 0, 1]);
  assert.is(low.weights[2], 0);
});

test('more experts than there is scratch for trap', async () => {
  const bench = await simdBench();
  assert.throws(() => bench.call('top_k', 0, 1, 0, 0, 0, 1025, 1, 0), /unreachable/);
  assert.throws(() => bench.call('top_k', 0, 1, 0, 0, 0, 4, 5, 0), /unreachable/);
});

test('combine sums in slot order', async () => {
  const bench = await simdBench();
  for (const [width, slots] of [
    [1, 1],
    [6, 2],
    [64, 8],
    [131, 3],
  ] as const) {
    const rows = 3;
    const x = randomFloats(rows * slots * width, width);
    const weights = randomFloats(rows * slots, slots);
    const routing = bench.reserve(rows * slots * 8);
    for (let row = 0; row < rows; row++) {
      bench.read(routing + row * slots * 8 + slots * 4, slots).set(weights.subarray(row * slots, (row + 1) * slots));
    }
    const dst = bench.reserve(rows * width * 4 + 4);
    const from = bench.floats(x);
    for (let row = 0; row < rows; row++) bench.call('combine', row, row + 1, 0, dst, from, routing, width, slots);
    const twin = new Float32Array(rows * width);
    for (let i = 0; i < twin.length; i++) {
      const row = Math.floor(i / width);
      let sum = 0;
      for (let slot = 0; slot < slots; slot++) {
        const term = Math.fround(weights[row * slots + slot]! * x[(row * slots + slot) * width + (i % width)]!);
        sum = slot === 0 ? term : Math.fround(sum + term);
      }
      twin[i] = sum;
    }
    assert.equal(bench.read(dst, rows * width), twin);
    assert.ok(Number.isNaN(bench.read(dst, rows * width + 1)[rows * width]), 'wrote too far');
  }
});

test.run();
