/** The public interface of a running model. `createEngine` (src/engines/local.ts) makes one. */

import type { PassObserver } from './graph/observer.ts';

/** `auto` takes the fastest present one; every other name is that backend or an error, never a fallback. */
export type BackendName = 'auto' | 'cpu' | 'reference' | 'cuda' | 'wgpu';

/** Which instructions the matrix kernels use: baseline SIMD, relaxed SIMD, or none (the reference backend). */
export type KernelVariant = 'simd' | 'relaxed' | 'scalar';

export interface LoadProgress {
  /** Bytes of weights in place so far; in the phase `download` bytes of the file that have come. */
  readonly loadedBytes: number;
  /** 0 in the phase `download` where the server does not say how long the file is. */
  readonly totalBytes: number;
  /** Present while a server that cannot send ranges sends the whole file; the weights follow. */
  readonly phase?: 'download';
}

/** What does not stop an engine, and should be known about it. */
export interface EngineWarning {
  /** Stable name of the rule that is broken. */
  readonly rule: string;
  /** One sentence. */
  readonly message: string;
}

export interface EngineOptions {
  /** Default `auto`. */
  backend?: BackendName;
  /** Kernel threads, 1 to 256. Default: the machine's available parallelism. */
  threads?: number;
  /** Positions of the KV cache. Default: the file's context length, at most 4,096; 0 means the file's. */
  contextLength?: number;
  /**
   * Requests that run together, 1 to 64: each has a KV cache of `contextLength` positions, and they share passes. Default
   * 1: requests run one after the other.
   */
  sequences?: number;
  /** Forces a kernel build; default: relaxed where the runtime accepts it without a flag. */
  kernel?: 'simd' | 'relaxed';
  /** False runs in this thread on plain memory, as on platforms without SharedArrayBuffer. Default true. */
  shared?: boolean;
  /**
   * Run a file that breaks the contract: what it breaks becomes warnings. What nothing can be computed without (a tensor
   * that is absent, a wrong shape, a type that nothing reads) is refused all the same. Default false.
   */
  skipContract?: boolean;
  /**
   * Hold the kernels against the reference while loading, by some rows of each tensor type in use. Kernels that fail are
   * refused where they or their backend were asked for by name, and replaced by others, with a warning, otherwise.
   * Default true.
   */
  selfCheck?: boolean;
  /** Told at once of everything that `info.warnings` lists. */
  onWarning?: (warning: EngineWarning) => void;
  /** What results call the model. Default: the source as it was given. */
  modelName?: string;
  onProgress?: (progress: LoadProgress) => void;
  /** Told when each stage of loading was. */
  observer?: Pick<PassObserver, 'onSpan'>;
  /** Aborts loading. */
  signal?: AbortSignal;
}

/** What the file is and how the engine runs it. */
export interface EngineInfo {
  /** `modelName`, or the source as it was given. */
  readonly model: string;
  /** `general.name`, or the file's base name. */
  readonly name: string;
  readonly format: 'gguf' | 'apr';
  readonly architecture: string;
  readonly parameterCount: number;
  readonly layerCount: number;
  readonly embeddingLength: number;
  readonly headCount: number;
  readonly headCountKv: number;
  readonly expertCount: number;
  readonly vocabularySize: number;
  /** Context length that the model was trained for. */
  readonly trainedContextLength: number;
  /** Positions of this engine's KV cache, for each of its sequences. */
  readonly contextLength: number;
  /** Requests that run together. */
  readonly sequences: number;
  /** Tensor type name to number of tensors. */
  readonly tensorTypes: Readonly<Record<string, number>>;
  /** True when the file has a chat template, or its architecture a built-in one. */
  readonly hasChatTemplate: boolean;
  /** Keys that the file lacks and for which a default of the architecture was taken. */
  readonly defaults: Readonly<Record<string, number>>;
  /** Empty for a sound file on a sound machine. */
  readonly warnings: readonly EngineWarning[];
  readonly weightBytes: number;
  readonly kvCacheBytes: number;
  /** Measured time from `createEngine` to ready. */
  readonly loadMs: number;
  readonly backend: BackendInfo;
}

export interface BackendInfo {
  readonly requested: BackendName;
  readonly ran: 'cpu' | 'reference';
  readonly threads: number;
  readonly kernel: KernelVariant;
}

/** A piece of a message's content, as the OpenAI API has it. */
export interface TextPart {
  readonly type: 'text';
  readonly text: string;
}

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool' | (string & {});
  /** Parts are joined by line ends. Null is for an assistant that only made calls. */
  readonly content: string | readonly TextPart[] | null;
  /** What a model thought before it answered, for templates that keep it. */
  readonly reasoning_content?: string;
  /** Calls that an assistant made: `{type: 'function', function: {name, arguments}}`; arguments as an object or JSON. */
  readonly tool_calls?: readonly Readonly<Record<string, unknown>>[];
  /** The call that a tool answers, and the tool's name. */
  readonly tool_call_id?: string;
  readonly name?: string;
}

/** How a chat template is to be filled in, besides the messages. */
export interface ChatOptions {
  /** Let the model think before it answers. Default false; true is refused where the template knows no thinking. */
  thinking?: boolean;
  /** Functions that the model may call, handed to the template as they are: `{type: 'function', function: {…}}`. */
  tools?: readonly Readonly<Record<string, unknown>>[];
}

export interface SamplingOptions {
  /** 0 takes the most probable token. Default 0. */
  temperature?: number;
  /** Keep the k most probable tokens; 0 is off. Default 0. */
  topK?: number;
  /** Keep the smallest set whose probabilities sum to p; 1 is off. Default 1. */
  topP?: number;
  /** Drop tokens less probable than this share of the best one's; 0 is off. Default 0. */
  minP?: number;
  /** Same seed, same text. Default: a random one. */
  seed?: number;
  /** Divides positive and multiplies negative logits of recent tokens; 1 is off. Default 1. */
  repeatPenalty?: number;
  /** How many recent tokens the penalty looks at; 0 none, -1 the whole context. Default 64. */
  repeatLastN?: number;
}

export interface GenerateRequest extends SamplingOptions, ChatOptions {
  /** Token ids, or text in which special tokens are recognised and to which BOS is added if the file asks for it. */
  prompt?: string | readonly number[];
  /** A conversation, to which the chat template is applied. Exactly one of `prompt` and `messages`. */
  messages?: readonly ChatMessage[];
  /** Default 128. */
  maxTokens?: number;
  /** Text that ends the answer and is not part of it. */
  stop?: readonly string[];
  /** Go on after end-of-generation tokens. */
  ignoreEos?: boolean;
  /** Report the K most probable tokens beside each chosen one. Absent: no log-probabilities. */
  logprobs?: number;
  /** Ends the generation within one token. */
  signal?: AbortSignal;
  /** Looks on at the forward passes; never changes a result. */
  observer?: PassObserver;
}

export interface TokenLogprob {
  readonly token_id: number;
  readonly text: string;
  /** Natural logarithm of the soft-max of the raw logits. */
  readonly logprob: number;
}

export interface LogprobEntry extends TokenLogprob {
  readonly top: readonly TokenLogprob[];
}

export interface Timings {
  readonly load_ms: number;
  readonly prefill_ms: number;
  /** Prompt positions computed in `prefill_ms` (those that the cache already held are not counted) a second. */
  readonly prefill_tok_per_sec: number;
  /** Decode passes, and the choice of tokens and their text, also of an end token. */
  readonly decode_ms: number;
  /** Decode passes a second; 0 when there was none. */
  readonly decode_tok_per_sec: number;
  /** From the first pass to the end of the answer; time that the consumer takes for an event is in it, loading is not. */
  readonly total_ms: number;
}

export type StopReason = 'eos' | 'stop' | 'length';

export interface TokenEvent {
  readonly event: 'token';
  /** Counts the generated tokens from 0. */
  readonly index: number;
  readonly token_id: number;
  /** Text that this token completes; empty while bytes of a character or of a stop string are outstanding. */
  readonly text: string;
  readonly logprob?: LogprobEntry;
}

export interface FinalEvent {
  readonly event: 'final';
  readonly model: string;
  readonly text: string;
  /** Generated ids without the end token. */
  readonly tokens: readonly number[];
  readonly prompt_tokens: readonly number[];
  readonly tokens_generated: number;
  readonly max_tokens: number;
  readonly stop_reason: StopReason;
  /** Prompt positions that the KV cache already held from the previous request. */
  readonly cached_tokens: number;
  readonly timings: Timings;
  /** Decode rate, the same as `timings.decode_tok_per_sec`. */
  readonly tok_per_sec: number;
  /** Prefill and decode together. */
  readonly inference_time_ms: number;
  readonly backend: BackendInfo;
  /** That the tokens were drawn with; absent where nothing was left to chance (temperature 0). */
  readonly seed?: number;
  readonly logprobs?: readonly LogprobEntry[];
}

export type GenerateEvent = TokenEvent | FinalEvent;

export interface TokenizeOptions {
  /** Recognise special tokens written in the text. Default false: text that looks like one stays text. */
  special?: boolean;
  /** Add BOS (and EOS) as the file asks for. Default false. */
  addSpecial?: boolean;
}

export interface ForwardOptions {
  /** Logits after every token, not only the last. Default false. */
  all?: boolean;
  /**
   * Called with the logits after each token, in order, in place of returning them: a view that is valid during the call
   * only. The result is empty then.
   */
  onLogits?: (position: number, logits: Float32Array) => void;
  signal?: AbortSignal;
  observer?: PassObserver;
}

export interface Engine {
  readonly info: EngineInfo;
  /**
   * Generates one answer. As many requests as the engine has `sequences` run together, the others after them, in order.
   * @throws AprError USAGE, CONTEXT_EXCEEDED, TEMPLATE, INFERENCE, ABORTED, DISPOSED
   */
  generate(request: GenerateRequest): AsyncIterable<GenerateEvent>;
  tokenize(text: string, options?: TokenizeOptions): number[];
  /** Text of these tokens; control tokens are left out unless `special` is set. Invalid UTF-8 becomes U+FFFD. */
  detokenize(tokens: readonly number[], options?: { special?: boolean }): string;
  /** The conversation as the model's prompt text, opened for the assistant's answer. */
  applyChatTemplate(messages: readonly ChatMessage[], options?: ChatOptions): string;
  /**
   * Logits of one pass from position 0.
   * @returns [vocabularySize] after the last token, or [tokens.length × vocabularySize] with `all`; see `onLogits`
   */
  forward(tokens: readonly number[], options?: ForwardOptions): Promise<Float32Array>;
  /** Releases threads and memory. Pending requests reject with DISPOSED. Idempotent. */
  dispose(): Promise<void>;
}

export type { PassObserver, PassStep, PassTiming, Span, Tap, ThreadTimes } from './graph/observer.ts';
