/**
 * What ggml publishes as the error of each type, in its tests/test-quantize-fns.cpp: the same 4,096 values, quantised by
 * llama.cpp (models-fixtures/blocks), read by the reference and by the kernels, and multiplied by them.
 */

import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { dequantize } from '../../src/backends/reference/dequantize.ts';
import { type GgmlTypeName, ggmlType } from '../../src/formats/ggml-types.ts';
import { openModel } from '../../src/formats/open-model.ts';
import { openFileSource } from '../../src/platform/node/file-source.ts';
import { FIXTURES } from '../repository.ts';
import { loadKernels, supports } from './kernel-host.ts';
import { mulMat, placeActivations, placeGrid, placeRows, TYPES } from './quants-data.ts';

const COUNT = 4096;

/** ggml's limits: √Σ(a − b)² / n of the values, |a − b| / n of a dot product. */
const GENERAL = [0.002, 0.02] as const;
const TERNARY = [0.01, 0.15] as const;
const PUBLISHED: Partial<Record<GgmlTypeName, readonly [values: number, product: number]>> = {
  Q2_K: [0.0075, 0.04],
  IQ2_S: [0.0075, 0.04],
  Q3_K: [0.004, 0.02],
  IQ3_S: [0.004, 0.04],
  IQ3_XXS: [0.005, 0.04],
  TQ1_0: TERNARY,
  TQ2_0: TERNARY,
  Q2_0: TERNARY,
  Q1_0: [0.025, 0.4],
};
/**
 * Types that ggml's test leaves out, since its quantisers are not made for them: a little above what ggml's own readers
 * give on the same blocks.
 */
const UNPUBLISHED: Partial<Record<GgmlTypeName, readonly [values: number, product: number]>> = {
  IQ2_XXS: [0.0075, 0.05],
  IQ2_XS: [0.0075, 0.04],
  IQ1_S: TERNARY,
  IQ1_M: [0.0125, 0.2],
};

const data = (offset: number): Float32Array =>
  Float32Array.from({ length: COUNT }, (_, i) => 0.1 + Math.fround(2 * Math.fround(Math.cos(i + offset))));

const ours = data(0);
const other = data(1);
const exact = ours.reduce((sum, value, i) => sum + value * other[i]!, 0);

function error(values: Float32Array): number {
  return Math.sqrt(values.reduce((sum, value, i) => sum + (value - ours[i]!) ** 2, 0)) / COUNT;
}

const file = await openModel(await openFileSource(join(FIXTURES, 'blocks', 'ggml-test-data.gguf')));
const blocks = new Map<string, Uint8Array>();
for (const { name, offset, byteLength } of file.tensors.values()) {
  blocks.set(name, Uint8Array.from(await file.source.read(offset, byteLength)));
}
await file.source.close();

test('the fixture holds ggml’s data, in every type that the kernels have', () => {
  assert.equal([...blocks.keys()].sort(), [...TYPES].sort());
  assert.equal(blocks.get('F32'), new Uint8Array(ours.buffer));
});

const hosts = [await loadKernels('simd-plain', 640)];
if (await supports('relaxed-plain')) hosts.push(await loadKernels('relaxed-plain', 640));

for (const name of TYPES) {
  const [valueLimit, productLimit] = PUBLISHED[name] ?? UNPUBLISHED[name] ?? GENERAL;
  const type = ggmlType(name);

  test(`${name}: values within ${valueLimit}, product within ${productLimit}`, () => {
    const native = blocks.get(name) as Uint8Array;
    const reference = new Float32Array(COUNT);
    dequantize(type, new DataView(native.buffer), 0, COUNT, reference);
    const found = error(reference);
    const bits = new Uint8Array(reference.buffer);
    assert.is(crc32(bits), file.metadata.uint(`crc32.${name}`), 'the same bits as ggml reads');
    assert.ok(found < valueLimit, `values off by ${found}, expected less than ${valueLimit}`);
    for (const host of hosts) {
      const release = host.mark();
      const staging = host.alloc(native.length);
      host.bytes(staging, native.length).set(native);
      const out = host.alloc(COUNT * 4);
      host.exports.dequantize_native(type.id, out, staging, COUNT, placeGrid(host, type));
      assert.equal(Float32Array.from(host.floats(out, COUNT)), reference, `${host.variant}: values as the reference's`);
      // One row of activations takes the kernels of decode, five those of prefill.
      for (const rows of [1, 5]) {
        const x = new Float32Array(COUNT * rows);
        for (let row = 0; row < rows; row++) x.set(other, row * COUNT);
        const matrix = placeRows(host, type, COUNT, 1, native);
        const list = Array.from({ length: rows }, (_, i): [number, number] => [i, i]);
        const products = mulMat(host, matrix, placeActivations(host, type, x, COUNT, rows), rows, list, rows);
        for (const product of products) {
          const off = Math.abs(product - exact) / COUNT;
          if (host === hosts[0] && rows === 1)
            console.log(`# ${name}: values ${found.toFixed(5)}, product ${off.toFixed(5)}`);
          assert.ok(off < productLimit, `${host.variant}: product off by ${off}, expected less than ${productLimit}`);
        }
      }
      release();
    }
  });
}

test.run();
