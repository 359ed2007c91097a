/** `apr run SOURCE [PROMPT]` */

import { AprError } from '../../src/errors.ts';
import type { ChatMessage, Engine, EngineOptions, FinalEvent, GenerateRequest } from '../../src/index.ts';
import { fittingSequences } from '../batch/fit.ts';
import type { Task } from '../batch/task.ts';
import type { Environment } from '../environment.ts';
import type { OptionValues } from '../options.ts';
import { refuseModel } from '../output-file.ts';
import { readPrompt } from '../prompt.ts';
import { createRenderer } from '../render/answer.ts';
import { describeEngine, showLoading, summarize, summarizeBatch } from '../render/diagnostics.ts';
import type { OutputForm } from '../render/error.ts';
import { visibleLine } from '../render/terminal.ts';
import { isFolder, resolveSource, SOURCE_EXPECTED, withAdvice } from '../source.ts';
import type { RUN_OPTIONS } from './run-options.ts';
import { openRunTrace } from './run-trace.ts';
import { traceRequest } from './run-trace-options.ts';

export type RunValues = OptionValues<typeof RUN_OPTIONS>;

/** Lines of a batch that are answered at a time. */
const PARALLEL = 8;

/**
 * @returns status 0; of a batch 1 when a line failed
 * @throws AprError for everything that goes wrong
 */
export async function run(
  positionals: readonly string[],
  values: RunValues,
  form: OutputForm,
  environment: Environment,
): Promise<number> {
  const { stdin, stdout, stderr } = environment;
  const batch = values['batch-jsonl'];
  const [source, positional, ...surplus] = positionals;
  if (source === undefined) {
    throw new AprError('USAGE', `SOURCE is missing, expected ${SOURCE_EXPECTED}: apr run SOURCE [PROMPT]`);
  }
  if (surplus.length > 0) {
    const message = `found ${positionals.length} arguments, expected SOURCE and at most one PROMPT; put the prompt in quotes`;
    throw new AprError('USAGE', message, { found: positionals.length, expected: 2 });
  }
  checkTogether(values);
  if (batch !== undefined) refuseBesideBatch(values, positional);
  const tracing = traceRequest(values);
  const options = engineOptions(values);
  const path = await resolveSource(source, values, { stderr });
  if (environment.sourceExists?.(path) === false) {
    throw withAdvice(new AprError('NOT_FOUND', `${path}: no such file`, { path }), source);
  }
  if (batch !== undefined && batch !== '-') {
    if (environment.sourceExists?.(batch) === false) {
      throw new AprError('NOT_FOUND', `--batch-jsonl ${batch}: no such file`, { path: batch });
    }
    if (isFolder(batch)) {
      throw new AprError('USAGE', `--batch-jsonl ${batch}: is a folder, expected a file`, { path: batch });
    }
  }
  refuseModel('--trace-output', tracing?.output, path);
  const onWait = (): void => void (values.verbose && stderr.write('reading the prompt from standard input\n'));
  const sources = { positional, option: values.prompt, file: values.input, onWait };
  const prompt = batch === undefined ? await readPrompt(sources, stdin) : '';

  const talkative = !values.quiet && (values.verbose === true || stderr.isTTY === true);
  const loading = talkative && stderr.isTTY === true ? showLoading(stderr, source) : undefined;
  // Before the model is loaded: a file that cannot be written is told at once.
  const trace = tracing && (await openRunTrace(tracing, stderr, values.quiet === true));
  const observed = trace === undefined ? {} : { observer: trace.observer };
  let engine: Engine;
  try {
    const createEngine = await environment.loadCreateEngine();
    const create = (wanted: EngineOptions): Promise<Engine> =>
      createEngine(path, {
        ...wanted,
        ...observed,
        modelName: source,
        onWarning: ({ rule, message }) => {
          loading?.clear();
          stderr.write(`apr: ${visibleLine(`warning: ${message} (${rule})`)}\n`);
        },
        ...(loading === undefined ? {} : { onProgress: loading.update }),
      });
    engine = await create(options).catch((error: unknown) => {
      const fitting = batch === undefined || values.parallel !== undefined ? undefined : fittingSequences(error);
      if (fitting === undefined) throw error;
      loading?.clear();
      if (!values.quiet) stderr.write(`apr: there is memory for ${fitting} of ${PARALLEL} lines at a time\n`);
      return create({ ...options, sequences: fitting });
    });
  } catch (error) {
    await trace?.discard();
    throw batch === undefined ? withAdvice(error, source) : withBatchAdvice(withAdvice(error, source));
  } finally {
    loading?.clear();
  }
  let final: FinalEvent | undefined;
  try {
    if (values.verbose) stderr.write(`${describeEngine(engine.info)}\n`);
    const { contextLength, trainedContextLength } = engine.info;
    if (talkative && contextLength > trainedContextLength) {
      stderr.write(
        `the context of ${contextLength} is longer than the ${trainedContextLength} that the model was trained on\n`,
      );
    }
    if (batch !== undefined) {
      const { LINE_FAILED, runBatch } = await import('../batch/batch.ts');
      await checkOnce(engine, values);
      const complete = (task: Task): GenerateRequest => completeTask(task, values, engine.info.hasChatTemplate);
      const outcome = await runBatch(engine, { file: batch, complete }, environment);
      if (talkative) stderr.write(`${summarizeBatch(outcome)}\n`);
      return outcome.failures === 0 ? 0 : LINE_FAILED;
    }
    const renderer = createRenderer(form, stdout);
    const generation = { ...request(values, prompt, engine.info.hasChatTemplate), ...observed };
    for await (const event of engine.generate(generation)) {
      await renderer.event(event);
      if (event.event === 'final') final = event;
      if (event.event === 'final' && (values.benchmark ? form === 'text' : talkative)) {
        stderr.write(`${summarize(event)}\n`);
      }
    }
    return 0;
  } catch (error) {
    trace?.end(engine.info, final, error);
    throw error;
  } finally {
    trace?.end(engine.info, final);
    await engine.dispose();
    await trace?.write();
  }
}

/** Options that exclude each other. */
function checkTogether(values: RunValues): void {
  const pairs: readonly (readonly [boolean, string, boolean, string])[] = [
    [values.chat === true, '--chat', values.raw === true, '--raw'],
    [values.system !== undefined, '--system', values.raw === true, '--raw'],
    [values.thinking === 'on', '--thinking on', values.raw === true, '--raw'],
    [values.quiet === true, '--quiet', values.verbose === true, '--verbose'],
    [values.gpu === true, '--gpu', values['no-gpu'] === true, '--no-gpu'],
    [values.json === true, '--json', values.format === 'text', '--format text'],
    [values.stream === true, '--stream', values.format === 'text', '--format text'],
    [values['no-gpu'] === true, '--no-gpu', isGpu(values.backend), `--backend ${values.backend}`],
    [
      values.gpu === true,
      '--gpu',
      values.backend !== undefined && !isGpu(values.backend),
      `--backend ${values.backend}`,
    ],
  ];
  for (const [one, oneName, other, otherName] of pairs) {
    if (one && other) throw new AprError('USAGE', `${oneName} and ${otherName} exclude each other; give one of them`);
  }
  const json = values.json === true || values.stream === true || values.format === 'json';
  if (values.parallel !== undefined && values['batch-jsonl'] === undefined) {
    throw new AprError('USAGE', '--parallel is for the lines of a batch; add --batch-jsonl FILE', {
      option: '--parallel',
    });
  }
  if (values.logprobs !== undefined && !json) {
    throw new AprError('USAGE', '--logprobs shows up in JSON only; add --json or --stream', { option: '--logprobs' });
  }
}

/** What a batch leaves no place for. @throws AprError USAGE */
function refuseBesideBatch(values: RunValues, positional: string | undefined): void {
  const given: readonly (readonly [boolean, string])[] = [
    [positional !== undefined, 'a PROMPT'],
    [values.prompt !== undefined, '-p'],
    [values.input !== undefined, '-i'],
    [values.stream === true, '--stream'],
    [values.format === 'text', '--format text'],
    [values.logprobs !== undefined, '--logprobs'],
    [values.benchmark === true, '--benchmark'],
    [traceRequest(values) !== undefined, 'a trace or --profile'],
  ];
  const beside = given.find(([is]) => is);
  if (beside === undefined) return;
  const message = `--batch-jsonl and ${beside[1]} exclude each other; what is asked stands in the lines of the file`;
  throw new AprError('USAGE', message, { option: '--batch-jsonl' });
}

function withBatchAdvice(error: unknown): unknown {
  if (!(error instanceof AprError) || error.code !== 'OUT_OF_MEMORY') return error;
  const message = `${error.message}; fewer lines at a time (--parallel) or a shorter context (--context-length) take less`;
  return new AprError('OUT_OF_MEMORY', message, error.details, { cause: error });
}

/** What the command line asks of every line and the model cannot do is told once. @throws AprError USAGE, TEMPLATE */
async function checkOnce(engine: Engine, values: RunValues): Promise<void> {
  const { messages, thinking } = request(values, 'x', engine.info.hasChatTemplate) as ChatOrPrompt;
  if (messages === undefined || (values.system === undefined && thinking !== true)) return;
  await engine.applyChatTemplate(messages, thinking === undefined ? {} : { thinking });
}

/** The request of a line: what it says goes before what the command line says. */
function completeTask(task: Task, values: RunValues, hasChatTemplate: boolean): GenerateRequest {
  const { prompt, messages, ...own } = task;
  const { messages: asked, ...rest } = request(values, prompt ?? '', hasChatTemplate) as ChatOrPrompt;
  if (messages === undefined) return { ...rest, ...(asked === undefined ? {} : { messages: asked }), ...own };
  if (asked === undefined) {
    const reason = hasChatTemplate ? '--raw leaves it out' : 'the model has none';
    throw new AprError('USAGE', `messages need a chat template, and ${reason}; give a prompt`);
  }
  const system = messages.some(({ role }) => role === 'system' || role === 'developer')
    ? []
    : asked.filter(({ role }) => role === 'system');
  return { ...rest, messages: [...system, ...messages], ...own };
}

type ChatOrPrompt = GenerateRequest & { readonly messages?: readonly ChatMessage[] };

function isGpu(backend: string | undefined): boolean {
  return backend === 'cuda' || backend === 'wgpu';
}

function engineOptions(values: RunValues): EngineOptions {
  if (values.gpu && !isGpu(values.backend)) {
    const message =
      '--gpu asks for a GPU backend, and none is present in this installation; use --backend cpu, or auto';
    throw new AprError('BACKEND_UNAVAILABLE', message, { option: '--gpu', requested: 'gpu' });
  }
  const backend = values.backend ?? 'auto';
  const options: EngineOptions = { backend: values['no-gpu'] && backend === 'auto' ? 'cpu' : backend };
  if (values.threads !== undefined) options.threads = values.threads;
  if (values['context-length'] !== undefined) options.contextLength = values['context-length'];
  if (values['no-selfcheck']) options.selfCheck = false;
  if (values['skip-contract']) options.skipContract = true;
  if (values['batch-jsonl'] !== undefined) options.sequences = values.parallel ?? PARALLEL;
  return options;
}

function request(values: RunValues, prompt: string, hasChatTemplate: boolean): GenerateRequest {
  const chat = values.chat === true || (values.raw !== true && hasChatTemplate);
  if (!chat && values.system !== undefined) {
    throw new AprError('USAGE', '--system needs a chat template, and the model has none; put it into the prompt');
  }
  if (!chat && values.thinking === 'on') {
    throw new AprError('USAGE', '--thinking on needs a chat template that knows thinking, and the model has none');
  }
  const system = values.system === undefined ? [] : [{ role: 'system', content: values.system }];
  const request: GenerateRequest = chat ? { messages: [...system, { role: 'user', content: prompt }] } : { prompt };
  const given = {
    thinking: values.thinking === 'on' ? true : undefined,
    maxTokens: values['max-tokens'],
    temperature: values.temperature,
    topK: values['top-k'],
    topP: values['top-p'],
    minP: values['min-p'],
    seed: values.seed,
    repeatPenalty: values['repeat-penalty'],
    repeatLastN: values['repeat-last-n'],
    stop: values.stop,
    ignoreEos: values['ignore-eos'],
    logprobs: values.logprobs,
  };
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  return { ...request, ...(Object.fromEntries(set) as Partial<GenerateRequest>) };
}
