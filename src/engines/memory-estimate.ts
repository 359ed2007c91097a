/** The memory that running a model takes, counted as running it counts, and not allocated. */

import { planWasmBackend, WASM_TYPES } from '../backends/wasm/create.ts';
import type { ModelFile } from '../formats/model-file.ts';
import { Ops } from '../graph/ops.ts';
import type { Platform } from '../platform/platform.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import { prepareModel } from './model.ts';
import { MAX_THREADS, validateEngineOptions } from './validate-request.ts';

export interface MemoryEstimate {
  /** Positions of the KV cache. */
  readonly context_length: number;
  readonly threads: number;
  /** Weights as they lie in memory: rows interleaved, some types unpacked a little. */
  readonly weight_bytes: number;
  readonly kv_cache_bytes: number;
  readonly kv_cache_bytes_per_position: number;
  /** Activations, scratch of the threads, tables. */
  readonly compute_bytes: number;
  /** All of them: what must be free, apart from what the JavaScript runtime itself takes. */
  readonly total_bytes: number;
  /** Free at this moment, page cache included; undefined where the platform does not tell. */
  readonly available_bytes: number | undefined;
  /** Undefined with {@link available_bytes}. */
  readonly fits: boolean | undefined;
  /** Positions that there is memory for, about, and no more than the model was trained for; 0 for not even one. */
  readonly largest_context_length: number | undefined;
}

export interface MemoryQuestion {
  /** Default: what running the model takes. 0 is the file's. */
  readonly contextLength?: number | undefined;
  /** Default: the machine's. */
  readonly threads?: number | undefined;
}

/** The kernels that would run here; asked for early, since compiling them takes a while. */
export function loadEstimator(platform: Platform): Promise<WebAssembly.Module> {
  const shared = platform.supportsSharedMemory();
  return platform.loadKernels(`${platform.supportsRelaxedSimd() ? 'relaxed' : 'simd'}-${shared ? 'shared' : 'plain'}`);
}

/** @throws AprError USAGE for the question; CONTRACT, UNSUPPORTED, BAD_FORMAT, LOAD_FAILED for a model that cannot be run */
export async function estimateMemory(
  platform: Platform,
  file: ModelFile,
  tokenizer: Tokenizer,
  module: WebAssembly.Module,
  question: MemoryQuestion,
): Promise<MemoryEstimate> {
  const { contextLength, threads: asked } = question;
  validateEngineOptions(file.source.name, {
    ...(contextLength === undefined ? {} : { contextLength }),
    ...(asked === undefined ? {} : { threads: asked }),
  });
  const shared = platform.supportsSharedMemory();
  const threads = shared ? (asked ?? Math.min(MAX_THREADS, platform.defaultThreads())) : 1;
  const { architecture, model, weights } = await prepareModel(file, tokenizer, WASM_TYPES, { contextLength });
  const { layout, kvCacheBytes } = await planWasmBackend({
    file,
    weights,
    hyperparameters: model.hyperparameters,
    ropes: model.ropes,
    contextLength: model.contextLength,
    record: (rows, outputs) => {
      const ops = new Ops(rows, outputs);
      return ops.finish(architecture.forward(ops, model));
    },
    module,
    threads,
    shared,
  });
  const weightBytes = [...layout.weights.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  const available = platform.availableMemory();
  const perPosition = kvCacheBytes / model.contextLength;
  const room = available === undefined ? undefined : available - (layout.totalBytes - kvCacheBytes);
  return {
    context_length: model.contextLength,
    threads,
    weight_bytes: weightBytes,
    kv_cache_bytes: kvCacheBytes,
    kv_cache_bytes_per_position: perPosition,
    compute_bytes: layout.totalBytes - weightBytes - kvCacheBytes,
    total_bytes: layout.totalBytes,
    available_bytes: available,
    fits: available === undefined ? undefined : layout.totalBytes <= available,
    largest_context_length:
      room === undefined
        ? undefined
        : Math.max(0, Math.min(model.hyperparameters.contextLength, Math.floor(room / perPosition))),
  };
}
