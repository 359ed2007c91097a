/** The one generation loop: prefill, sample, decode, stop. */

import type { PassRequest, PassScheduler, SequenceCache } from './batch.ts';
import type {
  BackendInfo,
  FinalEvent,
  GenerateEvent,
  GenerateRequest,
  LogprobEntry,
  StopReason,
  Timings,
  TokenEvent,
} from './engine.ts';
import { AprError } from './errors.ts';
import type { Backend } from './graph/backend.ts';
import { type PassObserver, rowsOfPass, type Span, spanned } from './graph/observer.ts';
import { createSampler, logprobsOf } from './sampling/index.ts';
import { StreamingDecoder } from './tokenizer/streaming-decoder.ts';
import type { Tokenizer } from './tokenizer/tokenizer.ts';

/** What the loop works on; an engine has one for each sequence that it can keep. */
export interface GenerationContext extends SequenceCache {
  readonly modelName: string;
  readonly backend: Backend;
  readonly backendInfo: BackendInfo;
  readonly tokenizer: Tokenizer;
  readonly contextLength: number;
  /** Context length that the model was trained for. */
  readonly trainedContextLength: number;
  readonly vocabularySize: number;
  readonly loadMs: number;
  readonly passes: PassScheduler;
  /** Says that this sequence wants nothing for now. */
  rest(): Promise<void>;
}

const DEFAULT_MAX_TOKENS = 128;

function tokenDetails(token: number): Span['details'] {
  return { token };
}

/**
 * Generates one answer to `prompt`. The caller holds the context.
 * @throws AprError CONTEXT_EXCEEDED, USAGE, INFERENCE, ABORTED
 */
export async function* generateTokens(
  context: GenerationContext,
  prompt: readonly number[],
  request: GenerateRequest,
): AsyncGenerator<GenerateEvent, void, undefined> {
  const { tokenizer, contextLength } = context;
  const { signal, observer } = request;
  const maxTokens = request.maxTokens ?? DEFAULT_MAX_TOKENS;
  checkPrompt(context, prompt);
  const sampler = createSampler(request);
  for (const token of prompt) sampler.accept(token);
  const decoder = new StreamingDecoder(tokenizer, { stop: request.stop ?? [] });

  const tokens: number[] = [];
  const logprobs: LogprobEntry[] = [];
  let held: TokenEvent | undefined;
  let text = '';
  let stopReason: StopReason = 'length';
  let prefillMs = 0;
  let decodeMs = 0;
  let decodePasses = 0;

  const cachedTokens = reuseCache(context, prompt);
  const start = performance.now();
  try {
    let logits = await prefill(context, prompt.slice(cachedTokens), cachedTokens, observer, signal);
    const prefilled = performance.now();
    prefillMs = prefilled - start;
    observer?.onSpan?.({ name: 'prefill', start, end: prefilled, details: { tokens: prompt.length - cachedTokens } });
    while (tokens.length < maxTokens) {
      const stepStart = performance.now();
      const token = spanned(observer, 'sample', () => sampler.sample(logits), tokenDetails);
      const ended = !(request.ignoreEos ?? false) && tokenizer.isEndOfGeneration(token);
      if (ended) {
        decodeMs += performance.now() - stepStart;
        stopReason = 'eos';
        break;
      }
      const logprob =
        request.logprobs === undefined ? undefined : logprobEntry(context, logits, token, request.logprobs);
      if (logprob !== undefined) logprobs.push(logprob);
      const index = tokens.push(token) - 1;
      const piece = spanned(
        observer,
        'detokenize',
        () => decoder.push(token),
        ({ text }) => ({ text }),
      );
      text += piece.text;
      decodeMs += performance.now() - stepStart;
      if (held !== undefined) yield held;
      held = undefined;
      const event: TokenEvent = {
        event: 'token',
        index,
        token_id: token,
        text: piece.text,
        ...(logprob === undefined ? {} : { logprob }),
      };
      // Handed out as soon as it is known; the next pass starts when the consumer asks for more. A token with an open
      // end waits for its successor: if it is the last one, what it left open belongs to it.
      if (decoder.pending) held = event;
      else yield event;
      throwIfAborted(signal);
      if (piece.stopped) {
        stopReason = 'stop';
        break;
      }
      if (tokens.length >= maxTokens || context.cached.length >= contextLength) break;
      const passStart = performance.now();
      sampler.accept(token);
      logits = await pass(context, [token], context.cached.length, observer, signal);
      decodePasses++;
      decodeMs += performance.now() - passStart;
    }
    const tail = decoder.finish();
    text += tail;
    if (held !== undefined) yield { ...held, text: held.text + tail };
  } finally {
    await context.rest();
  }

  const rate = (count: number, ms: number): number => (count > 0 && ms > 0 ? (count * 1000) / ms : 0);
  const timings: Timings = {
    load_ms: context.loadMs,
    prefill_ms: prefillMs,
    prefill_tok_per_sec: rate(prompt.length - cachedTokens, prefillMs),
    decode_ms: decodeMs,
    decode_tok_per_sec: rate(decodePasses, decodeMs),
    total_ms: performance.now() - start,
  };
  const final: FinalEvent = {
    event: 'final',
    model: context.modelName,
    text,
    tokens,
    prompt_tokens: [...prompt],
    tokens_generated: tokens.length,
    max_tokens: maxTokens,
    stop_reason: stopReason,
    cached_tokens: cachedTokens,
    timings,
    tok_per_sec: timings.decode_tok_per_sec,
    inference_time_ms: prefillMs + decodeMs,
    backend: context.backendInfo,
    ...((request.temperature ?? 0) > 0 ? { seed: sampler.seed } : {}),
    ...(request.logprobs === undefined ? {} : { logprobs }),
  };
  yield final;
}

/** Runs `tokens` through the model in as few passes as fit; logits after the last one. */
export async function prefill(
  context: GenerationContext,
  tokens: readonly number[],
  position: number,
  observer?: PassObserver,
  signal?: AbortSignal,
): Promise<Float32Array> {
  const { backend } = context;
  // Unobserved, the scheduler cuts them as the others in a pass leave room.
  const size = observer === undefined ? tokens.length : rowsOfPass(backend, observer);
  let logits: Float32Array | undefined;
  for (let at = 0; at < tokens.length; at += size) {
    const outputs = at + size < tokens.length ? 'none' : 'last';
    logits = await pass(context, tokens.slice(at, at + size), position + at, observer, signal, outputs);
  }
  return logits as Float32Array;
}

/** Computes consecutive tokens of the sequence; logits after those that `outputs` says. */
export async function pass(
  context: GenerationContext,
  tokens: readonly number[],
  position: number,
  observer?: PassObserver,
  signal?: AbortSignal,
  outputs: PassRequest['outputs'] = 'last',
): Promise<Float32Array> {
  throwIfAborted(signal);
  return context.passes.run({ cache: context, tokens, position, outputs, observer, signal });
}

/** How many leading tokens of the prompt the cache already holds; at least one is left to compute. */
function reuseCache(context: GenerationContext, prompt: readonly number[]): number {
  const { cached } = context;
  const most = Math.min(cached.length, prompt.length - 1);
  let shared = 0;
  while (shared < most && cached[shared] === prompt[shared]) shared++;
  return shared;
}

function checkPrompt(context: GenerationContext, prompt: readonly number[]): void {
  const { contextLength, vocabularySize } = context;
  if (prompt.length === 0) {
    throw new AprError('USAGE', 'the prompt is empty: there is no token to start from');
  }
  const bad = prompt.find((token) => !Number.isInteger(token) || token < 0 || token >= vocabularySize);
  if (bad !== undefined) {
    throw new AprError('USAGE', `prompt token ${bad} is not in the vocabulary of ${vocabularySize} tokens`);
  }
  if (prompt.length > contextLength) {
    throw new AprError(
      'CONTEXT_EXCEEDED',
      `the prompt has ${prompt.length} tokens, the context holds ${contextLength}; ${contextAdvice(context)}`,
      { promptTokens: prompt.length, contextLength },
    );
  }
}

/** What to do about a prompt that does not fit. */
export function contextAdvice({
  contextLength,
  trainedContextLength,
}: Pick<GenerationContext, 'contextLength' | 'trainedContextLength'>): string {
  if (contextLength >= trainedContextLength)
    return `shorten it: the model was trained on ${trainedContextLength} positions`;
  return `shorten it, or raise the context length (-c), up to the ${trainedContextLength} that the model was trained on`;
}

function logprobEntry(context: GenerationContext, logits: Float32Array, token: number, count: number): LogprobEntry {
  const { chosen, top } = logprobsOf(logits, token, count);
  const entry = (id: number, logprob: number) => ({
    token_id: id,
    text: context.tokenizer.tokenText(id),
    logprob,
  });
  return { ...entry(token, chosen), top: top.map(({ id, logprob }) => entry(id, logprob)) };
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new AprError('ABORTED', 'the generation was aborted');
}
