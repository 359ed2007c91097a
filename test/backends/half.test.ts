import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { bfloatToFloat, floatToBfloat, floatToHalf, halfToFloat, roundEven } from '../../src/backends/half.ts';

test('every half survives the way to a float and back', () => {
  for (let bits = 0; bits < 65536; bits++) {
    const value = halfToFloat(bits);
    if (Number.isNaN(value)) assert.ok(Number.isNaN(halfToFloat(floatToHalf(value))));
    else assert.is(floatToHalf(value), bits);
  }
});

test('rounding to half goes to the nearest, ties to even', () => {
  for (let bits = 1; bits < 0x7bff; bits += 7) {
    const low = halfToFloat(bits);
    const high = halfToFloat(bits + 1);
    const middle = (low + high) / 2;
    assert.is(floatToHalf(middle), bits % 2 === 0 ? bits : bits + 1);
    assert.is(floatToHalf(low + (high - low) * 0.49), bits);
    assert.is(floatToHalf(low + (high - low) * 0.51), bits + 1);
  }
  assert.is(floatToHalf(65519), 0x7bff);
  assert.is(floatToHalf(65520), 0x7c00);
  assert.is(floatToHalf(-1e30), 0xfc00);
});

test('bfloat16 keeps the upper half, rounded to even', () => {
  assert.is(bfloatToFloat(floatToBfloat(1)), 1);
  assert.is(floatToBfloat(1 + 2 ** -8), 0x3f80);
  assert.is(floatToBfloat(1 + 3 * 2 ** -8), 0x3f82);
  assert.ok(Number.isNaN(bfloatToFloat(floatToBfloat(Number.NaN))));
  assert.is(bfloatToFloat(floatToBfloat(Number.NEGATIVE_INFINITY)), Number.NEGATIVE_INFINITY);
});

test('roundEven', () => {
  assert.equal(
    [0.5, 1.5, 2.5, -0.5, -1.5, 2.4, -2.6].map(roundEven).map((v) => v + 0),
    [0, 2, 2, 0, -2, 2, -3],
  );
});

test.run();
