/** A prompt's way through a model, looked at activation by activation and held against another run. */

import type { BackendInfo, Engine, EngineInfo, EngineOptions } from '../engine.ts';
import { AprError } from '../errors.ts';
import type { Platform } from '../platform/platform.ts';
import { logprobsOf } from '../sampling/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import { Comparison, type ComparisonReport } from '../trace/compare.ts';
import { LayerStatistics, type LayerSummary } from '../trace/layers.ts';
import { type ActivationRows, RowObserver, type RowSink } from '../trace/rows.ts';
import { isRouting, stageOf } from '../trace/stages.ts';
import { mergeStatistics, type Statistics } from '../trace/statistics.ts';
import { type DecodeStep, StepObserver } from '../trace/steps.ts';
import { type TensorFolder, TensorWriter } from '../trace/tensors.ts';
import { type Verdict, verdictOf } from '../trace/verdict.ts';
import { createLocalEngine } from './local.ts';
import { isChosen, readInput, type TraceInput, type TraceOptions } from './trace-input.ts';
import { openReference, type Reference, runWindow, type TensorFolders } from './trace-reference.ts';

export interface TopToken {
  readonly token_id: number;
  readonly text: string;
  readonly logit: number;
  readonly probability: number;
}

export interface LogitsSummary extends Statistics {
  readonly vocab_size: number;
  readonly l2_norm: number | null;
  /** Empty when a logit is not finite. */
  readonly top_k: readonly TopToken[];
}

export interface TraceComparison extends ComparisonReport {
  readonly reference: string;
}

export interface TraceGeneration {
  readonly text: string;
  readonly tokens: readonly number[];
  /** One for each token that went in again: the last one does not. */
  readonly steps: readonly DecodeStep[];
}

/** The document of `apr trace --json`. */
export interface Trace {
  readonly model: string;
  readonly name: string;
  readonly format: EngineInfo['format'];
  readonly architecture: string;
  readonly num_layers: number;
  readonly hidden_dim: number;
  readonly vocab_size: number;
  readonly backend: BackendInfo;
  /** As it was given; null when ids were. */
  readonly prompt: string | null;
  readonly encoded_tokens: readonly number[];
  /** The tokens that the figures are about. */
  readonly tokens: 'last' | 'all';
  readonly embedding: Statistics;
  readonly layers: readonly LayerSummary[];
  readonly final_norm: Statistics;
  readonly logits: LogitsSummary;
  readonly verdict: Verdict;
  readonly comparison?: TraceComparison;
  /** Null when the verdict left nothing to go on from. */
  readonly generation?: TraceGeneration | null;
  readonly saved?: { readonly folder: string; readonly files: number };
}

const DEFAULT_COSINE = 0.99;
const DEFAULT_RELATIVE_L2 = 0.05;
const TOP_TOKENS = 5;

/**
 * Runs the prompt through the model, on its one forward pass, and sums up what every activation holds.
 * @throws AprError USAGE for options and an empty prompt, CONTRACT for a reference of another shape, OVERWRITE, and
 *   what loading and running a model throw
 */
export async function traceFile(
  platform: Platform,
  folders: TensorFolders,
  source: string,
  options: TraceOptions,
): Promise<Trace> {
  const input = await readInput(platform, source, options);
  const folder = options.saveTensors === undefined ? undefined : await folders.create(options.saveTensors);
  const engines: Engine[] = [];
  const open = async (path: string, more: EngineOptions): Promise<Engine> => {
    const engine = await createLocalEngine(platform, path, { ...engineOptions(options), ...more });
    engines.push(engine);
    return engine;
  };
  try {
    const reference = await openReference(platform, folders, open, source, options, input);
    const engine = await open(source, { modelName: options.modelName ?? source });
    const trace = await traceWith(engine, options, input, reference, folder);
    await folder?.commit();
    return trace;
  } finally {
    await Promise.all(engines.map((engine) => engine.dispose()));
    await folder?.discard();
  }
}

async function traceWith(
  engine: Engine,
  options: TraceOptions,
  { ids, range, windows, tokenizer }: TraceInput,
  reference: Reference | undefined,
  folder: TensorFolder | undefined,
): Promise<Trace> {
  const { info } = engine;
  const statistics = new LayerStatistics();
  let anyChosen = false;
  const chosen = (rows: ActivationRows): boolean => {
    const is = isChosen(rows, options);
    anyChosen ||= is;
    return is;
  };
  const writer = folder && new TensorWriter(folder, range, chosen);
  const comparison =
    reference &&
    new Comparison(reference.tensors, {
      cosine: options.threshold ?? DEFAULT_COSINE,
      relativeL2: options.maxL2 ?? DEFAULT_RELATIVE_L2,
    });
  let logits = new Float32Array();
  const keepLogits = (rows: ActivationRows): void => {
    if (stageOf(rows.name)?.name === 'logits') logits = rows.values.slice();
  };
  const compare = (rows: ActivationRows): void => {
    if (chosen(rows)) comparison?.take(rows);
    else if (isRouting(rows)) comparison?.align(rows);
  };
  const sinks: RowSink[] = [statistics, { take: keepLogits }, { take: compare }, ...(writer ? [writer] : [])];
  const observer = new RowObserver(range, sinks);
  for (const window of windows) {
    await reference?.advance(window);
    await runWindow(engine, ids, window, observer, options.signal);
  }
  if (!anyChosen) {
    const message = `${info.model}: ${info.architecture} computes none of the chosen stages, ${options.stages?.join(', ')}`;
    throw new AprError('USAGE', message, { option: 'stages' });
  }
  writer?.manifest({
    model: info.model,
    architecture: info.architecture,
    encoded_tokens: ids,
    first_position: range.first,
  });
  const activations = statistics.activations();
  const verdict = verdictOf(activations);
  const generation =
    (options.maxTokens ?? 0) === 0 ? {} : { generation: await generate(engine, ids, options, verdict) };
  const layers = statistics.layers(options.payload === true || options.layer !== undefined);
  return {
    model: info.model,
    name: info.name,
    format: info.format,
    architecture: info.architecture,
    num_layers: info.layerCount,
    hidden_dim: info.embeddingLength,
    vocab_size: info.vocabularySize,
    backend: info.backend,
    prompt: typeof options.prompt === 'string' ? options.prompt : null,
    encoded_tokens: ids,
    tokens: options.tokens ?? 'last',
    embedding: statistics.outer('embedding') ?? mergeStatistics([]),
    layers: layers.filter(({ layer_idx }) => options.layer === undefined || layer_idx === options.layer),
    final_norm: statistics.outer('final_norm') ?? mergeStatistics([]),
    logits: summarizeLogits(logits, statistics.outer('logits') ?? mergeStatistics([]), tokenizer),
    verdict,
    ...(comparison === undefined ? {} : { comparison: { reference: options.reference ?? '', ...comparison.report() } }),
    ...generation,
    ...(writer === undefined ? {} : { saved: { folder: options.saveTensors ?? '', files: writer.files } }),
  };
}

function engineOptions(options: TraceOptions): EngineOptions {
  const { backend, threads, contextLength, kernel, selfCheck, skipContract, onWarning, onProgress, signal } = options;
  return {
    ...(backend === undefined ? {} : { backend }),
    ...(threads === undefined ? {} : { threads }),
    ...(contextLength === undefined ? {} : { contextLength }),
    ...(kernel === undefined ? {} : { kernel }),
    ...(selfCheck === undefined ? {} : { selfCheck }),
    ...(skipContract === undefined ? {} : { skipContract }),
    ...(onWarning === undefined ? {} : { onWarning }),
    ...(onProgress === undefined ? {} : { onProgress }),
    ...(signal === undefined ? {} : { signal }),
  };
}

async function generate(
  engine: Engine,
  ids: readonly number[],
  { maxTokens = 0, signal }: TraceOptions,
  verdict: Verdict,
): Promise<TraceGeneration | null> {
  if (verdict.status === 'not_finite') return null;
  const observer = new StepObserver(ids.length - 1);
  const request = { prompt: ids, maxTokens, observer, ...(signal === undefined ? {} : { signal }) };
  for await (const event of engine.generate(request)) {
    if (event.event === 'final') return { text: event.text, tokens: event.tokens, steps: observer.steps };
  }
  return null;
}

function summarizeLogits(logits: Float32Array, statistics: Statistics, tokenizer: Tokenizer): LogitsSummary {
  const finite = statistics.nan_count + statistics.inf_count === 0;
  const top = finite && logits.length > 0 ? logprobsOf(logits, 0, TOP_TOKENS).top : [];
  return {
    vocab_size: logits.length,
    l2_norm: statistics.l2,
    top_k: top.map(({ id, logprob }) => ({
      token_id: id,
      text: tokenizer.tokenText(id),
      logit: logits[id] as number,
      probability: Math.exp(logprob),
    })),
    ...statistics,
  };
}
