/** `apr run SOURCE [PROMPT]` */

import { AprError } from '../../src/errors.ts';
import type { Engine, EngineOptions, FinalEvent, GenerateRequest } from '../../src/index.ts';
import type { Environment } from '../environment.ts';
import type { OptionValues } from '../options.ts';
import { refuseModel } from '../output-file.ts';
import { readPrompt } from '../prompt.ts';
import { createRenderer } from '../render/answer.ts';
import { describeEngine, showLoading, summarize } from '../render/diagnostics.ts';
import type { OutputForm } from '../render/error.ts';
import { visibleLine } from '../render/terminal.ts';
import { resolveSource, withAdvice } from '../source.ts';
import type { RUN_OPTIONS } from './run-options.ts';
import { openRunTrace } from './run-trace.ts';
import { traceRequest } from './run-trace-options.ts';

export type RunValues = OptionValues<typeof RUN_OPTIONS>;

/** @throws AprError for everything that goes wrong */
export async function run(
  positionals: readonly string[],
  values: RunValues,
  form: OutputForm,
  environment: Environment,
): Promise<void> {
  const { stdin, stdout, stderr } = environment;
  const [source, positional, ...surplus] = positionals;
  if (source === undefined) {
    throw new AprError(
      'USAGE',
      'SOURCE is missing, expected the path of a model file or "demo": apr run SOURCE [PROMPT]',
    );
  }
  if (surplus.length > 0) {
    const message = `found ${positionals.length} arguments, expected SOURCE and at most one PROMPT; put the prompt in quotes`;
    throw new AprError('USAGE', message, { found: positionals.length, expected: 2 });
  }
  checkTogether(values);
  const path = resolveSource(source);
  const options = engineOptions(values);
  if (environment.sourceExists?.(path) === false) {
    throw withAdvice(new AprError('NOT_FOUND', `${path}: no such file`, { path }), source);
  }
  const tracing = traceRequest(values);
  refuseModel('--trace-output', tracing?.output, path);
  const onWait = (): void => void (values.verbose && stderr.write('reading the prompt from standard input\n'));
  const prompt = await readPrompt({ positional, option: values.prompt, file: values.input, onWait }, stdin);

  const talkative = !values.quiet && (values.verbose === true || stderr.isTTY === true);
  const loading = talkative && stderr.isTTY === true ? showLoading(stderr, source) : undefined;
  // Before the model is loaded: a file that cannot be written is told at once.
  const trace = tracing && (await openRunTrace(tracing, stderr, values.quiet === true));
  const observed = trace === undefined ? {} : { observer: trace.observer };
  let engine: Engine;
  try {
    const createEngine = await environment.loadCreateEngine();
    engine = await createEngine(path, {
      ...options,
      ...observed,
      modelName: source,
      onWarning: ({ rule, message }) => {
        loading?.clear();
        stderr.write(`apr: ${visibleLine(`warning: ${message} (${rule})`)}\n`);
      },
      ...(loading === undefined ? {} : { onProgress: loading.update }),
    });
  } catch (error) {
    await trace?.discard();
    throw withAdvice(error, source);
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
    const renderer = createRenderer(form, stdout);
    const generation = { ...request(values, prompt, engine.info.hasChatTemplate), ...observed };
    for await (const event of engine.generate(generation)) {
      await renderer.event(event);
      if (event.event === 'final') final = event;
      if (event.event === 'final' && (values.benchmark ? form === 'text' : talkative)) {
        stderr.write(`${summarize(event)}\n`);
      }
    }
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
  if (values.logprobs !== undefined && !json) {
    throw new AprError('USAGE', '--logprobs shows up in JSON only; add --json or --stream', { option: '--logprobs' });
  }
}

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
