import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { duplicateFinding, QualityCounter, qualityFindings } from '../../src/contract/index.ts';

/** Statistics of values that come in two stretches, cut within a row. */
function count(name: string, shape: readonly number[], values: readonly number[]) {
  const counter = new QualityCounter({ name, type: 'F32', shape });
  const cut = values.length >> 1;
  counter.add(Float32Array.from(values.slice(0, cut)));
  counter.add(Float32Array.from(values.slice(cut)));
  return counter.result();
}

const rules = (name: string, shape: readonly number[], values: readonly number[]): (string | undefined)[] =>
  qualityFindings(count(name, shape, values)).map(({ rule, severity }) => `${severity} ${rule}`);

test('statistics', () => {
  assert.equal(count('w', [2, 4], [1, -2, 0, 0, Number.NaN, 3, Number.POSITIVE_INFINITY, -1]), {
    name: 'w',
    type: 'F32',
    shape: [2, 4],
    count: 8,
    nan: 1,
    infinite: 1,
    zeros: 2,
    min: -2,
    max: 3,
    mean: 1 / 6,
    l2_norm: Math.sqrt(15),
  });
  assert.is(count('token_embd.weight', [2, 3], [0, 0, 1, 0, -0, 0]).dead_rows, 2);
  const nothing = count('w', [1, 2], [Number.NaN, Number.NaN]);
  assert.equal([nothing.min, nothing.max, nothing.mean, nothing.l2_norm], [0, 0, 0, 0]);
});

test('sound data have no findings', () => {
  assert.equal(rules('w', [2, 2], [1, 2, 0, 0]), []);
  assert.equal(rules('blk.0.attn_norm.weight', [3], [1, 1, 1]), [], 'a norm may be ones');
  assert.equal(rules('blk.0.attn_q.bias', [3], [0, 0, 0]), [], 'a bias may be zero');
  assert.equal(rules('token_embd.weight', [1, 4], [0, 1, 2, 3]), [], 'a quarter of dead rows is padding');
});

for (const [name, rule, tensor, shape, values] of [
  ['NaN', '002', 'w', [2, 2], [1, Number.NaN, 2, 3]],
  ['an infinity', '002', 'w', [2, 2], [1, Number.NEGATIVE_INFINITY, 2, 3]],
  ['NaN in a bias', '002', 'w.bias', [2], [1, Number.NaN]],
  ['zeros only', '003', 'w', [2, 2], [0, 0, 0, 0]],
  ['a norm of zeros', '003', 'blk.0.attn_norm.weight', [2], [0, 0]],
  ['one value everywhere', '003', 'w', [2, 2], [3, 3, 3, 3]],
  ['more than 80 % zeros', '001', 'w', [6, 1], [0, 0, 0, 0, 0, 1]],
  ['an embedding of more than 50 % zeros', '001', 'token_embd.weight', [3, 1], [0, 0, 1]],
  ['more than a quarter of dead rows', '005', 'token_embd.weight', [1, 3], [0, 1, 2]],
] as const) {
  test(`found: ${name}`, () => {
    assert.equal(rules(tensor, shape, values), [`error F-DATA-QUALITY-${rule}`]);
    const [finding] = qualityFindings(count(tensor, shape, values));
    assert.is(finding!.tensor, tensor);
    assert.match(finding!.message, `tensor ${tensor} has ${finding!.found}, expected ${finding!.expected}`);
  });
}

test('a duplicate is a warning that names both', () => {
  const { severity, tensor, message } = duplicateFinding('a', 'b');
  assert.equal([severity, tensor], ['warning', 'b']);
  assert.match(message, 'tensor b has the same bytes as a');
});

test.run();
