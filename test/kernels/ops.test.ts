import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { bitsOf, floatBits, largestDifference, randomFloats, simdBench } from './ops-fixtures.ts';

/** Calls a kernel over its items in several divisions; every one must give the bits of the first. */
async function divided(
  items: number,
  count: number,
  run: (bench: Awaited<ReturnType<typeof simdBench>>, ranges: readonly (readonly [number, number])[]) => number,
): Promise<Float32Array> {
  const divisions = [
    [[0, items]],
    Array.from({ length: items }, (_, i) => [items - 1 - i, items - i]),
    [
      [Math.floor(items / 3), items],
      [0, Math.floor(items / 3)],
    ],
  ] as [number, number][][];
  let first: Float32Array | undefined;
  for (const ranges of divisions) {
    const bench = await simdBench(64);
    const result = bench.read(run(bench, ranges), count).slice();
    // Nothing behind the result may have been touched: the guard of reserve() stands there.
    first ??= result;
    assert.equal(bitsOf(result), bitsOf(first), `${ranges.length} ranges`);
  }
  return first!;
}

test('rms_norm: odd widths, runs, in place', async () => {
  for (const width of [1, 3, 4, 7, 64, 128, 130, 1536, 2049]) {
    for (const runs of [1, 5]) {
      const x = randomFloats(width * runs, width, 3);
      const weight = randomFloats(width, width + 1, 2);
      const eps = 1e-6;
      const expected = new Float64Array(x.length);
      for (let run = 0; run < runs; run++) {
        let squares = 0;
        for (let i = 0; i < width; i++) squares += x[run * width + i]! ** 2;
        const scale = 1 / Math.sqrt(squares / width + eps);
        for (let i = 0; i < width; i++) expected[run * width + i] = x[run * width + i]! * scale * weight[i]!;
      }
      const result = await divided(runs, x.length, (bench, ranges) => {
        const [from, factors] = [bench.floats(x), bench.floats(weight)];
        const dst = bench.reserve(x.byteLength + 4);
        for (const [start, end] of ranges) {
          bench.call('rms_norm', start, end, 0, dst, from, factors, width, floatBits(eps));
          bench.call('rms_norm', start, end, 0, from, from, factors, width, floatBits(eps));
        }
        assert.equal(bitsOf(bench.read(from, x.length)), bitsOf(bench.read(dst, x.length)), 'in place');
        assert.ok(Number.isNaN(bench.read(dst, x.length + 1)[x.length]), 'wrote too far');
        return dst;
      });
      // Three roundings of f32 and that of the scale.
      result.forEach((value, i) => {
        assert.ok(Math.abs(value - expected[i]!) <= 2.5e-7 * Math.abs(expected[i]!), `${value} for ${expected[i]}`);
      });
    }
  }
});

test('rope: both pairings, partial rotation, in place', async () => {
  for (const [headDim, dims] of [
    [64, 64],
    [80, 80],
    [128, 128],
    [128, 32],
    [10, 6],
    [2, 2],
  ] as const) {
    for (const pairing of [0, 1]) {
      const heads = 3;
      const rows = 4;
      const width = heads * headDim;
      const x = randomFloats(rows * width, headDim + dims, 2);
      const table = new Float32Array(rows * dims);
      for (let i = 0; i < table.length; i += 2) {
        table[i] = Math.cos(i * 0.37);
        table[i + 1] = Math.sin(i * 0.37);
      }
      const expected = Float64Array.from(x);
      for (let row = 0; row < rows; row++) {
        for (let head = 0; head < heads; head++) {
          for (let i = 0; i < dims / 2; i++) {
            const base = row * width + head * headDim;
            const a = base + (pairing === 0 ? 2 * i : i);
            const b = base + (pairing === 0 ? 2 * i + 1 : i + dims / 2);
            const [cos, sin] = [table[row * dims + 2 * i]!, table[row * dims + 2 * i + 1]!];
            expected[a] = x[a]! * cos - x[b]! * sin;
            expected[b] = x[a]! * sin + x[b]! * cos;
          }
        }
      }
      const result = await divided(rows, x.length, (bench, ranges) => {
        const [from, angles] = [bench.floats(x), bench.floats(table)];
        const dst = bench.reserve(x.byteLength);
        for (const [start, end] of ranges) {
          bench.call('rope', start, end, 0, dst, from, width, headDim, dims, pairing, angles);
          bench.call('rope', start, end, 0, from, from, width, headDim, dims, pairing, angles);
        }
        assert.equal(bitsOf(bench.read(from, x.length)), bitsOf(bench.read(dst, x.length)), 'in place');
        return dst;
      });
      assert.ok(largestDifference(result, expected) < 4e-7, `${headDim}/${dims}/${pairing}`);
    }
  }
});

test('add and add_bias are exact, at odd sizes', async () => {
  for (const count of [1, 5, 1023, 1024, 1025, 5000]) {
    const a = randomFloats(count, 1);
    const b = randomFloats(count, 2, 100);
    const segments = Math.ceil(count / 1024);
    const sum = await divided(segments, count, (bench, ranges) => {
      const [left, right] = [bench.floats(a), bench.floats(b)];
      const dst = bench.reserve(count * 4 + 4);
      for (const [start, end] of ranges) bench.call('add', start, end, 0, dst, left, right, count);
      assert.ok(Number.isNaN(bench.read(dst, count + 1)[count]), 'wrote too far');
      return dst;
    });
    assert.equal(
      sum,
      a.map((value, i) => value + b[i]!),
    );
  }
  const [rows, width] = [3, 37];
  const x = randomFloats(rows * width, 3);
  const bias = randomFloats(width, 4);
  const biased = await divided(rows, x.length, (bench, ranges) => {
    const [from, vector] = [bench.floats(x), bench.floats(bias)];
    const dst = bench.reserve(x.byteLength);
    for (const [start, end] of ranges) bench.call('add_bias', start, end, 0, dst, from, vector, width);
    return dst;
  });
  assert.equal(
    biased,
    x.map((value, i) => value + bias[i % width]!),
  );
});

test('select_rows takes rows in any order, more than once', async () => {
  const [width, wanted] = [13, [4, 0, 4, 2]];
  const x = randomFloats(5 * width, 5);
  const result = await divided(wanted.length, wanted.length * width, (bench, ranges) => {
    const [from, rows] = [bench.floats(x), bench.ints(wanted)];
    const dst = bench.reserve(wanted.length * width * 4);
    for (const [start, end] of ranges) bench.call('select_rows', start, end, 0, dst, from, width, rows);
    return dst;
  });
  assert.equal(result, Float32Array.from(wanted.flatMap((row) => [...x.subarray(row * width, (row + 1) * width)])));
});

/** e^x by way of swiglu: silu(g) · u with g = −x is −x / (1 + e^x) · u. */
test('swiglu: error table over the range, limits', async () => {
  const table = [
    { from: -87, to: -20 },
    { from: -20, to: -1 },
    { from: -1, to: 1 },
    { from: 1, to: 20 },
    { from: 20, to: 87 },
  ];
  for (const { from, to } of table) {
    const count = 4099;
    const gate = Float32Array.from({ length: count }, (_, i) => from + ((to - from) * i) / (count - 1));
    const up = new Float32Array(count).fill(1);
    const result = await divided(Math.ceil(count / 256), count, (bench, ranges) => {
      const [g, u] = [bench.floats(gate), bench.floats(up)];
      const dst = bench.reserve(count * 4 + 4);
      for (const [start, end] of ranges) bench.call('swiglu', start, end, 0, dst, g, u, count);
      assert.ok(Number.isNaN(bench.read(dst, count + 1)[count]), 'wrote too far');
      return dst;
    });
    result.forEach((value, i) => {
      const g = gate[i]!;
      const expected = g / (1 + Math.exp(-g));
      // e^−g to 1 ulp, then a sum, a quotient and a product.
      assert.ok(Math.abs(value - expected) <= 2.5e-7 * Math.abs(expected), `silu(${g}) = ${value}, not ${expected}`);
    });
  }
  const bench = await simdBench(1);
  const gate = [-1000, 1000, Number.NaN, 0, -0, Number.POSITIVE_INFINITY, -88.5, 3e38];
  const [g, u] = [bench.floats(gate), bench.floats(gate.map(() => 1))];
  const dst = bench.reserve(gate.length * 4);
  bench.call('swiglu', 0, 1, 0, dst, g, u, gate.length);
  const [low, high, nan, zero, negative, infinite, subnormal, large] = bench.read(dst, gate.length);
  assert.is(low! + 0, 0);
  assert.is(high, 1000);
  assert.ok(Number.isNaN(nan));
  assert.is(zero, 0);
  assert.ok(Object.is(negative, -0));
  assert.is(infinite, Number.POSITIVE_INFINITY);
  assert.ok(Math.abs(subnormal! - -88.5 / Math.exp(88.5)) < 1e-43);
  assert.is(large, Math.fround(3e38));
});

test('geglu, scale and sigmoid_gate against f64', async () => {
  const count = 1300;
  const gate = Float32Array.from({ length: count }, (_, i) => -12 + (24 * i) / (count - 1));
  const up = randomFloats(count, 9, 2);
  const gated = await divided(Math.ceil(count / 256), count, (bench, ranges) => {
    const [g, u] = [bench.floats(gate), bench.floats(up)];
    const dst = bench.reserve(count * 4);
    for (const [start, end] of ranges) bench.call('geglu', start, end, 0, dst, g, u, count);
    return dst;
  });
  gated.forEach((value, i) => {
    const g = gate[i]!;
    const expected = 0.5 * g * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (g + 0.044715 * g ** 3))) * up[i]!;
    assert.ok(Math.abs(value - expected) <= 1e-6 * Math.max(1, Math.abs(expected)), `gelu(${g}) · ${up[i]} = ${value}`);
  });
  const scaled = await divided(Math.ceil(count / 1024), count, (bench, ranges) => {
    const from = bench.floats(up);
    const dst = bench.reserve(count * 4);
    for (const [start, end] of ranges) bench.call('scale', start, end, 0, dst, from, count, floatBits(0.3));
    return dst;
  });
  assert.equal(
    scaled,
    up.map((value) => value * Math.fround(0.3)),
  );
  const [rows, width] = [13, 100];
  const factors = Float32Array.from({ length: rows }, (_, row) => row - 6);
  const weighed = await divided(rows, count, (bench, ranges) => {
    const [from, g] = [bench.floats(up), bench.floats(factors)];
    const dst = bench.reserve(count * 4);
    for (const [start, end] of ranges) bench.call('sigmoid_gate', start, end, 0, dst, from, g, width);
    return dst;
  });
  weighed.forEach((value, i) => {
    const expected = up[i]! / (1 + Math.exp(-factors[Math.floor(i / width)]!));
    assert.ok(Math.abs(value - expected) <= 3e-7 * Math.abs(expected), `row ${Math.floor(i / width)}`);
  });
});

test('soft_cap against f64', async () => {
  const count = 1303;
  const x = Float32Array.from({ length: count }, (_, i) => (i < 1300 ? -400 + (800 * i) / 1299 : 0));
  x[1300] = Number.POSITIVE_INFINITY;
  x[1301] = Number.NaN;
  const capped = await divided(Math.ceil(count / 1024), count, (bench, ranges) => {
    const from = bench.floats(x);
    const dst = bench.reserve(count * 4);
    for (const [start, end] of ranges) bench.call('soft_cap', start, end, 0, dst, from, count, floatBits(30));
    return dst;
  });
  capped.forEach((value, i) => {
    if (i === 1301) assert.ok(Number.isNaN(value));
    else assert.ok(Math.abs(value - 30 * Math.tanh(x[i]! / 30)) <= 4e-6, `${x[i]} → ${value}`);
  });
});

/** Soft-max of two logits 0 and x, without normalising, shows e^x: p₁ / p₀ up to two roundings. */
test('exp: error table over the range, through top_k', async () => {
  const bench = await simdBench(64);
  const scratch = bench.reserve(4096);
  for (const [from, to] of [
    [-87, -40],
    [-40, -8],
    [-8, -1],
    [-1, 0],
  ] as const) {
    const rows = 2000;
    const logits = new Float32Array(rows * 2);
    for (let row = 0; row < rows; row++) logits[row * 2 + 1] = from + ((to - from) * row) / (rows - 1);
    const dst = bench.reserve(rows * 16);
    bench.call('top_k', 0, rows, scratch, dst, bench.floats(logits), 2, 2, 0);
    const result = bench.read(dst, rows * 4);
    for (let row = 0; row < rows; row++) {
      const expected = Math.exp(logits[row * 2 + 1]!);
      const ratio = result[row * 4 + 3]! / result[row * 4 + 2]!;
      assert.ok(Math.abs(ratio - expected) <= 2.5e-7 * expected, `e^${logits[row * 2 + 1]} came out as ${ratio}`);
    }
  }
});

test.run();
