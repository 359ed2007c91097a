/** `apr profile SOURCE [PROMPT]` */

import { AprError } from '../../src/errors.ts';
import type {
  Engine,
  EngineOptions,
  FinalEvent,
  GenerateRequest,
  OperationProfile,
  PhaseProfile,
  Profile,
  ReadBandwidth,
  Recording,
  TraceRecorder,
} from '../../src/index.ts';
import type { Environment } from '../environment.ts';
import type { OptionValues } from '../options.ts';
import { openOutputFile, refuseModel, refuseSame } from '../output-file.ts';
import { readPrompt } from '../prompt.ts';
import { showLoading } from '../render/diagnostics.ts';
import type { OutputForm } from '../render/error.ts';
import { jsonLine } from '../render/json.ts';
import { profilePage } from '../render/profile-html.ts';
import { visibleLine, write } from '../render/terminal.ts';
import { profileTable } from '../render/trace-table.ts';
import { resolveSource, withAdvice } from '../source.ts';
import type { PROFILE_OPTIONS } from './profile-options.ts';
import { describeRun } from './run-trace.ts';

type ProfileValues = OptionValues<typeof PROFILE_OPTIONS>;

const DEFAULT_PROMPT = 'Explain in a few sentences how a river shapes the valley that it flows through, and why.';
const DEFAULT_TOKENS = 32;
const DEFAULT_WARMUP = 8;

/** @throws AprError for everything that goes wrong */
export async function profile(
  positionals: readonly string[],
  values: ProfileValues,
  form: OutputForm,
  { stdin, stdout, stderr, sourceExists, loadCreateEngine }: Environment,
): Promise<void> {
  const [source, positional, ...surplus] = positionals;
  if (source === undefined || surplus.length > 0) {
    const message = `found ${positionals.length} arguments, expected a model and at most one prompt in quotes: apr profile SOURCE [PROMPT]`;
    throw new AprError('USAGE', message, { found: positionals.length });
  }
  for (const [one, oneName, other, otherName] of [
    [values.quiet === true, '--quiet', values.verbose === true, '--verbose'],
    [values.kernel !== undefined, '--kernel', values.backend === 'reference', '--backend reference'],
  ] as const) {
    if (one && other) throw new AprError('USAGE', `${oneName} and ${otherName} exclude each other; give one of them`);
  }
  refuseSame({ '--flamegraph': values.flamegraph, '--html': values.html });
  const path = await resolveSource(source, values, { stderr });
  if (sourceExists?.(path) === false) {
    throw withAdvice(new AprError('NOT_FOUND', `${path}: no such file`, { path }), source);
  }
  for (const option of ['flamegraph', 'html'] as const) refuseModel(`--${option}`, values[option], path);
  const given = positional !== undefined || values.prompt !== undefined || values.input !== undefined;
  const prompt = given
    ? await readPrompt({ positional, option: values.prompt, file: values.input }, stdin)
    : DEFAULT_PROMPT;
  const stacks = values.flamegraph === undefined ? undefined : await openOutputFile(values.flamegraph);
  const page = values.html === undefined ? undefined : await openOutputFile(values.html);
  const loading = !values.quiet && stderr.isTTY === true ? showLoading(stderr, source) : undefined;
  try {
    const { createTraceRecorder, flameStacks, measureReadBandwidth } = await import('../../src/index.ts');
    const recorder = await createTraceRecorder({ level: 'basic', profile: true });
    const options: EngineOptions = { ...engineOptions(values), observer: recorder, modelName: source };
    if (loading !== undefined) options.onProgress = loading.update;
    options.onWarning = ({ rule, message }) => {
      loading?.clear();
      stderr.write(`apr: ${visibleLine(`warning: ${message} (${rule})`)}\n`);
    };
    let engine: Engine;
    try {
      engine = await (await loadCreateEngine())(path, options);
    } catch (error) {
      throw withAdvice(error, source);
    } finally {
      loading?.clear();
    }
    let recording: Recording;
    try {
      const final = await measured(engine, recorder, prompt, values);
      recording = recorder.finish(describeRun(engine.info, final));
    } finally {
      await engine.dispose();
    }
    for (const warning of recording.warnings) stderr.write(`apr: warning: ${visibleLine(warning)}\n`);
    const bandwidth = await measureReadBandwidth(engine.info.backend.threads);
    const result = recorder.profile(recording);
    if (stacks !== undefined) await stacks.commit(await flameStacks(result));
    const document = profileDocument(source, engine, recording, result, bandwidth);
    if (page !== undefined) {
      await page.commit(profilePage(document, recorder.timelines(), recorder.summary(recording).layers));
    }
    await write(stdout, form === 'json' ? jsonLine(document) : profileTable(result, bandwidth));
  } finally {
    await stacks?.discard();
    await page?.discard();
  }
}

function engineOptions(values: ProfileValues): EngineOptions {
  const options: EngineOptions = { backend: values.backend ?? 'auto' };
  if (values.threads !== undefined) options.threads = values.threads;
  if (values.kernel !== undefined) options.kernel = values.kernel;
  if (values['context-length'] !== undefined) options.contextLength = values['context-length'];
  if (values['no-selfcheck']) options.selfCheck = false;
  return options;
}

/** Warms up with other tokens, so that nothing of the measured prompt is in the cache, then measures. */
async function measured(
  engine: Engine,
  recorder: TraceRecorder,
  prompt: string,
  values: ProfileValues,
): Promise<FinalEvent> {
  const warmup = values.warmup ?? DEFAULT_WARMUP;
  const chat = values.raw !== true && engine.info.hasChatTemplate;
  const request: GenerateRequest = chat ? { messages: [{ role: 'user', content: prompt }] } : { prompt };
  if (warmup > 0) {
    const start = performance.now();
    const text = chat ? engine.applyChatTemplate(request.messages ?? []) : prompt;
    const reversed = engine.tokenize(text, { special: true }).reverse();
    for await (const _ of engine.generate({ prompt: reversed, maxTokens: warmup, ignoreEos: true }));
    recorder.onSpan({ name: 'warm_up', start, end: performance.now() });
  }
  const maxTokens = values['max-tokens'] ?? DEFAULT_TOKENS;
  for await (const event of engine.generate({ ...request, maxTokens, ignoreEos: true, observer: recorder })) {
    if (event.event === 'final') return event;
  }
  throw new AprError('INFERENCE', 'the generation ended without its final event');
}

/** What `--json` prints. Times in microseconds, rates in 10⁹ bytes a second, shares from 0 to 1. */
export interface ProfileDocument {
  readonly model: string;
  readonly architecture: string;
  readonly backend: Engine['info']['backend'];
  readonly prompt_tokens: number;
  readonly generated_tokens: number;
  readonly read_bandwidth: ReadBandwidth | null;
  readonly load: Profile['load'];
  readonly prefill: PhaseDocument;
  readonly decode: PhaseDocument;
  readonly threads: Profile['threads'];
  readonly counters: Recording['counters'];
  readonly warnings: readonly string[];
}

export interface PhaseDocument extends Omit<PhaseProfile, 'operations'> {
  /** Rate at which weights were read over the measured read bandwidth; null where that is not known. */
  readonly bandwidth_share: number | null;
  readonly operations: readonly (OperationProfile & { readonly bandwidth_share: number | null })[];
}

function profileDocument(
  source: string,
  { info }: Engine,
  { run, counters, warnings }: Recording,
  { load, prefill, decode, threads }: Profile,
  bandwidth: ReadBandwidth | undefined,
): ProfileDocument {
  const shareOf = (rate: number | null): number | null =>
    rate === null || bandwidth === undefined ? null : rate / bandwidth.gb_per_sec;
  const phase = (profile: PhaseProfile): PhaseDocument => {
    const { operations, ...totals } = profile;
    return {
      ...totals,
      bandwidth_share: shareOf(profile.gb_per_sec),
      operations: operations.map((operation) => ({ ...operation, bandwidth_share: shareOf(operation.gb_per_sec) })),
    };
  };
  return {
    model: source,
    architecture: info.architecture,
    backend: info.backend,
    prompt_tokens: run.outcome?.promptTokens ?? 0,
    generated_tokens: run.outcome?.generatedTokens ?? 0,
    read_bandwidth: bandwidth ?? null,
    load,
    prefill: phase(prefill),
    decode: phase(decode),
    threads,
    counters,
    warnings,
  };
}
