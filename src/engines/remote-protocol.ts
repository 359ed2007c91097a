/** What a page and the engine in its Worker say to each other, through Comlink. Plain data only: it crosses threads. */

import type {
  ChatMessage,
  ChatOptions,
  EngineInfo,
  EngineOptions,
  EngineWarning,
  GenerateEvent,
  GenerateRequest,
  LoadProgress,
  TokenizeOptions,
} from '../engine.ts';
import type { AprErrorRecord } from '../errors.ts';
import type { ModelSource } from '../formats/model-source.ts';

/** Errors travel as records, since Comlink drops their code. */
export type Outcome<T> = { readonly value: T } | { readonly error: AprErrorRecord };

/** Options without what cannot be sent: functions and signals. */
export type SentEngineOptions = Omit<EngineOptions, 'onProgress' | 'onWarning' | 'signal'>;
export type SentRequest = Omit<GenerateRequest, 'signal' | 'observer'>;

export type LoadEvent =
  | { readonly progress: LoadProgress }
  | { readonly warning: EngineWarning }
  | { readonly info: EngineInfo };

/**
 * The engine's side. Work that takes a while has a number, which the caller chooses: with it `next` fetches what has
 * come meanwhile, and `cancel` ends it.
 */
export interface EngineHost {
  /** Begins to load; `next` tells LoadEvents, the last one with `info`. */
  load(job: number, source: ModelSource, options: SentEngineOptions): Outcome<null>;
  /** Begins a generation; `next` tells its events. */
  generate(job: number, request: SentRequest): Outcome<null>;
  /** Waits for the job's next events and returns all that are there; none: it has ended. Its error ends it too. */
  next(job: number): Promise<Outcome<readonly (LoadEvent | GenerateEvent)[]>>;
  /** Aborts a job; without effect on one that has ended. */
  cancel(job: number): void;
  forward(job: number, tokens: readonly number[], options: { readonly all?: boolean }): Promise<Outcome<Float32Array>>;
  tokenize(text: string, options?: TokenizeOptions): Outcome<number[]>;
  detokenize(tokens: readonly number[], options?: { special?: boolean }): Outcome<string>;
  applyChatTemplate(messages: readonly ChatMessage[], options?: ChatOptions): Outcome<string>;
  dispose(): Promise<Outcome<null>>;
}
