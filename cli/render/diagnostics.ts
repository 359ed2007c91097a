/** What goes to stderr beside the answer. */

import type { EngineInfo, FinalEvent, LoadProgress } from '../../src/index.ts';
import type { BatchOutcome } from '../batch/batch.ts';
import type { OutputStream } from '../environment.ts';
import { visibleLine } from './terminal.ts';

/** A load that is over sooner shows nothing: a line that flashes up tells nobody anything. */
const FIRST_UPDATE_MS = 150;
const UPDATE_INTERVAL_MS = 100;

export interface LoadingLine {
  readonly update: (progress: LoadProgress) => void;
  clear(): void;
}

/** One line on a terminal that says how far loading is. */
export function showLoading(stderr: OutputStream, source: string): LoadingLine {
  const start = performance.now();
  let next = start + FIRST_UPDATE_MS;
  let shown = false;
  return {
    update: ({ loadedBytes, totalBytes }) => {
      const now = performance.now();
      if (now < next) return;
      next = now + UPDATE_INTERVAL_MS;
      shown = true;
      const share = totalBytes > 0 ? Math.floor((100 * loadedBytes) / totalBytes) : 100;
      const line = `loading ${visibleLine(source)}: ${share} % of ${megabytes(totalBytes)}`;
      stderr.write(`\r\x1b[2K${line.slice(0, Math.max(20, (stderr.columns || 80) - 1))}`);
    },
    clear: () => {
      if (shown) stderr.write('\r\x1b[2K');
      shown = false;
    },
  };
}

/** What was loaded and how it runs, in one line. */
export function describeEngine(info: EngineInfo): string {
  const { backend } = info;
  const defaults = Object.entries(info.defaults).map(([key, value]) => `${key} ${value}`);
  const parts = [
    `${info.name}: ${info.architecture}, ${(info.parameterCount / 1e6).toPrecision(3)} M parameters`,
    `${megabytes(info.weightBytes)} weights, ${megabytes(info.kvCacheBytes)} KV cache for ${info.contextLength} positions`,
    `backend ${backend.ran}, ${backend.threads} ${backend.threads === 1 ? 'thread' : 'threads'}, ${backend.kernel}`,
    `loaded in ${Math.round(info.loadMs)} ms`,
    ...(defaults.length === 0 ? [] : [`missing in the file and assumed: ${defaults.join(', ')}`]),
  ];
  return visibleLine(parts.join('; '));
}

/** What a batch came to, in one line. */
export function summarizeBatch({ answers, failures, tokens, seconds }: BatchOutcome): string {
  return [
    `${answers} ${answers === 1 ? 'answer' : 'answers'}`,
    ...(failures === 0 ? [] : [`${failures} ${failures === 1 ? 'line' : 'lines'} failed`]),
    `${tokens} tokens in ${seconds.toFixed(1)} s`,
    `${(tokens / seconds).toFixed(1)} tok/s together`,
  ].join(', ');
}

/** Measured rates of one answer, in one line. */
export function summarize(event: FinalEvent): string {
  const { tokens_generated, prompt_tokens, cached_tokens, timings, stop_reason, max_tokens } = event;
  const prefilled = prompt_tokens.length - cached_tokens;
  const rate = (value: number): string => (value > 0 ? `${value.toFixed(1)} tok/s` : 'not measured');
  return [
    `${tokens_generated} ${tokens_generated === 1 ? 'token' : 'tokens'}`,
    `prefill of ${prefilled}: ${rate(timings.prefill_tok_per_sec)}`,
    `decode: ${rate(timings.decode_tok_per_sec)}`,
    `load: ${Math.round(timings.load_ms)} ms`,
    ...(stop_reason === 'length'
      ? [tokens_generated < max_tokens ? 'stopped: the context is full' : `stopped at -n ${max_tokens}`]
      : []),
  ].join(', ');
}

function megabytes(bytes: number): string {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(2)} GB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
