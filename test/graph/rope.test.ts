import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ropeParameters, ropeTable } from '../../src/graph/rope.ts';

const close = (a: number, b: number, tolerance = 1e-6): void =>
  assert.ok(Math.abs(a - b) <= tolerance * Math.max(1, Math.abs(b)), `${a} is not ${b}`);

test('frequencies fall from 1 by powers of the base', () => {
  const { frequencies, magnitude } = ropeParameters('halves', 64, 1e6, { type: 'none' });
  assert.is(frequencies.length, 32);
  assert.is(frequencies[0], 1);
  close(frequencies[16]!, 1e-3);
  close(frequencies[31]!, 1e6 ** (-62 / 64));
  assert.is(magnitude, 1);
});

test('linear scaling divides every frequency, factors of the file divide their own', () => {
  const plain = ropeParameters('interleaved', 8, 1e4, { type: 'none' });
  const linear = ropeParameters('interleaved', 8, 1e4, { type: 'linear', factor: 4 });
  const factored = ropeParameters('interleaved', 8, 1e4, { type: 'none' }, [1, 2, 4, 8]);
  for (let i = 0; i < 4; i++) {
    close(linear.frequencies[i]!, plain.frequencies[i]! / 4);
    close(factored.frequencies[i]!, plain.frequencies[i]! / 2 ** i);
  }
});

test('YaRN keeps fast pairs, interpolates slow ones, and raises the magnitude', () => {
  const plain = ropeParameters('halves', 128, 1e6, { type: 'none' });
  const yarn = ropeParameters('halves', 128, 1e6, {
    type: 'yarn',
    factor: 4,
    originalContextLength: 32768,
    betaFast: 32,
    betaSlow: 1,
    extFactor: 1,
    attentionFactor: 1,
  });
  close(yarn.frequencies[0]!, plain.frequencies[0]!);
  close(yarn.frequencies[63]!, plain.frequencies[63]! / 4);
  for (let i = 0; i < 64; i++) {
    const ratio = plain.frequencies[i]! / yarn.frequencies[i]!;
    assert.ok(ratio >= 1 - 1e-12 && ratio <= 4 + 1e-9, `pair ${i}: ${ratio}`);
  }
  close(yarn.magnitude, 0.1 * Math.log(4) + 1);
});

test('the table holds cosine and sine of position times frequency', () => {
  const rope = ropeParameters('halves', 4, 100, { type: 'none' });
  const table = new Float32Array(8);
  ropeTable(rope, [0, 3], table);
  assert.equal(Array.from(table.slice(0, 4)), [1, 0, 1, 0]);
  close(table[4]!, Math.cos(3));
  close(table[5]!, Math.sin(3));
  close(table[6]!, Math.cos(0.3));
  close(table[7]!, Math.sin(0.3));
});

test.run();
