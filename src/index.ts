/**
 * apr: language models anywhere JavaScript runs. The public exports, for Node and what behaves like it.
 *
 * What a function needs is imported when it is first called: reading modules is a third of what a short command takes.
 */

import type { Engine, EngineOptions } from './engine.ts';
import type { BlockListing, ReadBlocksOptions } from './engines/blocks.ts';
import type { Conversion, ConvertOptions } from './engines/convert.ts';
import type { DiffOptions, ModelDiff } from './engines/diff.ts';
import type { Inspection, InspectOptions } from './engines/inspect.ts';
import type { ReadBandwidth } from './engines/read-bandwidth.ts';
import type { ListTensorsOptions, TensorListing } from './engines/tensors.ts';
import type { Trace } from './engines/trace.ts';
import type { TraceOptions } from './engines/trace-input.ts';
import type { ValidateOptions, Validation } from './engines/validate.ts';
import { AprError } from './errors.ts';
import type { ModelSource } from './formats/model-source.ts';
import type { PulledModel, PullOptions } from './hub/pull.ts';
import { createFileSink } from './platform/node/file-sink.ts';
import { nodePlatform } from './platform/node/platform.ts';
import type { Tokenizer } from './tokenizer/index.ts';
import type { Profile } from './trace/profile.ts';
import type { RecorderOptions, TraceRecorder } from './trace/recorder.ts';

/**
 * Loads a model file and returns an engine that runs it.
 *
 * @param source a GGUF or .apr file: its path, a URL (`file:`, `https:`), a Blob, or its bytes in memory; or "demo" for
 *   the model that comes with apr
 * @throws AprError; its `code` says what is wrong, its message what to do
 */
export async function createEngine(source: ModelSource, options: EngineOptions = {}): Promise<Engine> {
  const { createLocalEngine } = await import('./engines/local.ts');
  return createLocalEngine(nodePlatform, source, options);
}

/**
 * Writes a model file in another format, without touching its weights.
 *
 * @param source path of a GGUF or .apr file
 * @param target path to write; its ending, .gguf or .apr, says the format
 * @throws AprError; OVERWRITE when the target exists and `force` is not set
 */
export async function convertModel(source: string, target: string, options: ConvertOptions = {}): Promise<Conversion> {
  const { convertFile } = await import('./engines/convert.ts');
  return convertFile(nodePlatform, createFileSink, source, target, options);
}

/**
 * What a model file is, from its header alone.
 *
 * @param source path of a GGUF or .apr file
 * @throws AprError for a file whose header cannot be read
 */
export async function inspectModel(source: string, options: InspectOptions = {}): Promise<Inspection> {
  const { inspectFile } = await import('./engines/inspect.ts');
  return inspectFile(nodePlatform, source, options);
}

/**
 * The tensors of a model file: names, shapes, types, sizes, places, and statistics of their values where asked for.
 *
 * @param source path of a GGUF or .apr file
 * @throws AprError for a file whose header cannot be read
 */
export async function listTensors(source: string, options: ListTensorsOptions = {}): Promise<TensorListing> {
  const { listTensorsOf } = await import('./engines/tensors.ts');
  return listTensorsOf(nodePlatform, source, options);
}

/**
 * Blocks of a tensor with their bytes named and their values decoded: scales, offsets, quants.
 *
 * @param source path of a GGUF or .apr file
 * @throws AprError NOT_FOUND for the file or the tensor, USAGE for a block that it does not have
 */
export async function readBlocks(
  source: string,
  tensor: string,
  options: ReadBlocksOptions = {},
): Promise<BlockListing> {
  const { readBlocksOf } = await import('./engines/blocks.ts');
  return readBlocksOf(nodePlatform, source, tensor, options);
}

/**
 * Two model files side by side: metadata and tensors that differ, and how far.
 *
 * @param a path of a GGUF or .apr file
 * @param b path of another
 * @throws AprError for a file that cannot be read
 */
export async function diffModels(a: string, b: string, options: DiffOptions = {}): Promise<ModelDiff> {
  const { diffFiles } = await import('./engines/diff.ts');
  return diffFiles(nodePlatform, a, b, options);
}

/**
 * Holds a model file against the same contract as running it does, and reports every finding.
 *
 * @param source path of a GGUF or .apr file
 * @throws AprError for a file that cannot be read at all
 */
export async function validateModel(source: string, options: ValidateOptions = {}): Promise<Validation> {
  const { validateFile } = await import('./engines/validate.ts');
  return validateFile(nodePlatform, source, options);
}

/**
 * The tokenizer of a model file, or of a file that holds a vocabulary and no weights.
 *
 * @param source path of a GGUF or .apr file
 * @throws AprError
 */
export async function loadTokenizer(source: string): Promise<Tokenizer> {
  const { openTokenizer } = await import('./engines/tokenizer.ts');
  return openTokenizer(nodePlatform, source);
}

/**
 * Runs a prompt through a model and sums up every activation; `reference` holds it against another run.
 *
 * @param source path of a GGUF or .apr file
 * @throws AprError
 */
export async function traceModel(source: string, options: TraceOptions): Promise<Trace> {
  const { traceFile } = await import('./engines/trace.ts');
  const { createTensorFolder, openTensorFolder } = await import('./platform/node/tensor-folder.ts');
  return traceFile(nodePlatform, { create: createTensorFolder, open: openTensorFolder }, source, options);
}

/**
 * A recorder of runs: give it to `createEngine` and to a request as the observer, then let it `finish`.
 *
 * @throws AprError USAGE for steps that there are not
 */
export async function createTraceRecorder(options: RecorderOptions): Promise<TraceRecorder> {
  const { TraceRecorder } = await import('./trace/recorder.ts');
  return new TraceRecorder(options);
}

/** Folded stacks of a profile, for flame graphs. */
export async function flameStacks(profile: Profile): Promise<string> {
  return (await import('./trace/profile.ts')).foldedStacks(profile);
}

/**
 * How fast `threads` kernel threads of this machine read memory, measured now over more than its caches hold.
 * @returns undefined when there is too little free memory for it
 */
export async function measureReadBandwidth(threads: number): Promise<ReadBandwidth | undefined> {
  return (await import('./engines/read-bandwidth.ts')).readBandwidth(nodePlatform, threads);
}

/**
 * Fetches a model from the Hugging Face hub or any other address into the cache that other tools share, unless it is
 * there already, and says where; `createEngine` takes the `path`.
 *
 * @param reference `hf://org/repo[:quantisation][@revision]`, `hf://org/repo/file[@revision]`, `https://…` or a short
 *   name such as "qwen3-0.6b"
 * @throws AprError USAGE, NOT_FOUND, IO, BAD_FORMAT for what is not the file that the hub lists, ABORTED
 */
export async function pullModel(reference: string, options: PullOptions = {}): Promise<PulledModel> {
  const { pull, referenceOf } = await import('./hub/index.ts');
  const read = referenceOf(reference, options.settings);
  if (read !== undefined) return pull(read, options);
  throw new AprError(
    'USAGE',
    `${JSON.stringify(reference)} is no reference to a model, expected hf://ORG/REPO or https://…`,
  );
}

export type { TensorQuality } from './contract/index.ts';
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
  PassObserver,
  PassStep,
  PassTiming,
  SamplingOptions,
  Span,
  StopReason,
  Tap,
  TextPart,
  ThreadTimes,
  Timings,
  TokenEvent,
  TokenizeOptions,
  TokenLogprob,
} from './engine.ts';
export type { BlockField, BlockListing, ReadBlocksOptions, TensorBlock } from './engines/blocks.ts';
export type { Conversion, ConvertOptions } from './engines/convert.ts';
export type {
  DiffOptions,
  Distance,
  MetadataDifference,
  ModelDiff,
  TensorDifference,
  TensorSide,
} from './engines/diff.ts';
export type {
  Inspection,
  InspectOptions,
  TensorTypeCount,
  TokenEntry,
  TokenizerInspection,
} from './engines/inspect.ts';
export type { MemoryEstimate } from './engines/memory-estimate.ts';
export type { ReadBandwidth } from './engines/read-bandwidth.ts';
export type { ListTensorsOptions, TensorEntry, TensorListing, TensorStatistics } from './engines/tensors.ts';
export type {
  LogitsSummary,
  TopToken,
  Trace,
  TraceComparison,
  TraceGeneration,
} from './engines/trace.ts';
export type { TraceOptions } from './engines/trace-input.ts';
export type { QualityReport, ValidateOptions, Validation, ValidationFinding } from './engines/validate.ts';
export { AprError, type AprErrorCode } from './errors.ts';
export type { ModelSource } from './formats/model-source.ts';
export type { PulledModel, PullOptions, PullProgress } from './hub/pull.ts';
export { type Perplexity, type PerplexityOptions, type PerplexityProgress, perplexityOf } from './perplexity.ts';
export { createFileSink, type FileSink, type FileSinkOptions } from './platform/node/file-sink.ts';
export type { EncodeOptions, TextSegment, Tokenizer, TokenType } from './tokenizer/index.ts';
export type { ComparisonReport, PlaceComparison } from './trace/compare.ts';
export type { Counters as TraceCounters } from './trace/counters.ts';
export type { TraceEvent, TracePhase, TraceStep } from './trace/events.ts';
export type { ActivationSummary, LayerSummary } from './trace/layers.ts';
export type { OperationProfile, PhaseProfile, Profile, ThreadProfile } from './trace/profile.ts';
export type {
  RecorderOptions,
  Recording,
  TracedPass,
  TraceLevel,
  TraceRecorder,
  TraceRun,
} from './trace/recorder.ts';
export type { RouterSummary } from './trace/routing.ts';
export type { Statistics } from './trace/statistics.ts';
export type { DecodeStep } from './trace/steps.ts';
export type { Summary as TraceSummary } from './trace/summary.ts';
export type { Timeline } from './trace/timeline.ts';
export type { Verdict } from './trace/verdict.ts';
