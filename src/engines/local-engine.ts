/** A running model in this process. */

import { PassScheduler } from '../batch.ts';
import { type ChatTemplate, encodeSegments } from '../chat/index.ts';
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
import { contextAdvice, type GenerationContext, generateTokens, pass, prefill } from '../generate.ts';
import type { Backend } from '../graph/backend.ts';
import type { PassRecord } from '../graph/command.ts';
import { rowsOfPass, spanned } from '../graph/observer.ts';
import { validateSampling } from '../sampling/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import type { PreparedModel } from './model.ts';
import { RequestQueue } from './request-queue.ts';
import { validateMessages, validateRequest, validateTokens } from './validate-request.ts';

/** What the composition root hands over. */
export interface LocalEngineParts extends Pick<GenerationContext, 'backend' | 'tokenizer' | 'contextLength'> {
  /** Pass of that shape; the same object for the same shape. */
  record(rows: number, outputs: number): PassRecord;
}

export class LocalEngine implements Engine {
  readonly info: EngineInfo;
  readonly #backend: Backend;
  readonly #tokenizer: Tokenizer;
  readonly #template: ChatTemplate | undefined;
  readonly #queue: RequestQueue<GenerationContext>;
  #disposed: Promise<void> | undefined;

  constructor(
    file: ModelFile,
    prepared: PreparedModel,
    context: LocalEngineParts,
    template: ChatTemplate | undefined,
    options: EngineOptions,
    { loadMs, warnings }: Pick<EngineInfo, 'loadMs' | 'warnings'>,
  ) {
    const { backend, tokenizer } = context;
    const { hyperparameters } = prepared.model;
    this.#tokenizer = tokenizer;
    this.#template = template;
    const backendInfo: BackendInfo = {
      requested: options.backend ?? 'auto',
      ran: backend.name,
      threads: backend.threads,
      kernel: backend.kernel,
    };
    this.info = describe(file, prepared, {
      contextLength: context.contextLength,
      sequences: options.sequences ?? 1,
      hasChatTemplate: template !== undefined,
      model: options.modelName ?? file.source.name,
      kvCacheBytes: backend.kvCacheBytes,
      loadMs,
      warnings,
      backend: backendInfo,
    });
    this.#backend = backend;
    const passes = new PassScheduler(backend, context.record);
    const slots = Array.from(
      { length: options.sequences ?? 1 },
      (_, sequence): GenerationContext => ({
        backend,
        tokenizer,
        contextLength: context.contextLength,
        modelName: this.info.model,
        backendInfo,
        vocabularySize: hyperparameters.vocabularySize,
        trainedContextLength: hyperparameters.contextLength,
        loadMs,
        passes,
        sequence,
        cached: [],
        rest: async () => {
          passes.leave(sequence);
          if (this.#queue.busy <= 1) await backend.rest();
        },
      }),
    );
    this.#queue = new RequestQueue(slots);
  }

  async *generate(request: GenerateRequest): AsyncGenerator<GenerateEvent, void, undefined> {
    validateRequest(request);
    validateSampling(request);
    const prompt = this.#promptTokens(request);
    const { slot, release } = await this.#queue.enter(prompt, request.signal);
    try {
      yield* generateTokens(slot, prompt, request);
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
    validateMessages(messages);
    return this.#renderChat(messages, options)
      .map(({ text }) => text)
      .join('');
  }

  async forward(tokens: readonly number[], options: ForwardOptions = {}): Promise<Float32Array> {
    const { contextLength, vocabularySize } = this.info;
    const ids = validateTokens(tokens, vocabularySize);
    if (ids.length === 0) throw new AprError('USAGE', 'forward needs at least one token');
    if (ids.length > contextLength) {
      const message = `forward got ${ids.length} tokens, the context holds ${contextLength}`;
      throw new AprError('CONTEXT_EXCEEDED', message, { promptTokens: ids.length, contextLength });
    }
    const { slot, release } = await this.#queue.enter(ids, options.signal);
    try {
      slot.cached.length = 0;
      return await this.#forward(slot, ids, options);
    } finally {
      await slot.rest();
      release();
    }
  }

  async #forward(context: GenerationContext, ids: readonly number[], options: ForwardOptions): Promise<Float32Array> {
    const { backend, vocabularySize } = context;
    const { observer, signal, onLogits } = options;
    if (options.all !== true && onLogits === undefined) {
      return (await prefill(context, ids, 0, observer, signal)).slice();
    }
    const out = new Float32Array(onLogits === undefined ? ids.length * vocabularySize : 0);
    const size = Math.min(backend.maxOutputs, rowsOfPass(backend, observer));
    for (let at = 0; at < ids.length; at += size) {
      const rows = ids.slice(at, at + size);
      const logits = await pass(context, rows, at, observer, signal, 'all');
      if (onLogits === undefined) out.set(logits, at * vocabularySize);
      for (let row = 0; onLogits !== undefined && row < rows.length; row++) {
        onLogits(at + row, logits.subarray(row * vocabularySize, (row + 1) * vocabularySize));
      }
    }
    return out;
  }

  dispose(): Promise<void> {
    this.#queue.close();
    this.#disposed ??= this.#backend.dispose();
    return this.#disposed;
  }

  #promptTokens(request: GenerateRequest): number[] {
    const { prompt, messages } = request;
    const encode = (work: () => number[]): number[] =>
      spanned(request.observer, 'tokenize', work, ({ length }) => ({ tokens: length }));
    if (messages !== undefined) {
      const segments = spanned(request.observer, 'template', () => this.#renderChat(messages, request));
      this.#refuseLong(segments.reduce((length, { text }) => length + text.length, 0));
      return encode(() => encodeSegments(this.#tokenizer, segments));
    }
    for (const name of ['thinking', 'tools'] as const) {
      if (!request[name]) continue;
      throw new AprError('USAGE', `${name} needs messages and their chat template; a prompt says it all by itself`);
    }
    if (typeof prompt !== 'string') return [...prompt!];
    this.#refuseLong(prompt.length);
    return encode(() => this.#tokenizer.encode(prompt, { special: true, addSpecial: true }));
  }

  /**
   * Refuses a text that cannot fit without making tokens of it, which would take minutes for hundreds of megabytes.
   * @param length in UTF-16 units, of which each is a byte at least
   */
  #refuseLong(length: number): void {
    const { contextLength, trainedContextLength } = this.info;
    const longest = this.#tokenizer.longestToken;
    if (length <= contextLength * longest) return;
    const message =
      `the prompt has ${length} characters, more than the ${contextLength} tokens of the context hold ` +
      `(the longest token has ${longest} bytes); ${contextAdvice({ contextLength, trainedContextLength })}`;
    throw new AprError('CONTEXT_EXCEEDED', message, { promptLength: length, contextLength });
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
}

function describe(
  file: ModelFile,
  { model, weights }: PreparedModel,
  rest: Pick<
    EngineInfo,
    'model' | 'contextLength' | 'sequences' | 'hasChatTemplate' | 'kvCacheBytes' | 'loadMs' | 'warnings' | 'backend'
  >,
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
