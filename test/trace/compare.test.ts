import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { AprError } from '../../src/errors.ts';
import { Comparison, type Thresholds } from '../../src/trace/compare.ts';
import type { TracedActivation } from '../../src/trace/layers.ts';
import { CollectedRows } from '../../src/trace/reference.ts';
import type { ActivationRows } from '../../src/trace/rows.ts';
import { statisticsOf } from '../../src/trace/statistics.ts';
import { verdictOf } from '../../src/trace/verdict.ts';

const LIMITS: Thresholds = { cosine: 0.99, relativeL2: 0.05 };

function rows(name: string, values: readonly number[], layer?: number): ActivationRows {
  return {
    name,
    layer,
    firstPosition: 0,
    tokens: 1,
    perToken: 1,
    width: values.length,
    values: Float32Array.from(values),
  };
}

function compared(mine: readonly ActivationRows[], theirs: readonly ActivationRows[], limits = LIMITS) {
  const reference = new CollectedRows();
  for (const one of theirs) reference.take(one);
  const comparison = new Comparison(reference, limits);
  for (const one of mine) comparison.take(one);
  return comparison.report();
}

test('cosine, relative L2 and the largest difference with its two values', () => {
  const { places } = compared([rows('embd', [3, 4])], [rows('embd', [4, 3])]);
  const [place] = places;
  assert.ok(Math.abs(place!.cosine! - 24 / 25) < 1e-12);
  assert.ok(Math.abs(place!.relative_l2! - Math.SQRT2 / 5) < 1e-12);
  assert.equal([place!.max_difference, place!.value, place!.reference], [1, 3, 4]);
});

test('equal is equal, whatever the limits; a scaled activation keeps its cosine and is found by its size', () => {
  const values = [0.1, -0.7, 3.3, 1e-9];
  const strict = { cosine: 1, relativeL2: 0 };
  assert.is(compared([rows('embd', values)], [rows('embd', values)], strict).first_divergence, null);
  const larger = values.map((value) => value * 1.5);
  const { first_divergence, message } = compared(
    [rows('blk.2.attn_norm', values, 2)],
    [rows('blk.2.attn_norm', larger, 2)],
  );
  assert.ok(first_divergence!.cosine! > 0.999999);
  assert.ok(Math.abs(first_divergence!.relative_l2! - 1 / 3) < 1e-6);
  assert.match(
    message,
    /^layer 2, attention norm \(blk\.2\.attn_norm\) .* relative L2 difference is 0\.333, expected at most 0\.05$/,
  );
});

test('the first place in the order of computation, not the worst', () => {
  const mine = [rows('embd', [1, 1]), rows('blk.0.attn_norm', [1, 0], 0), rows('blk.0.attn_kqv', [1, 0], 0)];
  const theirs = [rows('embd', [1, 1]), rows('blk.0.attn_norm', [1, 0.3], 0), rows('blk.0.attn_kqv', [-1, 0], 0)];
  const { first_divergence, places } = compared(mine, theirs);
  assert.is(first_divergence?.activation, 'blk.0.attn_norm');
  assert.equal(
    places.map(({ diverged }) => diverged),
    [false, true, true],
  );
});

test('zeros: against zeros they agree, against anything else they do not', () => {
  assert.is(compared([rows('embd', [0, 0])], [rows('embd', [0, -0])]).first_divergence, null);
  assert.ok(compared([rows('embd', [0, 0])], [rows('embd', [0, 1])]).first_divergence);
  const found = compared([rows('embd', [0, 1])], [rows('embd', [0, 0])]).first_divergence;
  assert.equal([found?.cosine, found?.relative_l2], [0, null]);
});

test('what is broken in one of the two, or not alike in both, is a divergence; what is broken alike is none', () => {
  const nan = Number.NaN;
  const found = compared([rows('embd', [1, nan, 2])], [rows('embd', [1, 1, 2])]);
  assert.is(found.first_divergence?.not_finite, 1);
  assert.match(found.message, /1 of 3 values are not finite, and not alike in both/);
  assert.is(compared([rows('embd', [1, nan])], [rows('embd', [1, nan])]).first_divergence, null);
  const infinite = Number.POSITIVE_INFINITY;
  assert.is(compared([rows('embd', [infinite, nan])], [rows('embd', [-infinite, nan])]).places[0]?.not_finite, 1);
  const broken = compared([rows('embd', [nan])], [rows('embd', [nan])]);
  assert.equal(broken.places[0]?.cosine, null);
  assert.is(broken.message, 'no divergence in 1 activations, but no value in them is finite');
});

test('choices of experts are compared expert by expert, whatever the slots', () => {
  const choice = (ids: number[], weights: number[]): ActivationRows => {
    const found = rows('blk.0.ffn_routing', [...ids, ...weights], 0);
    new Int32Array(found.values.buffer).set(ids);
    return found;
  };
  const mine = choice([3, 900], [0.5, 0.5]);
  const same = compared([mine], [choice([900, 3], [0.5, 0.5])]).places[0];
  assert.equal([same?.cosine, same?.other_experts], [1, 0]);
  const { places, message } = compared([mine], [choice([4, 901], [0.5, 0.5])]);
  assert.equal([places[0]?.cosine, places[0]?.other_experts], [0, 1]);
  assert.match(message, /^layer 0, router .*; other experts were chosen for 1 of the tokens$/);
});

test('what experts compute is compared expert by expert: equal weights may stand in either order', () => {
  const choice = (...ids: number[]): ActivationRows => {
    const found = rows('blk.0.ffn_routing', [...ids, 0.5, 0.5], 0);
    new Int32Array(found.values.buffer).set(ids);
    return found;
  };
  const experts = (...values: number[]): ActivationRows => ({
    ...rows('blk.0.ffn_down_exps', values, 0),
    perToken: 2,
    width: 2,
  });
  const swapped = compared([choice(3, 7), experts(1, 2, 30, 40)], [choice(7, 3), experts(30, 40, 1, 2)], {
    cosine: 1,
    relativeL2: 0,
  });
  assert.is(swapped.first_divergence, null, swapped.message);
  // One expert in common, in another slot; the other two are held against each other.
  const { places } = compared([choice(3, 7), experts(1, 2, 30, 40)], [choice(7, 5), experts(30, 40, 1, 0)]);
  assert.is(places[1]?.max_difference, 2);
  assert.equal([places[1]?.value, places[1]?.reference], [2, 0]);
});

test('a lack is told, another shape refused, and nothing in common too', () => {
  const { missing, message } = compared([rows('embd', [1]), rows('output_norm', [1])], [rows('embd', [1])]);
  assert.equal(missing, ['output_norm']);
  assert.match(
    message,
    /^no divergence in 1 activations: .*; the reference lacks 1 of 2 activations, the first is output_norm$/,
  );
  const parted = compared([rows('embd', [1]), rows('output_norm', [1])], [rows('output_norm', [2])]);
  assert.match(parted.message, /^final norm .*; the reference lacks 1 of 2 activations, the first is embd$/);
  for (const [theirs, message] of [
    [[rows('embd', [1, 2])], /embd has 1 × 2 values, expected 1 × 1: it is no model of the same shape/],
    [[rows('other', [1])], /holds none of the activations to compare, such as embd/],
  ] as const) {
    try {
      compared([rows('embd', [1])], theirs);
      assert.unreachable();
    } catch (error) {
      assert.instance(error, AprError);
      assert.is((error as AprError).code, 'CONTRACT');
      assert.match((error as AprError).message, message);
    }
  }
});

test('a reference in several windows is found at its positions; a hole in it is a fault of ours', () => {
  const reference = new CollectedRows();
  const window = (firstPosition: number, values: number[]): ActivationRows => ({
    ...rows('embd', values),
    width: 1,
    tokens: values.length,
    firstPosition,
  });
  reference.take(window(0, [1, 2, 3]));
  reference.take(window(3, [4, 5]));
  assert.equal([...reference.rows(window(2, [0, 0, 0]))!], [3, 4, 5]);
  assert.throws(() => reference.rows(window(4, [0, 0])), /1 of 2 tokens/);
});

function traced(name: string, layer: number | undefined, values: readonly number[]): TracedActivation {
  const stage = name.endsWith('ffn_residual') ? 'output' : 'attn_norm';
  const stats = statisticsOf(values);
  return {
    name,
    layer,
    stage,
    shape: [1, values.length],
    stats,
    spread: stage === 'output' ? (stats.std ?? 0) : undefined,
  };
}

test('verdict: the first activation that is not finite', () => {
  const verdict = verdictOf([
    traced('blk.0.attn_norm', 0, [1, 2]),
    traced('blk.1.attn_norm', 1, [1, Number.NaN, Number.POSITIVE_INFINITY]),
    traced('blk.1.ffn_residual', 1, [Number.NaN]),
  ]);
  assert.equal(
    [verdict.status, verdict.layer, verdict.stage, verdict.activation],
    ['not_finite', 1, 'attn_norm', 'blk.1.attn_norm'],
  );
  assert.match(verdict.message, /^layer 1, attention norm .*: 1 NaN and 1 infinite of 3 values$/);
});

test('verdict: a spread that jumps or falls by more than ten times, from the second layer on', () => {
  const outputs = (...spreads: number[]): TracedActivation[] =>
    spreads.map((spread, layer) => traced(`blk.${layer}.ffn_residual`, layer, [spread, -spread]));
  const jump = verdictOf(outputs(1, 3, 31, 310));
  assert.equal([jump.status, jump.layer], ['spread', 2]);
  assert.match(jump.message, /spread of 31\.0, 10\.3 times the 3\.00 of the layer before/);
  assert.equal(verdictOf(outputs(1, 3, 0.2)).layer, 2);
  assert.equal(verdictOf(outputs(1, 0)).layer, 1);
  assert.is(verdictOf(outputs(1, 9, 81, 20)).status, 'healthy');
  assert.is(verdictOf(outputs(100)).status, 'healthy');
});

test.run();
