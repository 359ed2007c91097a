import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { dequantize, REFERENCE_TYPES } from '../../src/backends/reference/dequantize.ts';
import { blockLayout } from '../../src/backends/reference/describe-block.ts';
import { type GgmlTypeName, ggmlType } from '../../src/formats/ggml-types.ts';
import { Random } from '../fuzz/random.ts';

const BLOCKED = [...REFERENCE_TYPES].map((name) => ggmlType(name as GgmlTypeName)).filter((type) => type.blockSize > 1);

test('every type with blocks and a decoder can be taken apart', () => {
  assert.ok(BLOCKED.length >= 24);
  for (const { name } of BLOCKED) assert.ok(blockLayout(name), name);
  assert.is(blockLayout('F32'), undefined);
});

for (const type of BLOCKED) {
  test(`${type.name}: fields fill the block, and scales, offsets and quants give its values`, () => {
    const layout = blockLayout(type.name)!;
    const sizes = Object.values(layout.fields);
    assert.is(
      sizes.reduce((a, b) => a + b, 0),
      type.blockBytes,
    );
    const random = new Random(type.id + 1);
    let compared = 0;
    for (let round = 0; round < 40; round++) {
      const bytes = Uint8Array.from({ length: type.blockBytes }, () => random.below(256));
      const view = new DataView(bytes.buffer);
      const values = new Float32Array(type.blockSize);
      dequantize(type, view, 0, values.length, values);
      const { scales, offsets, quants, scaleCodes, minimumCodes } = layout.read(view, 0);
      const groups = type.blockSize / layout.groupSize;
      assert.is(scales.length, groups);
      for (const list of [offsets, scaleCodes, minimumCodes]) assert.ok(list === undefined || list.length === groups);
      assert.is(quants.length, type.blockSize);
      for (const [i, value] of values.entries()) {
        const group = Math.floor(i / layout.groupSize);
        const [product, offset] = [scales[group]! * quants[i]!, offsets?.[group] ?? 0];
        assert.ok(Number.isInteger(quants[i]), `${quants[i]}`);
        if (!Number.isFinite(product + offset)) continue;
        compared++;
        const error = Math.abs(product + offset - value);
        const bound = 1e-6 * (Math.abs(product) + Math.abs(offset)) + 1e-44;
        assert.ok(error <= bound, `value ${i}: ${product} + ${offset}, expected ${value}`);
      }
    }
    // Random f16 and exponents are infinite now and then, and no more.
    assert.ok(compared > 20 * type.blockSize, `${compared} values compared`);
  });
}

test.run();
