/** apr in a web page, and on hosts that offer nothing but the web's interfaces: the exports of `@apr-runtime/apr/web`. */

import type { Engine, EngineOptions } from './engine.ts';
import { createLocalEngine as createEngineHere } from './engines/local.ts';
import { connectEngine, type RemoteEngine } from './engines/remote.ts';
import { AprError } from './errors.ts';
import type { ModelSource } from './formats/model-source.ts';
import { absolute, startEngineWorker } from './platform/web/engine-worker.ts';
import { createWebPlatform, type WebPlatformOptions } from './platform/web/platform.ts';

export interface WebEngineOptions extends EngineOptions, WebPlatformOptions {
  /** Address of `workers/web-engine.js` of this package, or a Worker that runs it; where it is not found by itself. */
  engineWorker?: string | URL | Worker;
}

/**
 * Loads a model in a Worker of this page, with its kernel threads as Workers below it, and returns an engine that runs
 * it. Without cross-origin isolation there is one thread, and `onWarning` (the console, if it is absent) is told so.
 *
 * @param source a GGUF or .apr file: its address, a Blob or File, or its bytes, which are copied
 * @throws AprError; its `code` says what is wrong, its message what to do
 */
export async function createEngine(source: ModelSource, options: WebEngineOptions = {}): Promise<RemoteEngine> {
  const { kernels, kernelWorker, engineWorker, ...engineOptions } = options;
  if (typeof Worker === 'undefined') {
    throw new AprError('BACKEND_UNAVAILABLE', 'this platform has no Workers; use createLocalEngine');
  }
  const { onWarning = ({ message }) => console.warn(message) } = options;
  const platform: WebPlatformOptions = {
    ...(kernels === undefined ? {} : { kernels }),
    ...(kernelWorker === undefined ? {} : { kernelWorker }),
  };
  return connectEngine(startEngineWorker(engineWorker, platform), sendableSource(source), {
    ...engineOptions,
    onWarning,
  });
}

/**
 * Loads a model in this thread: in a Worker of your own, or where there are no threads at all, such as in a function on
 * the edge of a network. Without threads it computes in slices of some 30 ms, so that timers have their turn.
 *
 * @param source a GGUF or .apr file: its address, a Blob, or its bytes
 * @param options `kernels` takes modules that are compiled already, for hosts that forbid to compile
 * @throws AprError
 */
export function createLocalEngine(
  source: ModelSource,
  options: EngineOptions & WebPlatformOptions = {},
): Promise<Engine> {
  const { kernels, kernelWorker, ...engineOptions } = options;
  const platform = createWebPlatform({
    ...(kernels === undefined ? {} : { kernels }),
    ...(kernelWorker === undefined ? {} : { kernelWorker }),
  });
  return createEngineHere(platform, source, engineOptions);
}

/** An address as the page means it: in a Worker it would be relative to the Worker's script. */
function sendableSource(source: ModelSource): ModelSource {
  if (typeof source !== 'string' || source === '') return source;
  try {
    return absolute(source);
  } catch (cause) {
    throw new AprError('USAGE', `${source}: is no address, expected a URL, a Blob or bytes`, { source }, { cause });
  }
}

export type {
  BackendInfo,
  BackendName,
  ChatMessage,
  ChatOptions,
  Engine,
  EngineInfo,
  EngineOptions,
  EngineWarning,
  FinalEvent,
  ForwardOptions,
  GenerateEvent,
  GenerateRequest,
  KernelVariant,
  LoadProgress,
  LogprobEntry,
  SamplingOptions,
  StopReason,
  TextPart,
  Timings,
  TokenEvent,
  TokenizeOptions,
  TokenLogprob,
} from './engine.ts';
export { connectEngine, type EngineThread, type RemoteEngine } from './engines/remote.ts';
export { AprError, type AprErrorCode } from './errors.ts';
export type { ModelSource } from './formats/model-source.ts';
export type { KernelModule, KernelModules } from './platform/web/kernels.ts';
export type { WebPlatformOptions } from './platform/web/platform.ts';
