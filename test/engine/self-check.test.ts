/** Kernels that compute wrongly are found out while loading. */

import { readFile } from 'node:fs/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { WASM_TYPES } from '../../src/backends/wasm/create.ts';
import type { KernelExports } from '../../src/backends/wasm/kernels.ts';
import { checkKernels, type KernelFault, selfCheck } from '../../src/backends/wasm/self-check.ts';
import { instantiate } from '../../src/backends/wasm/tasks.ts';
import { createLocalEngine } from '../../src/engines/local.ts';
import { prepareModel } from '../../src/engines/model.ts';
import { traceFile } from '../../src/engines/trace.ts';
import { AprError } from '../../src/errors.ts';
import { openModel } from '../../src/formats/open-model.ts';
import type { EngineOptions, EngineWarning } from '../../src/index.ts';
import { nodePlatform } from '../../src/platform/node/platform.ts';
import type { KernelBuild, Platform } from '../../src/platform/platform.ts';
import { createTokenizer } from '../../src/tokenizer/index.ts';
import { committedModels } from '../golden/fixtures.ts';
import { DEMO } from '../repository.ts';

type Damage = readonly [from: readonly number[], to: readonly number[]];

/** i32x4.dot_i16x8_s, the heart of the simd products, replaced by i32x4.mul, which takes and gives the same types. */
const WRONG_DOT: Damage = [
  [0xfd, 0xba, 0x01],
  [0xfd, 0xb5, 0x01],
];

/** A build with instructions replaced. */
async function damaged(build: KernelBuild, [from, to]: Damage): Promise<WebAssembly.Module> {
  const bytes = await readFile(new URL(`../../assembly/${build}.wasm`, import.meta.url));
  let replaced = 0;
  for (let at = bytes.indexOf(Buffer.from(from)); at >= 0; at = bytes.indexOf(Buffer.from(from), at + 1)) {
    bytes.set(to, at);
    replaced++;
  }
  assert.ok(replaced > 0, 'the instruction is there');
  return WebAssembly.compile(new Uint8Array(bytes));
}

async function check(path: string, module: WebAssembly.Module): Promise<KernelFault | undefined> {
  const source = await nodePlatform.openSource(path);
  try {
    const file = await openModel(source);
    const { weights } = await prepareModel(file, createTokenizer(file.metadata), WASM_TYPES);
    return await selfCheck({ file, weights, module, shared: false });
  } finally {
    await source.close();
  }
}

const BUILDS: readonly KernelBuild[] = nodePlatform.supportsRelaxedSimd()
  ? ['simd-plain', 'relaxed-plain']
  : ['simd-plain'];
for (const build of BUILDS) {
  test(`${build}: every type of every model agrees with the reference`, async () => {
    const module = await nodePlatform.loadKernels(build);
    for (const { name, path } of committedModels()) assert.is(await check(path, module), undefined, name);
  });
}

test('a wrong product is found, and named by type, tensor and kernel', async () => {
  const fault = await check(DEMO, await damaged('simd-plain', WRONG_DOT));
  assert.ok(fault);
  assert.match(fault.type, /^Q[46]_K$/);
  assert.ok(fault.kernel === 'decode' || fault.kernel === 'prefill');
  assert.ok(Math.abs(fault.found - fault.expected) > 1e-6);
});

test('a wrong choice of experts is found, though every product is right', async () => {
  const module = await nodePlatform.loadKernels('simd-plain');
  const memory = new WebAssembly.Memory({ initial: 8, maximum: 8 });
  const exports = (await instantiate(module, [memory]))[0]!.exports;
  const source = await nodePlatform.openSource(DEMO);
  try {
    const file = await openModel(source);
    const { weights } = await prepareModel(file, createTokenizer(file.metadata), WASM_TYPES);
    const found = (wrong: Partial<KernelExports>) => checkKernels({ ...exports, ...wrong }, memory, file, weights);
    assert.is(await found({}), undefined);
    // The stride from expert to expert; the list of pairs; a routing that is taken the other way round.
    const mulMatId = exports.mul_mat_id;
    for (const [place, value] of [
      [7, 0],
      [13, 1],
    ] as const) {
      const mul_mat_id: typeof mulMatId = (...args) => {
        args[place] = value;
        return mulMatId(...args);
      };
      assert.is((await found({ mul_mat_id }))?.kernel, 'experts', `argument ${place}`);
    }
    const route_plan: typeof exports.route_plan = (...args) => {
      const routing = new Int32Array(memory.buffer, args[4], (args[5] as number) * 4);
      for (let at = 0; at < routing.length; at += 4) routing.subarray(at, at + 2).reverse();
      return exports.route_plan(...args);
    };
    assert.is((await found({ route_plan }))?.kernel, 'experts');
  } finally {
    await source.close();
  }
});

/** A machine that has both builds, of which these are wrong. */
function platformWith(wrong: readonly ('simd' | 'relaxed')[]): Platform & { readonly loaded: string[] } {
  const loaded: string[] = [];
  return {
    ...nodePlatform,
    loaded,
    supportsRelaxedSimd: () => true,
    loadKernels: (build) => {
      loaded.push(build);
      const [kernel, memory] = build.split('-') as ['simd' | 'relaxed', 'shared' | 'plain'];
      // Both are made of the simd build, which runs everywhere.
      return wrong.includes(kernel) ? damaged(`simd-${memory}`, WRONG_DOT) : nodePlatform.loadKernels(`simd-${memory}`);
    },
  };
}

async function answer(wrong: readonly ('simd' | 'relaxed')[], options: EngineOptions = {}) {
  const platform = platformWith(wrong);
  const told: EngineWarning[] = [];
  const onWarning = (warning: EngineWarning): void => void told.push(warning);
  const engine = await createLocalEngine(platform, DEMO, { threads: 1, onWarning, ...options });
  try {
    const ids = engine.tokenize('2 + 2', { special: true });
    const logits = await engine.forward(ids);
    const { kernel, ran } = engine.info.backend;
    return { kernel, ran, told, loaded: platform.loaded, best: logits.indexOf(Math.max(...logits)) };
  } finally {
    await engine.dispose();
  }
}

test('the next kernels take the place of wrong ones, which is said once', async () => {
  const sound = await answer([]);
  assert.equal([sound.kernel, sound.told.length, sound.loaded], ['relaxed', 0, ['relaxed-shared']]);
  const { kernel, told, loaded, best } = await answer(['relaxed']);
  assert.equal([kernel, loaded, best], ['simd', ['relaxed-shared', 'simd-shared'], sound.best]);
  assert.equal(
    told.map(({ rule }) => rule),
    ['KERNEL-SELFCHECK'],
  );
  assert.match(told[0]!.message, /the relaxed kernels multiply.* Q\d_K wrongly.*; the simd kernels take their place$/);
});

test('the reference takes the place of all of them, unless the backend was asked for', async () => {
  const { kernel, ran, told } = await answer(['relaxed', 'simd']);
  assert.equal([kernel, ran, told.length], ['scalar', 'reference', 2]);
  assert.match(told[1]!.message, /the simd kernels .*; the reference backend, which is slow, takes their place$/);
});

for (const [name, options] of [
  ['kernels', { kernel: 'relaxed' }],
  ['a backend', { backend: 'cpu' }],
] as const) {
  test(`${name} asked for by name: wrong ones are refused`, async () => {
    const error = await answer(['relaxed', 'simd'], options).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    assert.instance(error, AprError);
    assert.is((error as AprError).code, 'BACKEND_UNAVAILABLE');
    assert.match((error as AprError).message, /Q\d_K wrongly.*--no-selfcheck/);
  });
}

test('kernels of another build are told apart, with the check or without it', async () => {
  // The simd build with one export under another name of the same length.
  const stale = async (build: KernelBuild) => damaged(build, [[...Buffer.from('top_k')], [...Buffer.from('top_j')]]);
  for (const selfCheck of [true, false]) {
    const error = await createLocalEngine({ ...nodePlatform, loadKernels: stale }, DEMO, { selfCheck }).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    assert.instance(error, AprError);
    assert.is((error as AprError).code, 'LOAD_FAILED');
    assert.match((error as AprError).message, /-shared\.wasm is of another build than this code: it lacks top_k;/);
  }
});

test('without the check wrong kernels run', async () => {
  const { kernel, told } = await answer(['relaxed'], { selfCheck: false });
  assert.equal([kernel, told.length], ['relaxed', 0]);
});

test('a trace checks the kernels as well, unless it is told not to', async () => {
  const folders = { create: () => Promise.reject(new Error('no folder is asked for')), open: () => undefined };
  const trace = (options: EngineOptions) =>
    traceFile(platformWith(['simd']), folders, DEMO, { prompt: 'Hi', threads: 1, kernel: 'simd', ...options });
  const error = await trace({}).catch((reason: unknown) => reason);
  assert.is((error as AprError).code, 'BACKEND_UNAVAILABLE');
  assert.is((await trace({ selfCheck: false })).backend.kernel, 'simd');
});

test('the check is a span of loading', async () => {
  const spans: string[] = [];
  await answer([], { observer: { onSpan: ({ name }) => void spans.push(name) } });
  assert.ok(spans.indexOf('self_check') > spans.indexOf('kernels'));
  assert.ok(spans.indexOf('weights') > spans.indexOf('self_check'));
  spans.length = 0;
  await answer([], { selfCheck: false, observer: { onSpan: ({ name }) => void spans.push(name) } });
  assert.not.ok(spans.includes('self_check'));
});

test.run();
