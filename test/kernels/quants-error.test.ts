/**
 * What each type costs: matrices of the demo model as llama.cpp quantised them against the same matrices in F32, and
 * products with them (activations quantised too) against products in f64.
 */

import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { GgmlTypeName } from '../../src/formats/ggml-types.ts';
import { rowBytes } from '../../src/formats/ggml-types.ts';
import type { ModelFile, TensorInfo } from '../../src/formats/model-file.ts';
import { openModel } from '../../src/formats/open-model.ts';
import { openFileSource } from '../../src/platform/node/file-source.ts';
import { sharedFiles } from '../repository.ts';
import { skipped } from '../skip.ts';
import { loadKernels } from './kernel-host.ts';
import { activations, mulMat, placeActivations, placeGrid, placeRows } from './quants-data.ts';

/**
 * Greatest root mean square error of weights and of products, relative to their root mean square: a twentieth above what
 * was measured, rounded up. No demo model holds MXFP4 beside F32: quants-published.test.ts has it.
 */
const LIMITS: Partial<Record<GgmlTypeName, readonly [weights: number, products: number]>> = {
  F32: [0, 1e-6],
  F16: [0.00022, 0.0003],
  BF16: [0.0018, 0.0025],
  Q8_0: [0.006, 0.0083],
  Q6_K: [0.02, 0.033],
  Q5_0: [0.039, 0.04],
  Q5_1: [0.034, 0.038],
  Q5_K: [0.04, 0.047],
  Q4_0: [0.079, 0.081],
  Q4_1: [0.069, 0.076],
  Q4_K: [0.07, 0.078],
  IQ4_NL: [0.076, 0.079],
  IQ4_XS: [0.076, 0.084],
  Q3_K: [0.15, 0.16],
  IQ3_S: [0.14, 0.14],
  IQ3_XXS: [0.19, 0.19],
  Q2_K: [0.27, 0.28],
  IQ2_S: [0.26, 0.27],
  IQ2_XS: [0.32, 0.34],
  IQ2_XXS: [0.36, 0.37],
  IQ1_M: [0.47, 0.49],
  IQ1_S: [0.5, 0.54],
  Q2_0: [0.73, 0.75],
  Q1_0: [0.6, 0.59],
  TQ1_0: [0.82, 0.86],
  TQ2_0: [0.82, 0.86],
};

const ROWS = 64;
const TOKENS = 6;

function rowsOf(file: ModelFile, { offset, type, shape }: TensorInfo): Promise<Uint8Array> {
  return file.source.read(offset, rowBytes(type, shape[0]!) * Math.min(ROWS, shape[1]!));
}

/** Σ (a − b)² and Σ b². */
class SquaredError {
  error = 0;
  square = 0;

  add(actual: number, expected: number): void {
    this.error += (actual - expected) ** 2;
    this.square += expected ** 2;
  }

  get relative(): number {
    return Math.sqrt(this.error / this.square);
  }
}

const files = sharedFiles('models').filter((path) => /demo-qwen2-[^/]*\.gguf$/.test(path));
const original = files.find((path) => path.endsWith('-f32.gguf'));
if (original === undefined) {
  skipped(
    Object.keys(LIMITS).length,
    'no ../shared/models beside the repository: errors against F32 were not measured',
  );
} else {
  const host = await loadKernels('simd-plain', 640);
  const exact = await openModel(await openFileSource(original));
  const weights = new Map<GgmlTypeName, SquaredError>();
  const products = new Map<GgmlTypeName, SquaredError>();
  for (const path of files) {
    const file = await openModel(await openFileSource(path));
    const seen = new Set<GgmlTypeName>();
    for (const tensor of file.tensors.values()) {
      const { type, shape, name } = tensor;
      // One matrix of a type from each file.
      if (shape.length < 2 || seen.has(type.name)) continue;
      seen.add(type.name);
      const release = host.mark();
      const width = shape[0]!;
      const native = await rowsOf(file, tensor);
      const twin = new Float32Array(Uint8Array.from(await rowsOf(exact, exact.tensors.get(name)!)).buffer);
      const rows = twin.length / width;
      const staging = host.alloc(native.length);
      host.bytes(staging, native.length).set(native);
      const out = host.alloc(width * 4);
      const grid = placeGrid(host, type);
      const weightError = weights.get(type.name) ?? new SquaredError();
      weights.set(type.name, weightError);
      for (let row = 0; row < rows; row++) {
        host.exports.dequantize_native(type.id, out, staging + row * rowBytes(type, width), width, grid);
        host.floats(out, width).forEach((value, k) => {
          weightError.add(value, twin[row * width + k]!);
        });
      }
      const matrix = placeRows(host, type, width, rows, native);
      const x = activations(width, TOKENS, 7);
      const list = Array.from({ length: TOKENS }, (_, i): [number, number] => [i, i]);
      const actual = mulMat(host, matrix, placeActivations(host, type, x, width, TOKENS), TOKENS, list, TOKENS);
      const productError = products.get(type.name) ?? new SquaredError();
      products.set(type.name, productError);
      for (let i = 0; i < TOKENS; i++) {
        for (let row = 0; row < rows; row++) {
          let sum = 0;
          for (let k = 0; k < width; k++) sum += twin[row * width + k]! * x[i * width + k]!;
          productError.add(actual[i * rows + row]!, sum);
        }
      }
      release();
    }
    await file.source.close();
  }
  await exact.source.close();

  for (const [name, [weightLimit, productLimit]] of Object.entries(LIMITS)) {
    test(`${name}: error against F32`, () => {
      const found = weights.get(name as GgmlTypeName);
      assert.ok(found, `a demo model with ${name}`);
      const product = products.get(name as GgmlTypeName)!.relative;
      console.log(`# ${name}: weights ${found.relative.toFixed(5)}, products ${product.toFixed(5)}`);
      assert.ok(found.relative <= weightLimit, `weights off by ${found.relative}, expected at most ${weightLimit}`);
      assert.ok(product <= productLimit, `products off by ${product}, expected at most ${productLimit}`);
    });
  }
}
test.run();
