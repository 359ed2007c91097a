/** `apr eval SOURCE --text FILE` */

import { readFile } from 'node:fs/promises';
import { AprError } from '../../src/errors.ts';
import type { BackendName, EngineOptions } from '../../src/index.ts';
import type { Environment } from '../environment.ts';
import type { OptionValues } from '../options.ts';
import { decodeText } from '../prompt.ts';
import type { OutputForm } from '../render/error.ts';
import { jsonLine } from '../render/json.ts';
import { write } from '../render/terminal.ts';
import { resolveSource } from '../source.ts';
import type { EVAL_OPTIONS } from './eval-options.ts';

const DEFAULT_WINDOW = 512;

/** @throws AprError for everything that goes wrong */
export async function evaluate(
  positionals: readonly string[],
  values: OptionValues<typeof EVAL_OPTIONS>,
  form: OutputForm,
  { stdout, stderr, loadCreateEngine }: Environment,
): Promise<void> {
  const [source, ...surplus] = positionals;
  if (source === undefined || surplus.length > 0) {
    const message = `found ${positionals.length} arguments, expected the path of a model: apr eval SOURCE --text FILE`;
    throw new AprError('USAGE', message, { found: positionals.length, expected: 1 });
  }
  if (values.text === undefined) {
    throw new AprError('USAGE', '--text is missing, expected the file to score', { option: '--text' });
  }
  const window = values['context-length'] ?? DEFAULT_WINDOW;
  if (window % 2 !== 0) {
    const message = `--context-length is ${window}, expected an even number: half of a window is context, half is scored`;
    throw new AprError('USAGE', message, { option: '--context-length', found: window });
  }
  const text = await readText(values.text);
  const { perplexityOf } = await import('../../src/index.ts');
  const createEngine = await loadCreateEngine();
  const options: EngineOptions = {
    modelName: source,
    contextLength: window,
    backend: (values.backend ?? 'auto') as BackendName,
  };
  if (values.threads !== undefined) options.threads = values.threads;
  const engine = await createEngine(await resolveSource(source, values, { stderr }), options);
  try {
    const progress = !values.quiet && stderr.isTTY === true;
    const result = await perplexityOf(engine, text, {
      window,
      onWindow: ({ windows, totalWindows, perplexity }) => {
        if (progress) stderr.write(`\r${windows} of ${totalWindows} windows, perplexity ${perplexity.toFixed(4)}`);
      },
    });
    if (progress) stderr.write('\r\u001b[K');
    const { backend, model } = engine.info;
    if (form === 'json') {
      const document = {
        model,
        text: values.text,
        context_length: window,
        perplexity: result.perplexity,
        nats_per_token: result.natsPerToken,
        scored_tokens: result.scoredTokens,
        evaluated_tokens: result.evaluatedTokens,
        windows: result.windows,
        elapsed_ms: result.elapsedMs,
        tok_per_sec: result.tokensPerSecond,
        backend,
      };
      await write(stdout, jsonLine(document));
      return;
    }
    await write(
      stdout,
      `perplexity ${result.perplexity.toFixed(4)} (${result.natsPerToken.toFixed(5)} nats/token over ` +
        `${result.scoredTokens} tokens in ${result.windows} windows of ${window}, ` +
        `${result.tokensPerSecond.toFixed(1)} tok/s)\n`,
    );
  } finally {
    await engine.dispose();
  }
}

async function readText(path: string): Promise<string> {
  let bytes: Uint8Array;
  try {
    bytes = await readFile(path);
  } catch (cause) {
    const missing = (cause as { code?: string }).code === 'ENOENT';
    const reason = cause instanceof Error ? cause.message : String(cause);
    const message = missing ? `${path}: no such file` : `${path}: cannot be read: ${reason}`;
    throw new AprError(missing ? 'NOT_FOUND' : 'IO', message, { path }, { cause });
  }
  return decodeText(bytes, path);
}
