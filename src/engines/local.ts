/** The composition root: a file becomes a running model in this process. */

import { createReferenceBackend } from '../backends/reference/backend.ts';
import { REFERENCE_TYPES } from '../backends/reference/dequantize.ts';
import { createWasmBackend, WASM_TYPES } from '../backends/wasm/create.ts';
import { createChatTemplate } from '../chat/index.ts';
import type { Engine, EngineOptions, EngineWarning } from '../engine.ts';
import { AprError } from '../errors.ts';
import type { ModelFile } from '../formats/model-file.ts';
import { type ModelSource, nameOfSource } from '../formats/model-source.ts';
import { openModel } from '../formats/open-model.ts';
import type { Backend } from '../graph/backend.ts';
import type { PassRecord } from '../graph/command.ts';
import { spanned, spannedAsync } from '../graph/observer.ts';
import { Ops } from '../graph/ops.ts';
import type { OpenOptions, Platform } from '../platform/platform.ts';
import { createTokenizer } from '../tokenizer/index.ts';
import { chooseKernels, type KernelSet } from './kernel-choice.ts';
import { LocalEngine } from './local-engine.ts';
import { type PreparedModel, prepareModel } from './model.ts';
import { MAX_THREADS, validateEngineOptions } from './validate-request.ts';

/**
 * Loads a model.
 * @throws AprError NOT_FOUND, BAD_FORMAT, UNSUPPORTED, CONTRACT, OUT_OF_MEMORY, LOAD_FAILED, IO, BACKEND_UNAVAILABLE,
 *   USAGE, ABORTED
 */
export async function createLocalEngine(
  platform: Platform,
  source: ModelSource,
  options: EngineOptions = {},
): Promise<Engine> {
  const start = performance.now();
  validateEngineOptions(source, options);
  const plan = planBackend(platform, options);
  throwIfAborted(source, options);
  const bytes = await platform.openSource(source, openOptions(plan, options));
  try {
    const { observer } = options;
    const file = await spannedAsync(observer, 'header', () => openModel(bytes));
    const tokenizer = spanned(observer, 'tokenizer', () => createTokenizer(file.metadata));
    const template = spanned(observer, 'chat_template', () => createChatTemplate(file.metadata, tokenizer));
    const types = plan.name === 'reference' ? REFERENCE_TYPES : WASM_TYPES;
    const prepared = await spannedAsync(observer, 'contract', () => prepareModel(file, tokenizer, types, options));
    const warnings: EngineWarning[] = [];
    const warn = (warning: EngineWarning): void => {
      warnings.push(warning);
      options.onWarning?.(warning);
    };
    if (plan.name === 'cpu' && options.shared === undefined && !platform.supportsSharedMemory()) {
      const message = `there is one thread, which is slower than several: ${platform.sharedMemoryAdvice}`;
      warn({ rule: 'SINGLE-THREAD', message });
    }
    for (const { rule, message } of prepared.passedOver) warn({ rule, message: `${file.source.name}: ${message}` });
    const { contextLength } = prepared.model;
    const record = recorder(prepared);
    throwIfAborted(source, options);
    const backend = await startBackend(platform, plan, { file, prepared, contextLength, record, options, warn });
    try {
      const context = { backend, tokenizer, contextLength, record };
      const end = performance.now();
      observer?.onSpan?.({ name: 'load', start, end, details: { bytes: bytes.size } });
      return new LocalEngine(
        file,
        prepared,
        context,
        template,
        { modelName: nameOfSource(source), ...options },
        {
          loadMs: end - start,
          warnings,
        },
      );
    } catch (error) {
      await backend.dispose();
      throw error;
    }
  } finally {
    await bytes.close();
  }
}

function throwIfAborted(source: ModelSource, { signal }: EngineOptions): void {
  if (signal?.aborted) throw new AprError('ABORTED', `loading ${nameOfSource(source)} was aborted`);
}

function openOptions({ shared, name }: BackendPlan, { signal, onProgress }: EngineOptions): OpenOptions {
  return {
    threads: shared && name === 'cpu',
    ...(signal === undefined ? {} : { signal }),
    ...(onProgress === undefined
      ? {}
      : {
          onDownload: (loadedBytes, totalBytes) =>
            onProgress({ loadedBytes, totalBytes: totalBytes ?? 0, phase: 'download' }),
        }),
  };
}

interface BackendPlan {
  readonly name: 'cpu' | 'reference';
  /** The fastest first; one where it was asked for. */
  readonly kernels: readonly KernelSet[];
  readonly threads: number;
  readonly shared: boolean;
}

function planBackend(platform: Platform, options: EngineOptions): BackendPlan {
  const requested = options.backend ?? 'auto';
  if (requested === 'cuda' || requested === 'wgpu') {
    throw new AprError(
      'BACKEND_UNAVAILABLE',
      `backend "${requested}" is not present in this installation; use --backend cpu, or auto`,
      { requested },
    );
  }
  const relaxed = platform.supportsRelaxedSimd();
  if (options.kernel === 'relaxed' && !relaxed) {
    const message = 'kernel "relaxed" needs a runtime with relaxed SIMD (Node 22, Chrome 120 or newer); use "simd"';
    throw new AprError('BACKEND_UNAVAILABLE', message, { requested: 'relaxed' });
  }
  const shared = options.shared ?? platform.supportsSharedMemory();
  if (shared && !platform.supportsSharedMemory()) {
    throw new AprError('BACKEND_UNAVAILABLE', `shared memory was asked for, but ${platform.sharedMemoryAdvice}`);
  }
  const { threads } = options;
  if (!shared && threads !== undefined && threads > 1) {
    const why = platform.supportsSharedMemory() ? '' : `: ${platform.sharedMemoryAdvice}`;
    throw new AprError('USAGE', `threads is ${threads}, but without shared memory there is one thread${why}`);
  }
  return {
    name: requested === 'reference' ? 'reference' : 'cpu',
    kernels: options.kernel !== undefined ? [options.kernel] : relaxed ? ['relaxed', 'simd'] : ['simd'],
    threads: shared ? (threads ?? Math.min(MAX_THREADS, platform.defaultThreads())) : 1,
    shared,
  };
}

/** Enough for the passes of some sequences that come and go. */
const KEPT_RECORDS = 24;

/** Records passes of the prepared model, and keeps the records of the shapes met last. */
function recorder(prepared: PreparedModel): (rows: number, outputs: number) => PassRecord {
  const records = new Map<string, PassRecord>();
  return (rows, outputs) => {
    const key = `${rows}/${outputs}`;
    const known = records.get(key);
    if (known !== undefined) {
      records.delete(key);
      records.set(key, known);
      return known;
    }
    const ops = new Ops(rows, outputs);
    const record = ops.finish(prepared.architecture.forward(ops, prepared.model));
    const oldest = records.keys().next().value;
    if (records.size >= KEPT_RECORDS && oldest !== undefined) records.delete(oldest);
    records.set(key, record);
    return record;
  };
}

interface BackendInput {
  readonly file: ModelFile;
  readonly prepared: PreparedModel;
  readonly contextLength: number;
  readonly record: (rows: number, outputs: number) => PassRecord;
  readonly options: EngineOptions;
  readonly warn: (warning: EngineWarning) => void;
}

async function startBackend(platform: Platform, plan: BackendPlan, input: BackendInput): Promise<Backend> {
  const { file, prepared, contextLength, record, options, warn } = input;
  const { hyperparameters, ropes } = prepared.model;
  const totalBytes = prepared.weights.reduce((sum, { name }) => sum + file.tensors.get(name)!.byteLength, 0);
  const onLoaded =
    options.onProgress === undefined
      ? {}
      : { onLoaded: (bytes: number) => options.onProgress?.({ loadedBytes: Math.min(bytes, totalBytes), totalBytes }) };
  const signal = options.signal === undefined ? {} : { signal: options.signal };
  const { blockCount } = hyperparameters;
  const { kernels, shared } = plan;
  const question = { kernels, shared, file, weights: prepared.weights, options, warn };
  const chosen = plan.name === 'reference' ? undefined : await chooseKernels(platform, question);
  if (chosen === undefined) {
    const tensors = prepared.weights.map(({ name }) => name);
    const keyWidth = hyperparameters.headCountKv * hyperparameters.headDim;
    const valueWidth = hyperparameters.headCountKv * hyperparameters.headDimV;
    const sizes = { contextLength, sequences: options.sequences ?? 1, blockCount, keyWidth, valueWidth };
    const availableMemory = platform.availableMemory();
    return spannedAsync(options.observer, 'weights', () =>
      createReferenceBackend({ file, tensors, ...sizes, availableMemory, ...onLoaded, ...signal }),
    );
  }
  const backend = {
    file,
    weights: prepared.weights,
    hyperparameters,
    ropes,
    contextLength,
    sequences: options.sequences ?? 1,
    record,
    ...chosen,
    threads: plan.threads,
    shared,
    createPool: (threads: number) => platform.createPool(threads),
    availableMemory: platform.availableMemory(),
    ...onLoaded,
    ...signal,
  };
  return spannedAsync(options.observer, 'weights', () => createWasmBackend(backend));
}
