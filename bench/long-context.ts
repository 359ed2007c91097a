/**
 * How much slower a token is decoded far into the context than at its start: node bench/long-context.js [--model FILE]
 * [--position N] [--threads N] [--rounds N] [--kernel simd|relaxed] [--json]
 *
 * The KV cache is filled with keys and values of the model's first block, of different tokens at every position and the
 * same in every layer, since prefilling would take minutes and attention takes the same time whatever it reads.
 */

import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { createWasmBackend, WASM_TYPES } from '../src/backends/wasm/create.ts';
import { type PreparedModel, prepareModel } from '../src/engines/model.ts';
import { openModel } from '../src/formats/open-model.ts';
import type { Backend } from '../src/graph/backend.ts';
import type { Activation, Command, PassRecord, Weight } from '../src/graph/command.ts';
import { Ops } from '../src/graph/ops.ts';
import { nodePlatform } from '../src/platform/node/platform.ts';
import { createTokenizer } from '../src/tokenizer/index.ts';
import { CACHE } from './repository.ts';
import { type Spread, showSpread, spreadOf } from './statistics.ts';

export interface LongContextTask {
  readonly model: string;
  /** Position far into the context: so many are filled. */
  readonly position: number;
  readonly threads: number;
  /** How often both positions are measured, in turn. */
  readonly rounds: number;
  readonly kernel?: 'simd' | 'relaxed';
}

export interface LongContextMeasurement {
  readonly kernel: string;
  readonly threads: number;
  readonly position: number;
  readonly kvCacheBytes: number;
  /** Tokens/s at the first positions and from `position` on; a round counts as one measurement. */
  readonly start: Spread;
  readonly far: Spread;
  /** Median of far over that of start. */
  readonly ratio: number;
  /** The same of the fastest single tokens: what is left when other processes have the cores now and then. */
  readonly ratioOfBest: number;
}

/** Decoded in a row at one place. */
const PASSES = 6;
const FILL_ROWS = 128;

/** @throws AprError as createEngine does; Error for a model whose blocks have no attn_k and attn_v of their own */
export async function measureLongContext(task: LongContextTask): Promise<LongContextMeasurement> {
  const { position, rounds } = task;
  const source = await nodePlatform.openSource(task.model);
  const file = await openModel(source);
  const contextLength = position + rounds * PASSES + PASSES;
  const prepared = await prepareModel(file, createTokenizer(file.metadata), WASM_TYPES, { contextLength });
  const { hyperparameters, ropes } = prepared.model;
  const records = new Map<string, PassRecord>();
  const record = (rows: number, outputs: number): PassRecord => {
    const key = `${rows}/${outputs}`;
    const ops = new Ops(rows, outputs);
    const known = records.get(key) ?? ops.finish(prepared.architecture.forward(ops, prepared.model));
    records.set(key, known);
    return known;
  };
  const kernel = task.kernel ?? (nodePlatform.supportsRelaxedSimd() ? 'relaxed' : 'simd');
  const backend = await createWasmBackend({
    file,
    weights: prepared.weights,
    hyperparameters,
    ropes,
    contextLength,
    record,
    kernel,
    module: await nodePlatform.loadKernels(`${kernel}-shared`),
    threads: task.threads,
    shared: true,
    createPool: (count) => nodePlatform.createPool(count),
    availableMemory: nodePlatform.availableMemory(),
  });
  await source.close();
  try {
    await fill(backend, prepared, position);
    const decode = async (at: number): Promise<number> => {
      const start = performance.now();
      await backend.execute(record(1, 1), inputsAt([1000 + at], at));
      return performance.now() - start;
    };
    const near: number[] = [];
    const far: number[] = [];
    const least = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    // The first round lets V8 compile, and does not count.
    for (let round = 0; round <= rounds; round++) {
      for (const [place, times] of [near, far].entries()) {
        let total = 0;
        for (let pass = 0; pass < PASSES; pass++) {
          const time = await decode((place === 0 ? 0 : position) + round * PASSES + pass);
          total += time;
          if (round > 0) least[place] = Math.min(least[place]!, time);
        }
        if (round > 0) times.push((PASSES * 1000) / total);
      }
    }
    const [start, end] = [spreadOf(near), spreadOf(far)];
    return {
      kernel,
      threads: task.threads,
      position,
      kvCacheBytes: backend.kvCacheBytes,
      start,
      far: end,
      ratio: end.median / start.median,
      ratioOfBest: least[0]! / least[1]!,
    };
  } finally {
    await backend.rest();
    await backend.dispose();
  }
}

function inputsAt(tokens: readonly number[], position: number) {
  return {
    tokens: Int32Array.from(tokens),
    positions: Int32Array.from(tokens, (_, row) => position + row),
    sequences: new Int32Array(tokens.length),
    outputRows: Int32Array.from(tokens, (_, row) => row),
  };
}

async function fill(backend: Backend, prepared: PreparedModel, positions: number): Promise<void> {
  const records = new Map<number, PassRecord>();
  for (let at = 0; at < positions; at += FILL_ROWS) {
    const rows = Math.min(FILL_ROWS, positions - at);
    const record = records.get(rows) ?? fillRecord(prepared, rows);
    records.set(rows, record);
    const vocabulary = prepared.model.hyperparameters.vocabularySize;
    const tokens = Array.from({ length: rows }, (_, row) => (1000 + 37 * (at + row)) % vocabulary);
    await backend.execute(record, inputsAt(tokens, at));
  }
}

/** Keys and values of the first block's projections of the tokens' embeddings, stored in every layer. */
function fillRecord({ model }: PreparedModel, rows: number): PassRecord {
  const { headCountKv, headDim, headDimV, blockCount, rmsEps } = model.hyperparameters;
  const matrix = (name: string): Weight => {
    const weight = model.optional(name);
    if (weight === undefined) throw new Error(`this benchmark needs a model with ${name}`);
    return weight;
  };
  const ops = new Ops(rows, rows);
  const x = ops.rmsNorm(
    'norm',
    ops.embed('embd', matrix('token_embd.weight')),
    matrix('blk.0.attn_norm.weight'),
    rmsEps,
  );
  const project = (name: 'k' | 'v'): Activation => {
    const product = ops.mulMat(name, matrix(`blk.0.attn_${name}.weight`), x);
    return ops.addBias(`${name}_bias`, product, model.optional(`blk.0.attn_${name}.bias`));
  };
  const k = ops.rope('k_rope', project('k'), headDim, model.ropes[0]!);
  const v = project('v');
  const stores = Array.from(
    { length: blockCount },
    (_, layer): Command => ({ op: 'storeKv', k, v, layer, headCountKv, headDim, headDimV }),
  );
  const recorded = ops.finish(v);
  return { ...recorded, commands: [...recorded.commands, ...stores] };
}

export function showLongContext(found: LongContextMeasurement): string {
  return (
    `${found.kernel}, ${found.threads} threads: decode ${showSpread(found.start)} tok/s at position 0, ` +
    `${showSpread(found.far)} at ${found.position}: ratio ${found.ratio.toFixed(2)}, of the fastest tokens ` +
    `${found.ratioOfBest.toFixed(2)}; KV cache ${Math.round(found.kvCacheBytes / 1e6)} MB`
  );
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      model: { type: 'string' },
      position: { type: 'string', default: '8192' },
      threads: { type: 'string', default: '2' },
      rounds: { type: 'string', default: '5' },
      kernel: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  const { kernel } = values;
  if (kernel !== undefined && kernel !== 'simd' && kernel !== 'relaxed') {
    throw new RangeError(`--kernel ${kernel}: expected simd or relaxed`);
  }
  const [position, threads, rounds] = [values.position, values.threads, values.rounds].map(Number);
  if (![position, threads, rounds].every((value) => Number.isInteger(value) && Number(value) > 0)) {
    throw new RangeError('--position, --threads and --rounds are whole numbers above 0');
  }
  const found = await measureLongContext({
    model: values.model ?? join(CACHE, 'models', 'qwen2.5-1.5b-q4_k_m.gguf'),
    position: position!,
    threads: threads!,
    rounds: rounds!,
    ...(kernel === undefined ? {} : { kernel }),
  });
  process.stdout.write(`${values.json ? JSON.stringify(found) : showLongContext(found)}\n`);
}

if (import.meta.filename === process.argv[1]) await main();
