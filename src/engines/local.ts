/** The composition root: a file becomes a running model in this process. */

import { createReferenceBackend } from '../backends/reference/backend.ts';
import { REFERENCE_TYPES } from '../backends/reference/dequantize.ts';
import { createWasmBackend, WASM_TYPES } from '../backends/wasm/create.ts';
import { type ChatTemplate, createChatTemplate, encodeSegments } from '../chat/index.ts';
import type {
  BackendInfo,
  ChatMessage,
  ChatOptions,
  Engine,
  EngineInfo,
  EngineOptions,
  ForwardOptions,
  GenerateEvent,
  GenerateRequest,
  TokenizeOptions,
} from '../engine.ts';
import { AprError } from '../errors.ts';
import type { ModelFile } from '../formats/model-file.ts';
import { openModel } from '../formats/open-model.ts';
import { type GenerationContext, generateTokens, pass, prefill } from '../generate.ts';
import type { Backend } from '../graph/backend.ts';
import type { PassRecord } from '../graph/command.ts';
import { Ops } from '../graph/ops.ts';
import type { Platform } from '../platform/platform.ts';
import { createTokenizer, type Tokenizer } from '../tokenizer/index.ts';
import { type PreparedModel, prepareModel } from './model.ts';

const MAX_THREADS = 256;

/**
 * Loads a model.
 * @throws AprError NOT_FOUND, BAD_FORMAT, UNSUPPORTED, CONTRACT, OUT_OF_MEMORY, BACKEND_UNAVAILABLE, USAGE, ABORTED
 */
export async function createLocalEngine(
  platform: Platform,
  source: string,
  options: EngineOptions = {},
): Promise<Engine> {
  const start = performance.now();
  const plan = planBackend(platform, options);
  const bytes = await platform.openSource(source);
  try {
    const file = await openModel(bytes);
    const tokenizer = createTokenizer(file.metadata);
    const types = plan.name === 'reference' ? REFERENCE_TYPES : WASM_TYPES;
    const prepared = await prepareModel(file, tokenizer, types, options.contextLength);
    const { contextLength } = prepared.model;
    const record = recorder(prepared);
    const backend = await startBackend(platform, plan, { file, prepared, contextLength, record, options });
    const context = { backend, tokenizer, contextLength, record };
    return new LocalEngine(file, prepared, context, options, performance.now() - start);
  } finally {
    await bytes.close();
  }
}

interface BackendPlan {
  readonly name: 'cpu' | 'reference';
  readonly kernel: 'simd' | 'relaxed';
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
    const message = 'kernel "relaxed" needs a runtime with relaxed SIMD (Node 22 or newer); use "simd"';
    throw new AprError('BACKEND_UNAVAILABLE', message, { requested: 'relaxed' });
  }
  const shared = options.shared ?? platform.supportsSharedMemory();
  if (shared && !platform.supportsSharedMemory()) {
    throw new AprError(
      'BACKEND_UNAVAILABLE',
      'shared memory was asked for, but this platform has no SharedArrayBuffer',
    );
  }
  const { threads } = options;
  if (threads !== undefined && (!Number.isInteger(threads) || threads < 1 || threads > MAX_THREADS)) {
    throw new AprError('USAGE', `threads is ${threads}, expected a whole number from 1 to ${MAX_THREADS}`);
  }
  if (!shared && threads !== undefined && threads > 1) {
    throw new AprError('USAGE', `threads is ${threads}, but without shared memory there is one thread`);
  }
  return {
    name: requested === 'reference' ? 'reference' : 'cpu',
    kernel: options.kernel ?? (relaxed ? 'relaxed' : 'simd'),
    threads: shared ? (threads ?? Math.min(MAX_THREADS, platform.defaultThreads())) : 1,
    shared,
  };
}

/** Records passes of the prepared model, and keeps the records of the shapes met last. */
function recorder(prepared: PreparedModel): (rows: number, outputs: number) => PassRecord {
  const records = new Map<string, PassRecord>();
  return (rows, outputs) => {
    const key = `${rows}/${outputs}`;
    const known = records.get(key);
    if (known !== undefined) return known;
    const ops = new Ops(rows, outputs);
    const record = ops.finish(prepared.architecture.forward(ops, prepared.model));
    const oldest = records.keys().next().value;
    if (records.size >= 8 && oldest !== undefined) records.delete(oldest);
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
}

async function startBackend(platform: Platform, plan: BackendPlan, input: BackendInput): Promise<Backend> {
  const { file, prepared, contextLength, record, options } = input;
  const { hyperparameters, ropes } = prepared.model;
  const totalBytes = prepared.weights.reduce((sum, { name }) => sum + file.tensors.get(name)!.byteLength, 0);
  const onLoaded =
    options.onProgress === undefined
      ? {}
      : { onLoaded: (bytes: number) => options.onProgress?.({ loadedBytes: Math.min(bytes, totalBytes), totalBytes }) };
  const signal = options.signal === undefined ? {} : { signal: options.signal };
  const { blockCount } = hyperparameters;
  if (plan.name === 'reference') {
    const tensors = prepared.weights.map(({ name }) => name);
    const keyWidth = hyperparameters.headCountKv * hyperparameters.headDim;
    const valueWidth = hyperparameters.headCountKv * hyperparameters.headDimV;
    const sizes = { contextLength, blockCount, keyWidth, valueWidth };
    return createReferenceBackend({ file, tensors, ...sizes, ...onLoaded, ...signal });
  }
  const module = await platform.loadKernels(`${plan.kernel}-${plan.shared ? 'shared' : 'plain'}`);
  return createWasmBackend({
    file,
    weights: prepared.weights,
    hyperparameters,
    ropes,
    contextLength,
    record,
    kernel: plan.kernel,
    module,
    threads: plan.threads,
    shared: plan.shared,
    createPool: (threads) => platform.createPool(threads),
    availableMemory: platform.availableMemory(),
    ...onLoaded,
    ...signal,
  });
}

class LocalEngine implements Engine {
  readonly info: EngineInfo;
  readonly #context: GenerationContext;
  readonly #tokenizer: Tokenizer;
  readonly #template: ChatTemplate | undefined;
  /** Settles when the request that holds the engine is done; requests queue up behind it. */
  #tail: Promise<void> = Promise.resolve();
  #disposed: Promise<void> | undefined;

  constructor(
    file: ModelFile,
    prepared: PreparedModel,
    context: Pick<GenerationContext, 'backend' | 'tokenizer' | 'contextLength' | 'record'>,
    options: EngineOptions,
    loadMs: number,
  ) {
    const { backend, tokenizer } = context;
    const { hyperparameters } = prepared.model;
    this.#tokenizer = tokenizer;
    this.#template = createChatTemplate(file.metadata, tokenizer);
    const backendInfo: BackendInfo = {
      requested: options.backend ?? 'auto',
      ran: backend.name,
      threads: backend.threads,
      kernel: backend.kernel,
    };
    this.info = describe(file, prepared, {
      contextLength: context.contextLength,
      hasChatTemplate: this.#template !== undefined,
      kvCacheBytes: backend.kvCacheBytes,
      loadMs,
      backend: backendInfo,
    });
    this.#context = {
      ...context,
      modelName: this.info.model,
      backendInfo,
      vocabularySize: hyperparameters.vocabularySize,
      loadMs,
      cached: [],
    };
  }

  async *generate(request: GenerateRequest): AsyncGenerator<GenerateEvent, void, undefined> {
    const prompt = this.#promptTokens(request);
    const release = await this.#acquire(request.signal);
    try {
      yield* generateTokens(this.#context, prompt, request);
    } finally {
      release();
    }
  }

  tokenize(text: string, options: TokenizeOptions = {}): number[] {
    return this.#tokenizer.encode(text, { special: options.special ?? false, addSpecial: options.addSpecial ?? false });
  }

  detokenize(tokens: readonly number[], options: { special?: boolean } = {}): string {
    return this.#tokenizer.decode(tokens, { special: options.special ?? false });
  }

  applyChatTemplate(messages: readonly ChatMessage[], options: ChatOptions = {}): string {
    return this.#renderChat(messages, options)
      .map(({ text }) => text)
      .join('');
  }

  async forward(tokens: readonly number[], options: ForwardOptions = {}): Promise<Float32Array> {
    const { backend, contextLength, vocabularySize } = this.#context;
    if (tokens.length === 0) throw new AprError('USAGE', 'forward needs at least one token');
    if (tokens.length > contextLength) {
      const message = `forward got ${tokens.length} tokens, the context holds ${contextLength}`;
      throw new AprError('CONTEXT_EXCEEDED', message, { promptTokens: tokens.length, contextLength });
    }
    for (const token of tokens) {
      if (!Number.isInteger(token) || token < 0 || token >= vocabularySize) {
        throw new AprError('USAGE', `token ${token} is not in the vocabulary of ${vocabularySize} tokens`);
      }
    }
    const { observer, signal } = options;
    const release = await this.#acquire(signal);
    try {
      backend.begin();
      try {
        this.#context.cached.length = 0;
        if (options.all !== true) return (await prefill(this.#context, tokens, 0, observer, signal)).slice();
        const out = new Float32Array(tokens.length * vocabularySize);
        const size = Math.min(backend.maxOutputs, observer === undefined ? backend.maxRows : backend.observedRows);
        for (let at = 0; at < tokens.length; at += size) {
          const logits = await pass(this.#context, tokens.slice(at, at + size), at, observer, signal, true);
          out.set(logits, at * vocabularySize);
        }
        return out;
      } finally {
        await backend.end();
      }
    } finally {
      release();
    }
  }

  dispose(): Promise<void> {
    this.#disposed ??= this.#context.backend.dispose();
    return this.#disposed;
  }

  #promptTokens(request: GenerateRequest): number[] {
    const { prompt, messages } = request;
    if ((prompt === undefined) === (messages === undefined)) {
      throw new AprError('USAGE', 'a request needs either a prompt or messages, and not both');
    }
    if (messages !== undefined) return encodeSegments(this.#tokenizer, this.#renderChat(messages, request));
    for (const name of ['thinking', 'tools'] as const) {
      if (!request[name]) continue;
      throw new AprError('USAGE', `${name} needs messages and their chat template; a prompt says it all by itself`);
    }
    if (typeof prompt !== 'string') return [...prompt!];
    return this.#tokenizer.encode(prompt, { special: true, addSpecial: true });
  }

  #renderChat(messages: readonly ChatMessage[], { thinking = false, tools }: ChatOptions) {
    if (this.#template === undefined) {
      throw new AprError(
        'TEMPLATE',
        `${this.info.model}: the file has no chat template and "${this.info.architecture}" has no built-in one; ` +
          'give the prompt as plain text (--raw)',
      );
    }
    return this.#template.render(messages, { thinking, ...(tools === undefined ? {} : { tools }) });
  }

  /** Waits for the engine; the returned function gives it back. */
  async #acquire(signal: AbortSignal | undefined): Promise<() => void> {
    let release = (): void => {};
    const before = this.#tail;
    this.#tail = new Promise((resolve) => {
      release = resolve;
    });
    await before;
    if (this.#disposed === undefined && !signal?.aborted) return release;
    release();
    if (signal?.aborted) throw new AprError('ABORTED', 'the generation was aborted');
    throw new AprError('DISPOSED', 'the engine was disposed');
  }
}

function describe(
  file: ModelFile,
  { model, weights }: PreparedModel,
  rest: Pick<EngineInfo, 'contextLength' | 'hasChatTemplate' | 'kvCacheBytes' | 'loadMs' | 'backend'>,
): EngineInfo {
  const hp = model.hyperparameters;
  const tensorTypes: Record<string, number> = {};
  let weightBytes = 0;
  let parameterCount = 0;
  for (const { name, width, rows, experts } of weights) {
    const { type, byteLength } = file.tensors.get(name)!;
    tensorTypes[type.name] = (tensorTypes[type.name] ?? 0) + 1;
    weightBytes += byteLength;
    parameterCount += width * rows * experts;
  }
  const baseName = file.source.name.split(/[/\\]/).at(-1) ?? file.source.name;
  return {
    model: file.source.name,
    name: file.metadata.string('general.name') ?? baseName,
    format: file.format,
    architecture: hp.architecture,
    parameterCount,
    layerCount: hp.blockCount,
    embeddingLength: hp.embeddingLength,
    headCount: hp.headCount,
    headCountKv: hp.headCountKv,
    expertCount: hp.expertCount,
    vocabularySize: hp.vocabularySize,
    trainedContextLength: hp.contextLength,
    tensorTypes,
    defaults: hp.defaults,
    weightBytes,
    ...rest,
  };
}
