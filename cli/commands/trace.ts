/** `apr trace SOURCE [PROMPT]` */

import { AprError, EXIT_STATUS } from '../../src/errors.ts';
import type { BackendName, Trace, TraceOptions } from '../../src/index.ts';
import type { Environment } from '../environment.ts';
import type { OptionValues } from '../options.ts';
import { openOutputFile, refuseModel, refuseSame } from '../output-file.ts';
import { readPrompt } from '../prompt.ts';
import { showLoading } from '../render/diagnostics.ts';
import type { OutputForm } from '../render/error.ts';
import { jsonLine } from '../render/json.ts';
import { visibleLine, write } from '../render/terminal.ts';
import { traceLines } from '../render/trace.ts';
import { tracePage } from '../render/trace-html.ts';
import { isFolder, resolveSource, withAdvice } from '../source.ts';
import type { TRACE_OPTIONS } from './trace-options.ts';

type TraceValues = OptionValues<typeof TRACE_OPTIONS>;

/**
 * @returns status 0, or that of a broken contract for values that are not finite and for a divergence
 * @throws AprError for everything that goes wrong
 */
export async function trace(
  positionals: readonly string[],
  values: TraceValues,
  form: OutputForm,
  { stdin, stdout, stderr, sourceExists }: Environment,
): Promise<number> {
  const [source, positional, ...surplus] = positionals;
  if (source === undefined || surplus.length > 0) {
    const message = `found ${positionals.length} arguments, expected a model and at most one prompt in quotes: apr trace SOURCE [PROMPT]`;
    throw new AprError('USAGE', message, { found: positionals.length });
  }
  checkTogether(values);
  refuseSame({ '--html': values.html, '--save-tensors': values['save-tensors'] });
  const find = async (given: string): Promise<string> => {
    const path = await resolveSource(given, values, { stderr });
    if (sourceExists?.(path) !== false) return path;
    throw withAdvice(new AprError('NOT_FOUND', `${path}: no such file`, { path }), given);
  };
  const path = await find(source);
  const other = values.reference;
  // What follows the colon is checked with the rest; a folder holds saved activations, not a model.
  const asGiven = other?.startsWith('backend:') || (other !== undefined && isFolder(other));
  const reference = other === undefined || asGiven ? other : await find(other);
  refuseModel('--html', values.html, path, ...(reference === undefined ? [] : [reference]));
  const prompt = await readPrompt({ positional, option: values.prompt, file: values.input }, stdin);
  const page = values.html === undefined ? undefined : await openOutputFile(values.html);
  const loading = !values.quiet && stderr.isTTY === true ? showLoading(stderr, source) : undefined;
  try {
    const { traceModel } = await import('../../src/index.ts');
    let result: Trace;
    try {
      result = await traceModel(path, {
        ...optionsOf(values, prompt),
        modelName: source,
        onWarning: ({ rule, message }) => {
          loading?.clear();
          stderr.write(`apr: ${visibleLine(`warning: ${message} (${rule})`)}\n`);
        },
        ...(reference === undefined ? {} : { reference }),
        ...(loading === undefined ? {} : { onProgress: loading.update }),
      });
    } finally {
      loading?.clear();
    }
    if (values.reference !== undefined && result.comparison !== undefined) {
      result = { ...result, comparison: { ...result.comparison, reference: values.reference } };
    }
    if (page !== undefined) await page.commit(tracePage(result));
    if (form === 'json') await write(stdout, jsonLine(result));
    else for (const line of traceLines(result)) await write(stdout, `${visibleLine(line)}\n`);
    const sound = result.verdict.status !== 'not_finite' && !result.comparison?.first_divergence;
    return sound ? 0 : EXIT_STATUS.CONTRACT;
  } finally {
    await page?.discard();
  }
}

function checkTogether(values: TraceValues): void {
  const pairs: readonly (readonly [boolean, string, boolean, string])[] = [
    [values.chat === true, '--chat', values.raw === true, '--raw'],
    [values.system !== undefined, '--system', values.raw === true, '--raw'],
    [values.thinking === 'on', '--thinking on', values.raw === true, '--raw'],
    [values.quiet === true, '--quiet', values.verbose === true, '--verbose'],
    [values.kernel !== undefined, '--kernel', values.backend === 'reference', '--backend reference'],
  ];
  for (const [one, oneName, other, otherName] of pairs) {
    if (one && other) throw new AprError('USAGE', `${oneName} and ${otherName} exclude each other; give one of them`);
  }
  for (const option of ['threshold', 'max-l2'] as const) {
    if (values[option] === undefined || values.reference !== undefined) continue;
    throw new AprError('USAGE', `--${option} says when two runs differ; add --reference`, { option: `--${option}` });
  }
  if (values.stages !== undefined && values.reference === undefined && values['save-tensors'] === undefined) {
    const message = '--stages says what is saved and compared; add --save-tensors or --reference';
    throw new AprError('USAGE', message, { option: '--stages' });
  }
}

function optionsOf(values: TraceValues, prompt: string): TraceOptions {
  const given = {
    chat: values.chat === true ? true : values.raw === true ? false : undefined,
    system: values.system,
    thinking: values.thinking === 'on' ? true : undefined,
    layer: values.layer,
    payload: values.payload,
    tokens: values.tokens,
    maxTokens: values['max-tokens'],
    threshold: values.threshold,
    maxL2: values['max-l2'],
    saveTensors: values['save-tensors'],
    stages: values.stages?.split(',').map((name) => name.trim()),
    threads: values.threads,
    backend: values.backend as BackendName | undefined,
    kernel: values.kernel,
    contextLength: values['context-length'],
    selfCheck: values['no-selfcheck'] === true ? false : undefined,
    skipContract: values['skip-contract'],
  };
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  return { prompt, ...(Object.fromEntries(set) as Partial<TraceOptions>) };
}
