/** Puts a WebAssembly backend together: counts the memory, allocates it, loads the weights. */

import { AprError } from '../../errors.ts';
import type { ModelFile, TensorInfo } from '../../formats/model-file.ts';
import type { PassRecord, Weight } from '../../graph/command.ts';
import type { RopeParameters } from '../../graph/rope.ts';
import { align } from '../../scheduling/arena.ts';
import type { KernelPool } from '../../scheduling/kernel-pool.ts';
import { allocationFailed, checkMemory } from '../memory.ts';
import { WasmBackend } from './backend.ts';
import { arenaBytes } from './compile.ts';
import type { KernelExports } from './kernels.ts';
import { type Layout, PAGE_BYTES, planLayout } from './layout.ts';
import { loadWeights } from './load-weights.ts';
import { planJobs, stagingBytes } from './loader.ts';
import { type Buffer, FEW_ROWS, lower, type Placement } from './lower.ts';
import { instantiate, type KernelTask, lanesFor } from './tasks.ts';

export interface WasmBackendOptions {
  readonly file: ModelFile;
  /** Tensors to load, in the order of the blocks. */
  readonly weights: readonly Weight[];
  readonly hyperparameters: DecoderShape;
  /** Every rotation that a pass uses. */
  readonly ropes: readonly RopeParameters[];
  readonly contextLength: number;
  /** Sequences that the KV cache holds side by side. Default 1. */
  readonly sequences?: number;
  /** Records a pass of that shape. */
  readonly record: (rows: number, outputs: number) => PassRecord;
  readonly kernel: 'simd' | 'relaxed';
  readonly module: WebAssembly.Module;
  readonly threads: number;
  readonly shared: boolean;
  readonly createPool: (threads: number) => KernelPool<KernelTask> | Promise<KernelPool<KernelTask>>;
  readonly availableMemory: number | undefined;
  readonly onLoaded?: (bytes: number) => void;
  readonly signal?: AbortSignal;
  /** Smaller banks, for tests. */
  readonly bankBytes?: number;
}

/** The sizes of a model that memory depends on. */
export interface DecoderShape {
  readonly blockCount: number;
  readonly headCount: number;
  readonly headCountKv: number;
  readonly headDim: number;
  readonly headDimV: number;
  readonly vocabularySize: number;
}

/** Tokens of one prefill pass: enough to use an unpacked weight tile often, few enough for little memory. */
const MAX_ROWS = 128;
/** Logits of one pass at most, in floats. */
const MAX_LOGITS = 4 << 20;

/** Types whose matrices the kernels multiply. */
export const WASM_TYPES: ReadonlySet<string> = /* @__PURE__ */ new Set([
  'F32',
  'F16',
  'BF16',
  'Q4_0',
  'Q4_1',
  'Q5_0',
  'Q5_1',
  'Q8_0',
  'Q2_K',
  'Q3_K',
  'Q4_K',
  'Q5_K',
  'Q6_K',
  'IQ1_S',
  'IQ1_M',
  'IQ2_XXS',
  'IQ2_XS',
  'IQ2_S',
  'IQ3_XXS',
  'IQ3_S',
  'IQ4_NL',
  'IQ4_XS',
  'TQ1_0',
  'TQ2_0',
  'MXFP4',
  'Q1_0',
  'Q2_0',
]);

/** What the memory of a backend depends on. */
export type WasmPlanOptions = Pick<
  WasmBackendOptions,
  | 'file'
  | 'weights'
  | 'hyperparameters'
  | 'ropes'
  | 'contextLength'
  | 'sequences'
  | 'record'
  | 'module'
  | 'threads'
  | 'shared'
  | 'bankBytes'
>;

export interface WasmPlan {
  /** Kernels over a page of their own, to be asked for sizes. */
  readonly probe: KernelExports;
  readonly layout: Layout;
  readonly workers: number;
  /** Rows, and rows with logits, of the largest pass. */
  readonly maxRows: number;
  readonly maxOutputs: number;
  /** Bytes of keys and of values of one layer, all sequences. */
  readonly keys: number;
  readonly values: number;
  /** Of all layers. */
  readonly kvCacheBytes: number;
  /** For each worker: scratch while computing, and room to read into while loading. */
  readonly scratchBytes: number;
  readonly staging: number;
  readonly observedRowBytes: number;
}

/**
 * Where everything of the model would lie, and how many bytes that takes; nothing of it is allocated.
 * @throws AprError LOAD_FAILED when a layer is too large for one memory
 */
export async function planWasmBackend(options: WasmPlanOptions): Promise<WasmPlan> {
  const { file, module, contextLength, sequences = 1 } = options;
  const { blockCount, headCount, headCountKv, headDim, headDimV, vocabularySize } = options.hyperparameters;
  const workers = options.shared ? options.threads : 1;
  const maxRows = Math.min(MAX_ROWS, contextLength);
  const maxOutputs = Math.max(1, Math.min(maxRows, Math.floor(MAX_LOGITS / vocabularySize)));

  // One page is enough to ask the module for sizes.
  const probe = (await instantiate(module, [allocate(1, options.shared)]))[0]!.exports;
  const keys = sequences * (probe.k_cache_bytes(contextLength, headCountKv, headDim) >>> 0);
  const values = sequences * (probe.v_cache_bytes(contextLength, headCountKv, headDimV) >>> 0);
  const sized = measure(options, probe, workers, maxRows, maxOutputs);
  const scratchBytes = align(
    Math.max(
      probe.SCRATCH_BYTES.value,
      probe.attention_scratch_bytes(headDim, headDimV, headCount / headCountKv, contextLength) >>> 0,
    ),
  );
  const layoutInput = {
    sourceName: file.source.name,
    kernels: probe,
    weights: options.weights.map((weight) => ({
      weight,
      info: file.tensors.get(weight.name) as TensorInfo,
      layer: layerOf(weight.name),
    })),
    blockCount,
    keyBytes: keys,
    valueBytes: values,
    maxRows,
    ropeDims: options.ropes.map(({ dims }) => dims),
    workers,
    scratchBytes,
    arenaBytes: sized.arenaBytes,
    // Crossing banks adds transfers of the residual stream.
    maxCalls: sized.calls + 64,
    ...(options.bankBytes === undefined ? {} : { bankBytes: options.bankBytes }),
  };
  let layout = planLayout(layoutInput);
  const staging = stagingBytes(layout, probe.GROUP_ROWS.value);
  const lanes = lanesFor(file.source.locator);
  const stagingTotal = staging * workers * lanes;
  if (stagingTotal > layout.arenaBytes) layout = planLayout({ ...layoutInput, arenaBytes: align(stagingTotal) });
  const kvCacheBytes = (keys + values) * blockCount;
  const { observedRowBytes } = sized;
  return {
    probe,
    layout,
    workers,
    maxRows,
    maxOutputs,
    keys,
    values,
    kvCacheBytes,
    scratchBytes,
    staging,
    observedRowBytes,
  };
}

export async function createWasmBackend(options: WasmBackendOptions): Promise<WasmBackend> {
  const { file, module, contextLength } = options;
  const plan = await planWasmBackend(options);
  const { probe, layout, workers, maxRows, maxOutputs, keys, values, kvCacheBytes, scratchBytes, staging } = plan;
  const sourceName = file.source.name;
  const { sequences = 1 } = options;
  const need = { sourceName, totalBytes: layout.totalBytes, kvCacheBytes, contextLength, sequences };
  checkMemory(need, options.availableMemory);
  throwIfAborted(options);

  const banks = await instantiate(
    module,
    layout.bankBytes.map((bytes) => allocate(bytes / PAGE_BYTES, options.shared)),
  );
  const setups = Array.from({ length: workers }, (_, worker) => ({
    module,
    memories: banks.map(({ memory }) => memory),
    layout: {
      programPointer: layout.programPointer,
      countersPointer: layout.countersPointer,
      scratchPointers: banks.map(() => layout.scratchPointer),
      scratchBytes,
    },
    worker,
    workers,
  }));
  const pool = options.shared ? await options.createPool(workers) : undefined;
  const backend = new WasmBackend({
    kernel: options.kernel,
    banks,
    layout,
    placement: placementOf(layout, options, probe, workers, { keys, values }),
    ropes: options.ropes,
    maxRows,
    maxOutputs,
    kvCacheBytes,
    observedRows: Math.max(1, Math.min(maxRows, Math.floor(layout.arenaBytes / plan.observedRowBytes))),
    pool,
    setups,
  });
  try {
    await loadWeights({
      banks,
      pool,
      setups,
      jobs: planJobs(layout, probe),
      source: file.source,
      stagingPointer: layout.arenaPointer,
      stagingBytes: staging,
      lanes: lanesFor(file.source.locator),
      ...(options.onLoaded === undefined ? {} : { onLoaded: options.onLoaded }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
  } catch (error) {
    await backend.dispose();
    throw error;
  }
  return backend;
}

function throwIfAborted({ signal, file }: WasmBackendOptions): void {
  if (signal?.aborted) throw new AprError('ABORTED', `loading ${file.source.name} was aborted`);
}

/** Block of a tensor by its name; undefined outside the blocks. */
function layerOf(name: string): number | undefined {
  const match = /^blk\.(\d+)\./.exec(name);
  return match === null ? undefined : Number(match[1]);
}

/** Memory and calls that the largest passes need, found by lowering them over a made-up placement. */
function measure(
  options: WasmPlanOptions,
  kernels: KernelExports,
  workers: number,
  maxRows: number,
  maxOutputs: number,
): { arenaBytes: number; calls: number; observedRowBytes: number } {
  const nowhere: Buffer = { bank: 0, bytes: 0, fixed: 0, first: 0, last: 0, offset: 0 };
  const placement: Placement = {
    weight: (weight) => ({ bank: 0, pointer: 0, type: (options.file.tensors.get(weight.name) as TensorInfo).type.id }),
    input: () => 0,
    ropeTable: () => 0,
    cache: () => ({ k: nowhere, v: nowhere }),
    contextLength: options.contextLength,
    workers,
    kernels,
  };
  const together = Math.min(options.sequences ?? 1, maxOutputs);
  const few = Math.min(FEW_ROWS, maxRows);
  const shapes = [
    [1, 1],
    [few, 1],
    [few, Math.min(few, together)],
    [maxRows, 1],
    [maxRows, together],
    [maxOutputs, maxOutputs],
  ] as const;
  let bytes = 0;
  let calls = 0;
  for (const [rows, outputs] of shapes) {
    // With the experts' routing kept to the end: an observer that wants no more sees the same passes.
    const record = options.record(rows, outputs);
    const routing = new Set(record.commands.flatMap((command) => (command.op === 'topK' ? [command.dst.name] : [])));
    const lowered = lower(record, placement, (name) => routing.has(name));
    bytes = Math.max(bytes, ...arenaBytes(lowered, 1));
    calls = Math.max(calls, lowered.calls.length);
  }
  const observed = lower(options.record(1, 1), placement, () => true);
  const observedRowBytes = Math.max(...arenaBytes(observed, 1));
  // A bank boundary keeps a second copy of the residual stream.
  const residual = 2 * maxRows * (options.weights[0]?.width ?? 0) * 4;
  return { arenaBytes: Math.max(bytes, observedRowBytes) + align(residual), calls, observedRowBytes };
}

function placementOf(
  layout: Layout,
  { ropes, contextLength }: WasmBackendOptions,
  kernels: KernelExports,
  workers: number,
  cacheBytes: { readonly keys: number; readonly values: number },
): Placement {
  const fixed = (bank: number, pointer: number, bytes: number): Buffer => ({
    bank,
    bytes,
    fixed: pointer,
    first: 0,
    last: 0,
    offset: 0,
  });
  const caches = layout.caches.map(({ bank, k, v }) => ({
    k: fixed(bank, k, cacheBytes.keys),
    v: fixed(bank, v, cacheBytes.values),
  }));
  return {
    weight: (weight) => {
      const placed = layout.weights.get(weight.name)!;
      return { bank: placed.bank, pointer: placed.pointer, type: placed.info.type.id };
    },
    input: (name) => layout.inputs[name],
    ropeTable: (rope) => layout.ropeTables[ropes.indexOf(rope)]!,
    cache: (layer) => caches[layer]!,
    contextLength,
    workers,
    kernels,
  };
}

function allocate(pages: number, shared: boolean): WebAssembly.Memory {
  try {
    return new WebAssembly.Memory({ initial: pages, maximum: pages, shared });
  } catch (cause) {
    throw allocationFailed(pages * PAGE_BYTES, cause);
  }
}
