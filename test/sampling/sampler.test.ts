import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { SamplingOptions } from '../../src/engine.ts';
import { AprError } from '../../src/errors.ts';
import { createSampler, logprobsOf, validateSampling } from '../../src/sampling/index.ts';
import { Random } from '../../src/sampling/random.ts';

/** Logits of these probabilities. */
const logits = (...shares: number[]): Float32Array => Float32Array.from(shares, (share) => Math.log(share));

/** How often each token is drawn in `draws` draws. */
function counts(values: Float32Array, options: SamplingOptions, draws = 20_000): number[] {
  const sampler = createSampler({ seed: 7, ...options });
  const drawn = new Array<number>(values.length).fill(0);
  for (let i = 0; i < draws; i++) drawn[sampler.sample(values)]!++;
  return drawn;
}

/** Five standard deviations of a binomial count. */
function assertShares(drawn: number[], shares: number[]): void {
  const draws = drawn.reduce((sum, count) => sum + count, 0);
  shares.forEach((share, token) => {
    const tolerance = 5 * Math.sqrt(draws * share * (1 - share));
    const off = Math.abs(drawn[token]! - draws * share);
    assert.ok(off <= tolerance, `token ${token}: ${drawn[token]} of ${draws}, expected a share of ${share}`);
  });
}

function usage(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    assert.instance(error, AprError);
    assert.is((error as AprError).code, 'USAGE');
    return (error as AprError).message;
  }
  throw new Error('nothing was thrown');
}

test('temperature 0 takes the greatest logit, the lowest id among equals', () => {
  const sampler = createSampler({});
  assert.is(sampler.sample(Float32Array.of(1, 3, 3, -1)), 1);
  assert.is(sampler.sample(Float32Array.of(Number.NEGATIVE_INFINITY, -5, -4)), 2);
  assert.is(createSampler({ topK: 2, topP: 0.5, minP: 0.5 }).sample(Float32Array.of(1, 3, 3)), 1);
});

test('temperature alone samples', () => {
  assertShares(counts(logits(0.5, 0.3, 0.15, 0.05), { temperature: 1 }), [0.5, 0.3, 0.15, 0.05]);
});

test('temperature flattens and sharpens', () => {
  const shares = [0.6, 0.3, 0.1];
  for (const temperature of [0.5, 2]) {
    const powers = shares.map((share) => share ** (1 / temperature));
    const total = powers.reduce((sum, power) => sum + power, 0);
    assertShares(
      counts(logits(...shares), { temperature }),
      powers.map((power) => power / total),
    );
  }
  assert.equal(counts(logits(0.4, 0.6), { temperature: 1e-6 }, 100), [0, 100]);
});

test('top-k', () => {
  assertShares(counts(logits(0.1, 0.4, 0.2, 0.3), { temperature: 1, topK: 2 }), [0, 4 / 7, 0, 3 / 7]);
  assertShares(counts(logits(0.1, 0.4, 0.2, 0.3), { temperature: 1, topK: 99 }), [0.1, 0.4, 0.2, 0.3]);
});

test('top-p keeps the smallest set that reaches p', () => {
  const values = logits(0.15, 0.5, 0.05, 0.3);
  assertShares(counts(values, { temperature: 1, topP: 0.6 }), [0, 5 / 8, 0, 3 / 8]);
  assertShares(counts(values, { temperature: 1, topP: 0.9 }), [0.15 / 0.95, 0.5 / 0.95, 0, 0.3 / 0.95]);
  assert.equal(counts(values, { temperature: 1, topP: 0 }, 50), [0, 50, 0, 0]);
});

test('top-p sums over what top-k left, before the temperature', () => {
  // Of the two that are left the first has 5/8: enough for 0.6, though not of the whole.
  assert.equal(counts(logits(0.5, 0.3, 0.2), { temperature: 5, topK: 2, topP: 0.6 }, 200), [200, 0, 0]);
  assert.ok(counts(logits(0.5, 0.3, 0.2), { temperature: 5, topK: 2, topP: 0.7 }, 200)[1]! > 0);
});

test('min-p', () => {
  const values = logits(0.5, 0.3, 0.14, 0.06);
  assertShares(counts(values, { temperature: 1, minP: 0.25 }), [0.5 / 0.94, 0.3 / 0.94, 0.14 / 0.94, 0]);
  assert.equal(counts(values, { temperature: 1, minP: 1 }, 50), [50, 0, 0, 0]);
  assertShares(counts(values, { temperature: 1, minP: 0.5, topP: 0.95, topK: 4 }), [5 / 8, 3 / 8, 0, 0]);
});

test('filters agree with a plain implementation', () => {
  const random = new Random(3);
  for (let round = 0; round < 300; round++) {
    const size = 1 + (random.next() % 60);
    const values = Float32Array.from({ length: size }, () => Math.round(random.uniform() * 24 - 12) / 2);
    const topK = random.next() % 3 === 0 ? random.next() % 20 : 0;
    const topP = random.next() % 3 === 0 ? 1 : random.uniform();
    const minP = random.next() % 2 === 0 ? 0 : random.uniform() * 0.5;
    const kept = plainFilter(values, topK, topP, minP);
    const drawn = counts(values, { temperature: 20, topK, topP, minP, seed: round }, 400);
    const seen = drawn.flatMap((count, token) => (count > 0 ? [token] : []));
    const label = JSON.stringify({ values: [...values], topK, topP, minP, kept: [...kept], seen });
    assert.ok(
      seen.every((token) => kept.has(token)),
      label,
    );
    // At that temperature each one that is left is drawn about equally often.
    if (kept.size <= 20) assert.is(seen.length, kept.size, label);
  }
});

function plainFilter(values: Float32Array, topK: number, topP: number, minP: number): Set<number> {
  let ids = [...values.keys()].sort((a, b) => values[b]! - values[a]! || a - b);
  if (topK > 0) ids = ids.slice(0, topK);
  const most = values[ids[0]!]!;
  if (topP < 1) {
    const weights = ids.map((id) => Math.exp(values[id]! - most));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    let sum = 0;
    let count = 0;
    while (count < ids.length && (count === 0 || sum < topP * total)) sum += weights[count++]!;
    ids = ids.slice(0, count);
  }
  return new Set(ids.filter((id) => minP === 0 || values[id]! >= most + Math.log(minP)));
}

test('top-p over a large vocabulary', () => {
  const random = new Random(4);
  for (const [width, topP] of [
    [40, 0.9],
    [15, 0.5],
    [15, 0.95],
    [2, 0.5],
    [0, 0.1],
  ] as const) {
    for (const minP of [0, 0.3]) {
      const values = Float32Array.from({ length: 2000 }, () => (random.uniform() + random.uniform() - 1) * width);
      const kept = plainFilter(values, 0, topP, minP);
      const drawn = counts(values, { temperature: 1e6, topP, minP }, Math.min(500, kept.size * 25));
      const seen = drawn.flatMap((count, token) => (count > 0 ? [token] : []));
      assert.ok(
        seen.every((token) => kept.has(token)),
        `${width} ${topP} ${minP}`,
      );
      if (kept.size <= 20) assert.is(seen.length, kept.size, `${width} ${topP} ${minP}`);
    }
  }
});

test('same seed, same draws; another seed, others', () => {
  const values = Float32Array.from({ length: 1000 }, (_, i) => Math.sin(i) * 3);
  const draw = (seed: number): number[] => {
    const sampler = createSampler({ temperature: 1, seed });
    return Array.from({ length: 20 }, () => sampler.sample(values));
  };
  assert.equal(draw(42), draw(42));
  assert.not.equal(draw(42), draw(43));
  assert.not.equal(draw(1), draw(1 + 2 ** 32));
  assert.is(createSampler({ seed: 5 }).seed, 5);
  assert.type(createSampler({}).seed, 'number');
});

test('the repeat penalty divides positive logits and multiplies negative ones', () => {
  const sampler = createSampler({ repeatPenalty: 2 });
  const values = Float32Array.of(4, 3, -1, -1.5);
  sampler.accept(0);
  sampler.accept(0);
  assert.is(sampler.sample(values), 1);
  assert.equal([...values], [4, 3, -1, -1.5]);
  for (const token of [1, 2]) sampler.accept(token);
  // 2, 1.5, -2, -1.5
  assert.is(sampler.sample(values), 0);
  assert.is(sampler.sample(Float32Array.of(-9, -9, -1, -1.5)), 3);
});

test('the penalty forgets what lies further back', () => {
  const values = Float32Array.of(4, 3);
  const after = (repeatLastN: number, history: number[]): number => {
    const sampler = createSampler({ repeatPenalty: 2, repeatLastN });
    for (const token of history) sampler.accept(token);
    return sampler.sample(values);
  };
  assert.is(after(2, [0, 5]), 1);
  assert.is(after(2, [0, 5, 5]), 0);
  assert.is(after(2, [0, 0, 5]), 1);
  assert.is(after(0, [0]), 0);
  assert.is(after(-1, [0, ...new Array<number>(500).fill(5)]), 1);
  assert.is(createSampler({ repeatPenalty: 1 }).sample(values), 0);
});

test('bad logits', () => {
  for (const bad of [Number.NaN, Number.POSITIVE_INFINITY]) {
    for (const temperature of [0, 1]) {
      try {
        createSampler({ temperature }).sample(Float32Array.of(1, bad, 2));
        assert.unreachable();
      } catch (error) {
        assert.is((error as AprError).code, 'INFERENCE');
        assert.match((error as AprError).message, 'the logit of token 1 is');
      }
    }
  }
  assert.throws(() => createSampler({}).sample(Float32Array.of(Number.NEGATIVE_INFINITY)), /no logit is finite/);
  assert.throws(() => logprobsOf(Float32Array.of(Number.NaN), 0, 1), /NaN/);
});

test('options out of range', () => {
  const bad: [keyof SamplingOptions, unknown[]][] = [
    ['temperature', [-1, Number.NaN, Number.POSITIVE_INFINITY, '1']],
    ['topK', [-1, 1.5, Number.NaN]],
    ['topP', [5, -0.1, Number.NaN]],
    ['minP', [1.1, -1]],
    ['repeatPenalty', [0, -1, 1e-300, 101, Number.POSITIVE_INFINITY]],
    ['repeatLastN', [-2, 0.5]],
    ['seed', [-1, 1.5, 2 ** 53]],
  ];
  for (const [name, values] of bad) {
    for (const value of values) {
      const message = usage(() => validateSampling({ [name]: value }));
      assert.match(message, new RegExp(`^${name} is .*, expected `), message);
    }
  }
  assert.is(validateSampling({ temperature: 0.5 }).temperature, 0.5);
  assert.is(validateSampling({}).repeatLastN, 64);
  assert.match(
    usage(() => logprobsOf(Float32Array.of(1), 0, -1)),
    'logprobs is -1',
  );
});

test('log-probabilities', () => {
  const { chosen, top } = logprobsOf(logits(0.1, 0.6, 0.2, 0.1), 2, 4);
  assert.ok(Math.abs(chosen - Math.log(0.2)) < 1e-6);
  assert.equal(
    top.map(({ id }) => id),
    [1, 2, 0, 3],
  );
  for (const [index, share] of [0.6, 0.2, 0.1, 0.1].entries()) {
    assert.ok(Math.abs(Math.exp(top[index]!.logprob) - share) < 1e-6);
  }
  assert.is(logprobsOf(Float32Array.of(1, 2), 0, 9).top.length, 2);
  assert.equal(logprobsOf(Float32Array.of(1, 2), 0, 0).top, []);
  // Shifted logits have the same soft-max, also where their exponentials overflow.
  const far = logprobsOf(Float32Array.of(5000, 5001), 0, 1);
  assert.ok(Math.abs(far.chosen - Math.log(1 / (1 + Math.E))) < 1e-6);
});

test('random numbers', () => {
  const random = new Random(0);
  const buckets = new Array<number>(16).fill(0);
  for (let i = 0; i < 64_000; i++) {
    const value = random.uniform();
    assert.ok(value >= 0 && value < 1);
    buckets[Math.floor(value * 16)]!++;
  }
  assertShares(buckets, new Array<number>(16).fill(1 / 16));
  const first = new Random(1);
  assert.not.equal([first.next(), first.next()], [first.next(), first.next()]);
});

test.run();
