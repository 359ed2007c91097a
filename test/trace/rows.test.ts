import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Tap } from '../../src/graph/observer.ts';
import { LayerStatistics } from '../../src/trace/layers.ts';
import { choiceOf, entropyOf, RouterCounter } from '../../src/trace/routing.ts';
import { type ActivationRows, RowObserver, rowsOf } from '../../src/trace/rows.ts';
import { mergeStatistics, statisticsOf } from '../../src/trace/statistics.ts';
import { StepObserver } from '../../src/trace/steps.ts';

/** Values that say where they stand: 10 · row + column. */
function tap(name: string, rows: number, width: number, positions: readonly number[], layer?: number): Tap {
  const values = Float32Array.from({ length: rows * width }, (_, i) => Math.floor(i / width) * 10 + (i % width));
  return { name, layer, shape: [width, rows], positions, values };
}

test('the rows of the wanted tokens, and of their slots', () => {
  const rows = rowsOf(tap('blk.0.attn_norm', 4, 2, [5, 6, 7, 8], 0), { first: 6, last: 7 });
  assert.equal([rows?.firstPosition, rows?.tokens, rows?.perToken], [6, 2, 1]);
  assert.equal([...rows!.values], [10, 11, 20, 21]);
  const slots = rowsOf(tap('blk.0.ffn_gate_exps', 8, 1, [5, 6, 7, 8], 0), { first: 8, last: 30 });
  assert.equal([slots?.firstPosition, slots?.tokens, slots?.perToken, ...slots!.values], [8, 1, 2, 60, 70]);
  assert.is(rowsOf(tap('embd', 2, 1, [0, 1]), { first: 2, last: 3 }), undefined);
});

test('fewer rows than positions are those of the last ones', () => {
  const rows = rowsOf(tap('logits', 1, 3, [4, 5, 6]), { first: 6, last: 6 });
  assert.equal([rows?.firstPosition, rows?.tokens, ...rows!.values], [6, 1, 0, 1, 2]);
  assert.is(rowsOf(tap('logits', 1, 3, [4, 5, 6]), { first: 4, last: 5 }), undefined);
});

test('logits in the middle of the prompt are nobody’s figures', () => {
  const taken: ActivationRows[] = [];
  const observer = new RowObserver({ first: 0, last: 3 }, [{ take: (rows) => taken.push(rows) }]);
  observer.onTap(tap('logits', 1, 3, [0, 1]));
  observer.onTap(tap('logits', 1, 3, [2, 3]));
  assert.equal(
    taken.map(({ firstPosition }) => firstPosition),
    [3],
  );
  assert.not(observer.wants('output_rows'));
});

test('parts of a stage are taken together, and a sum counts in place of what went into it', () => {
  const layers = new LayerStatistics();
  const observer = new RowObserver({ first: 0, last: 0 }, [layers]);
  const give = (name: string, ...values: number[]): void =>
    observer.onTap({
      name: `blk.0.${name}`,
      layer: 0,
      shape: [values.length, 1],
      positions: [0],
      values: Float32Array.from(values),
    });
  give('attn_q', 100, 200);
  give('attn_q_bias', 1, 2);
  give('attn_k', 3);
  give('attn_v', 4);
  give('ffn_down', 6, 8);
  give('ffn_residual', 7, 9);
  const [layer] = layers.layers(false);
  assert.equal(layer?.qkv, statisticsOf([1, 2, 3, 4]));
  assert.equal(layer?.ffn_out, statisticsOf([6, 8]));
  assert.equal(layer?.output_stats, statisticsOf([7, 9]));
  assert.is(layer?.name, 'transformer_block_0');
});

test('merged statistics are those of all values', () => {
  const values = Float32Array.from({ length: 99 }, (_, i) => Math.sin(i * i) * (i < 30 ? 1000 : 1));
  values[5] = Number.NaN;
  values[70] = Number.NEGATIVE_INFINITY;
  const merged = mergeStatistics([statisticsOf(values, 0, 30), statisticsOf(values, 30, 31), statisticsOf(values, 31)]);
  const whole = statisticsOf(values);
  for (const [key, value] of Object.entries(whole)) {
    const found = merged[key as keyof typeof merged] as number;
    assert.ok(Math.abs(found - (value as number)) <= 1e-9 * Math.abs(value as number), `${key}: ${found}, ${value}`);
  }
  const nothing = statisticsOf([Number.NaN]);
  assert.is(mergeStatistics([nothing, statisticsOf([2])]).mean, 2);
  assert.equal(mergeStatistics([nothing, nothing]), { ...nothing, nan_count: 2, count: 2 });
});

test('a router that finds all experts equal has the largest entropy, a sure one none', () => {
  assert.ok(Math.abs(entropyOf(Float32Array.of(3, 3, 3, 3)) - Math.log(4)) < 1e-12);
  assert.ok(entropyOf(Float32Array.of(0, 1000, 0)) < 1e-12);
  const p = [0.7, 0.2, 0.1];
  const expected = -p.reduce((sum, value) => sum + value * Math.log(value), 0);
  assert.ok(Math.abs(entropyOf(Float32Array.from(p, (value) => Math.log(value))) - expected) < 1e-6);
});

test('experts: ids and weights of a row, counted over tokens', () => {
  const row = (ids: number[], weights: number[]): Float32Array => {
    const out = new Float32Array(ids.length * 2);
    new Int32Array(out.buffer).set(ids);
    out.set(weights, ids.length);
    return out;
  };
  const router = new RouterCounter();
  router.addLogits(Float32Array.of(0, 0));
  router.addChoice(choiceOf(row([5, 1], [0.75, 0.25])));
  router.addLogits(Float32Array.of(0, 0));
  router.addChoice(choiceOf(row([1, 7], [0.75, 0.25])));
  assert.equal(router.result(), {
    entropy: Math.log(2),
    max_entropy: Math.log(2),
    experts: [
      { id: 1, count: 2, weight: 0.5 },
      { id: 5, count: 1, weight: 0.75 },
      { id: 7, count: 1, weight: 0.25 },
    ],
  });
  router.addLogits(Float32Array.of(Number.NaN, 0));
  assert.is(router.result().entropy, null);
});

test('decode passes: only behind the prompt, one entry each, the first value that is not finite by name', () => {
  const observer = new StepObserver(4);
  observer.onTap(tap('blk.0.ffn_residual', 1, 2, [4], 0));
  observer.onTap(tap('blk.0.ffn_residual', 1, 2, [5], 0));
  observer.onTap(tap('logits', 1, 2, [5]));
  const broken = tap('blk.0.attn_norm', 1, 2, [6], 0);
  broken.values[1] = Number.NaN;
  observer.onTap(broken);
  observer.onTap(tap('blk.0.ffn_residual', 1, 2, [6], 0));
  assert.equal(observer.steps, [
    { position: 5, output_std: [0.5], logits_l2: 1, not_finite: null },
    { position: 6, output_std: [0.5], logits_l2: null, not_finite: 'blk.0.attn_norm' },
  ]);
});

test.run();
