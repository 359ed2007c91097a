/** Backends over the demo model without an engine around them: passes at will, any number of banks. */

import { createReferenceBackend } from '../../src/backends/reference/backend.ts';
import { createWasmBackend, WASM_TYPES } from '../../src/backends/wasm/create.ts';
import { prepareModel } from '../../src/engines/model.ts';
import { openModel } from '../../src/formats/open-model.ts';
import type { Backend, PassInputs } from '../../src/graph/backend.ts';
import type { PassRecord } from '../../src/graph/command.ts';
import type { PassObserver } from '../../src/graph/observer.ts';
import { Ops } from '../../src/graph/ops.ts';
import { nodePlatform } from '../../src/platform/node/platform.ts';
import { createTokenizer } from '../../src/tokenizer/index.ts';
import { DEMO } from '../repository.ts';

export interface Passes {
  readonly backend: Backend;
  readonly vocabularySize: number;
  /** One pass; the rows' positions follow each other from `position` on. */
  run(tokens: readonly number[], position?: number, options?: PassOptions): Promise<Float32Array>;
  dispose(): Promise<void>;
}

export interface PassOptions {
  readonly observer?: PassObserver;
}

export interface PassesOptions {
  readonly backend: 'reference' | 'wasm';
  readonly threads?: number;
  readonly shared?: boolean;
  readonly bankBytes?: number;
}

export async function openPasses({
  backend: kind,
  threads = 1,
  shared = true,
  bankBytes,
}: PassesOptions): Promise<Passes> {
  const source = await nodePlatform.openSource(DEMO);
  const file = await openModel(source);
  const prepared = await prepareModel(file, createTokenizer(file.metadata), WASM_TYPES);
  const { hyperparameters: hp, ropes } = prepared.model;
  const records = new Map<string, PassRecord>();
  const record = (rows: number, outputs: number): PassRecord => {
    const key = `${rows}/${outputs}`;
    const ops = new Ops(rows, outputs);
    const known = records.get(key) ?? ops.finish(prepared.architecture.forward(ops, prepared.model));
    records.set(key, known);
    return known;
  };
  const contextLength = 128;
  const backend =
    kind === 'reference'
      ? await createReferenceBackend({
          file,
          tensors: prepared.weights.map(({ name }) => name),
          contextLength,
          blockCount: hp.blockCount,
          keyWidth: hp.headCountKv * hp.headDim,
          valueWidth: hp.headCountKv * hp.headDimV,
          availableMemory: undefined,
        })
      : await createWasmBackend({
          file,
          weights: prepared.weights,
          hyperparameters: hp,
          ropes,
          contextLength,
          record,
          kernel: 'simd',
          module: await nodePlatform.loadKernels(shared ? 'simd-shared' : 'simd-plain'),
          threads,
          shared,
          createPool: (count) => nodePlatform.createPool(count),
          availableMemory: undefined,
          ...(bankBytes === undefined ? {} : { bankBytes }),
        });
  await source.close();
  return {
    backend,
    vocabularySize: hp.vocabularySize,
    run: async (tokens, position = 0, { observer } = {}) => {
      const inputs: PassInputs = {
        tokens: Int32Array.from(tokens),
        positions: Int32Array.from(tokens, (_, row) => position + row),
        sequences: new Int32Array(tokens.length),
        outputRows: Int32Array.from(tokens, (_, row) => row),
      };
      try {
        return (await backend.execute(record(tokens.length, tokens.length), inputs, observer)).slice();
      } finally {
        await backend.rest();
      }
    },
    dispose: () => backend.dispose(),
  };
}
