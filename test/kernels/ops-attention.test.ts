import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { floatToHalf, halfToFloat } from '../../src/backends/half.ts';
import { AttentionBench, type AttentionCase, attentionTwin, randomData } from './ops-attention-fixtures.ts';
import { BUILDS, bitsOf, simdBench } from './ops-fixtures.ts';

async function benchOf(shape: AttentionCase, data = randomData(shape)): Promise<AttentionBench> {
  const bench = await AttentionBench.create(shape, data);
  if (bench === undefined) throw new Error('this runtime does not accept WebAssembly SIMD with shared memory');
  return bench;
}

function shapeOf(headCount: number, headCountKv: number, headDim: number, headDimV = headDim): AttentionCase {
  // Around the edges of octets, batches and chunks, not in order, over two sequences that alternate in the end.
  const rows = [
    ...[298, 299, 0, 1, 6, 7, 8, 31, 32].map((position) => ({ sequence: 0, position })),
    ...[127, 128, 129, 255, 256].map((position) => ({ sequence: 1, position })),
    ...[63, 64, 64, 200].map((position, i) => ({ sequence: i % 2, position })),
  ];
  return { headCount, headCountKv, headDim, headDimV, context: 300, stored: [300, 257], rows };
}

const SHAPES = [
  shapeOf(3, 3, 64),
  shapeOf(4, 2, 80),
  shapeOf(12, 2, 128),
  shapeOf(14, 2, 64),
  shapeOf(8, 1, 32),
  shapeOf(2, 1, 256),
  shapeOf(3, 1, 96, 48),
  // No multiple of 4, to say nothing of 8.
  shapeOf(5, 1, 10, 6),
  shapeOf(2, 2, 2, 2),
  // Windows within a chunk, over the border of two, of just one position, and wider than everything.
  ...[1, 5, 100, 130, 256, 1000].map((window) => ({ ...shapeOf(6, 2, 64), window })),
  // A soft cap that most scores feel.
  { ...shapeOf(6, 2, 64), softCap: 2 },
  { ...shapeOf(3, 1, 96, 48), softCap: 3, window: 100 },
];

test('attention against its twin in f64', async () => {
  for (const shape of SHAPES) {
    const data = randomData(shape);
    const bench = await benchOf(shape, data);
    const { values, slack } = attentionTwin(shape, data);
    let worst = 0;
    bench.whole().forEach((value, i) => {
      worst = Math.max(worst, Math.abs(value - values[i]!) - slack[i]!);
    });
    // Values within ±1, weights that sum to 1.
    const label = `${shape.headCount}/${shape.headCountKv}/${shape.headDim}`;
    assert.ok(worst < 5e-7, `${label}: ${worst}`);
  }
});

test('both forms and any division into items give the same bits', async () => {
  for (const shape of SHAPES) {
    const bench = await benchOf(shape);
    const expected = bitsOf(bench.whole());
    assert.equal(bitsOf(bench.whole('single')), expected, 'whole, one item after the other');
    assert.equal(bitsOf(bench.split()), expected, 'split');
    assert.equal(bitsOf(bench.split('single')), expected, 'split, one item after the other');
  }
});

test('a row gives the same bits alone, in whatever company, and in a larger context', async () => {
  const shape = shapeOf(12, 2, 64);
  const all = await benchOf(shape);
  const expected = all.whole();
  const width = shape.headCount * shape.headDimV;
  const data = randomData(shape);
  for (const [row, place] of shape.rows.entries()) {
    const alone = {
      ...data,
      q: data.q.subarray(row * shape.headCount * shape.headDim, (row + 1) * shape.headCount * shape.headDim),
    };
    const bench = await benchOf({ ...shape, rows: [place], context: 1000 }, alone);
    const bits = bitsOf(expected.slice(row * width, (row + 1) * width));
    assert.equal(bitsOf(bench.whole()), bits, `row ${row} alone`);
    assert.equal(bitsOf(bench.split()), bits, `row ${row} alone, split`);
  }
});

test('every build gives the same bits', async () => {
  const shape = shapeOf(14, 2, 64);
  const data = randomData(shape);
  let expected: Int32Array | undefined;
  let builds = 0;
  for (const build of BUILDS) {
    const bench = await AttentionBench.create(shape, data, build);
    if (bench === undefined) continue;
    builds++;
    expected ??= bitsOf(bench.whole());
    assert.equal(bitsOf(bench.whole()), expected, build);
    assert.equal(bitsOf(bench.split()), expected, build);
  }
  assert.ok(builds >= 2);
});

test('what lies behind a row, NaN or infinite, does not reach it', async () => {
  const shape: AttentionCase = {
    ...shapeOf(6, 1, 16),
    stored: [40],
    rows: [3, 30, 4, 31, 5, 32, 6].map((position) => ({ sequence: 0, position })),
  };
  const data = randomData(shape);
  const clean = await benchOf(shape, data);
  const expected = clean.whole();
  const poisoned = await benchOf(shape, data);
  const bad = new Float32Array(7 * 16).map((_, i) => [Number.NaN, 1e30, -1e30][i % 3]!);
  poisoned.store(bad, bad, [33, 34, 35, 36, 37, 38, 39], 0);
  assert.equal(bitsOf(poisoned.whole()), bitsOf(expected));
  assert.equal(bitsOf(poisoned.split()), bitsOf(expected));
  // Row 5 of the pass stands at position 32: it and no other sees what is now there.
  poisoned.store(bad.subarray(0, 16), bad.subarray(0, 16), [32], 0);
  const seen = poisoned.whole();
  const width = shape.headCount * shape.headDimV;
  assert.equal(bitsOf(seen.slice(0, 5 * width)), bitsOf(expected.slice(0, 5 * width)));
  assert.ok(Number.isNaN(seen[5 * width]));
  assert.equal(bitsOf(seen.slice(6 * width)), bitsOf(expected.slice(6 * width)));
});

test('large scores do not overflow, and one far above the others takes all', async () => {
  const shape: AttentionCase = { ...shapeOf(2, 1, 8), stored: [300], rows: [{ sequence: 0, position: 299 }] };
  const data = randomData(shape);
  const k = data.k[0]!.map((value, i) => (Math.floor(i / 8) === 200 ? 100 : value));
  const bench = await benchOf(shape, { ...data, k: [k], q: data.q.map(() => 1000) });
  const result = bench.whole();
  const value = Array.from(data.v[0]!.subarray(200 * 8, 201 * 8), (x) => halfToFloat(floatToHalf(x)));
  assert.equal(Array.from(result), [...value, ...value]);
  assert.equal(bitsOf(bench.split()), bitsOf(result));
});

test('store_kv rounds to half as the reference does, every kind of value', async () => {
  const bench = await simdBench();
  const view = new DataView(new ArrayBuffer(4));
  const values: number[] = [];
  for (let half = 0; half < 0x7c00; half += 3) {
    // A half, the middle to the next one, and the floats beside it.
    const middle = (halfToFloat(half) + halfToFloat(half + 1)) / 2;
    view.setFloat32(0, middle);
    const bits = view.getUint32(0);
    values.push(halfToFloat(half));
    for (const step of [-1, 0, 1]) {
      view.setUint32(0, bits + step);
      values.push(view.getFloat32(0));
    }
  }
  values.push(Number.NaN, Number.POSITIVE_INFINITY, 65519, 65520, 1e30, 1e-30, 0);
  const signed = [...values, ...values.map((value) => -value)];
  while (signed.length % 2 !== 0) signed.push(0);
  const width = signed.length;
  const [k, v] = [bench.floats(signed), bench.floats(signed)];
  const kCache = bench.reserve(bench.call('k_cache_bytes', 8, 1, width));
  const vCache = bench.reserve(bench.call('v_cache_bytes', 8, 1, width));
  bench.call('store_kv', 0, 1, 0, k, v, kCache, vCache, bench.ints([5]), bench.ints([0]), 1, width, width, 8);
  const expected = signed.map(floatToHalf);
  const keys = new Uint16Array(bench.memory.buffer, kCache, width * 8);
  const vectors = new Uint16Array(bench.memory.buffer, vCache + 5 * Math.ceil(width / 8) * 16, width);
  assert.equal(
    expected.map((_, i) => keys[i * 8 + 5]!),
    expected,
  );
  assert.equal(Array.from(vectors), expected);
});

test('all 65,536 halves come back exactly through a soft-max over one position', async () => {
  // With one position the weight is 1 and the sum is the value itself.
  const headDimV = 8192;
  const shape: AttentionCase = {
    ...shapeOf(8, 8, 2, headDimV),
    context: 8,
    stored: [1],
    rows: [{ sequence: 0, position: 0 }],
  };
  const v = Float32Array.from({ length: 65536 }, (_, bits) => halfToFloat(bits));
  const bench = await benchOf(shape, { k: [new Float32Array(16)], v: [v], q: new Float32Array(16), scale: 1 });
  const result = bench.whole();
  for (let bits = 0; bits < 65536; bits++) {
    // The sum starts from +0, so that −0 becomes +0.
    const expected = v[bits]! + 0;
    if (!Object.is(result[bits], expected)) assert.unreachable(`0x${bits.toString(16)} came back as ${result[bits]}`);
  }
});

test('sizes that no memory holds saturate', async () => {
  const bench = await simdBench(1);
  assert.is(bench.call('k_cache_bytes', 4096, 2, 128) >>> 0, 4096 * 2 * 128 * 2);
  assert.is(bench.call('v_cache_bytes', 4093, 2, 6) >>> 0, 4096 * 2 * 8 * 2);
  assert.is(bench.call('k_cache_bytes', 2 ** 20, 32, 128) >>> 0, 0xffffffff);
  assert.is(bench.call('v_cache_bytes', 2 ** 24, 128, 256) >>> 0, 0xffffffff);
  assert.is(bench.call('attention_partial_bytes', 4, 256, 2 ** 24, 1024) >>> 0, 0xffffffff);
});

test.run();
