/** apr: language models anywhere JavaScript runs. The public exports, for Node and what behaves like it. */

import type { Engine, EngineOptions } from './engine.ts';
import { createLocalEngine } from './engines/local.ts';
import { nodePlatform } from './platform/node/platform.ts';

/**
 * Loads a model file and returns an engine that runs it.
 *
 * @param source path of a GGUF file
 * @throws AprError; its `code` says what is wrong, its message what to do
 */
export function createEngine(source: string, options: EngineOptions = {}): Promise<Engine> {
  return createLocalEngine(nodePlatform, source, options);
}

export type {
  BackendInfo,
  BackendName,
  ChatMessage,
  Engine,
  EngineInfo,
  EngineOptions,
  FinalEvent,
  ForwardOptions,
  GenerateEvent,
  GenerateRequest,
  KernelVariant,
  LoadProgress,
  LogprobEntry,
  PassObserver,
  SamplingOptions,
  StopReason,
  Tap,
  Timings,
  TokenEvent,
  TokenizeOptions,
  TokenLogprob,
} from './engine.ts';
export { AprError, type AprErrorCode } from './errors.ts';
