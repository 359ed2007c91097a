import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { StatisticsCounter, statisticsOf } from '../../src/trace/statistics.ts';

function near(found: number | null, expected: number, tolerance = 1e-12): void {
  assert.ok(
    found !== null && Math.abs(found - expected) <= tolerance * Math.max(1, Math.abs(expected)),
    `${found}, expected ${expected}`,
  );
}

test('of a few values', () => {
  const found = statisticsOf(Float32Array.of(1, 2, 3, 4, 0));
  assert.is(found.min, 0);
  assert.is(found.max, 4);
  assert.is(found.mean, 2);
  near(found.std, Math.sqrt(2));
  near(found.l2, Math.sqrt(30));
  assert.equal([found.nan_count, found.inf_count, found.zero_count, found.count], [0, 0, 1, 5]);
});

test('values that are not finite are counted and left out of the rest', () => {
  const found = statisticsOf(
    Float32Array.of(Number.NaN, 1, Number.POSITIVE_INFINITY, 3, Number.NEGATIVE_INFINITY, -0, Number.NaN),
  );
  assert.equal([found.nan_count, found.inf_count, found.zero_count, found.count], [2, 2, 1, 7]);
  assert.equal([found.min, found.max], [0, 3]);
  near(found.mean, 4 / 3);
  near(found.l2, Math.sqrt(10));
});

test('no finite value: null, and never a number that was not measured', () => {
  for (const values of [Float32Array.of(), Float32Array.of(Number.NaN, Number.NEGATIVE_INFINITY)]) {
    const { min, max, mean, std, l2, count } = statisticsOf(values);
    assert.equal([min, max, mean, std, l2], [null, null, null, null, null]);
    assert.is(count, values.length);
  }
});

test('a small spread far from zero does not cancel out, and large values do not overflow', () => {
  const far = Float64Array.from({ length: 1000 }, (_, i) => 1e9 + (i % 2));
  near(statisticsOf(far).std, 0.5, 1e-9);
  const large = Float32Array.of(3e38, -3e38);
  near(statisticsOf(large).std, large[0]!, 1e-9);
});

test('in pieces, or a part: the same as at once', () => {
  const values = Float32Array.from({ length: 301 }, (_, i) => Math.sin(i) * 7 + 3);
  const counter = new StatisticsCounter();
  for (let at = 0; at < values.length; at += 43) counter.add(values, at, Math.min(values.length, at + 43));
  assert.equal(counter.result(), statisticsOf(values));
  assert.equal(statisticsOf(values, 10, 20), statisticsOf(values.slice(10, 20)));
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  near(counter.result().std, Math.sqrt(variance), 1e-9);
});

test.run();
