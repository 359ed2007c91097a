/** The page of wllama.ts: measures both engines in one page, in turn, on the same Blob, and posts what it found. */

import { createEngine, type FinalEvent, type RemoteEngine } from '../../src/web.ts';

export interface PageTask {
  /** Address of the model file. */
  readonly model: string;
  /** Address of wllama's module, and of its WebAssembly. */
  readonly wllama: string;
  readonly wllamaWasm: string;
  readonly threads: readonly number[];
  readonly prefill: number;
  readonly decode: number;
  readonly rounds: number;
}

export interface PageRates {
  readonly engine: 'apr' | 'wllama';
  readonly threads: number;
  /** Kernels of ours. */
  readonly kernel?: string;
  readonly prefillTokPerSec: number;
  readonly decodeTokPerSec: number;
  /** Of the prompt that was measured. */
  readonly promptTokens: number;
  readonly loadMs: number;
}

export type PageReport =
  | { readonly kind: 'rates'; readonly rates: PageRates }
  | { readonly kind: 'done'; readonly browser: string; readonly isolated: boolean }
  | { readonly kind: 'error'; readonly message: string };

/** What is used of wllama. */
interface Wllama {
  loadModel(blobs: Blob[], options: Readonly<Record<string, unknown>>): Promise<void>;
  createCompletion(options: Readonly<Record<string, unknown>>): Promise<{ timings?: WllamaTimings }>;
  getNumThreads(): number;
  exit(): Promise<void>;
}

/** As llama.cpp's server counts: `predicted_n` includes the token that the prompt's pass gave. */
interface WllamaTimings {
  readonly cache_n: number;
  readonly prompt_n: number;
  readonly prompt_ms: number;
  readonly predicted_n: number;
  readonly predicted_ms: number;
}

const SILENT = { debug() {}, log() {}, warn() {}, error: console.error };

/** A text, since wllama takes no ids, and what becomes of it. */
interface Prompt {
  readonly text: string;
  readonly tokens: number;
  /** Shares no prefix with it. */
  readonly other: string;
}

/** Ordinary words of the vocabulary: at least `length` tokens, and few more. */
async function promptOf(engine: RemoteEngine, length: number): Promise<Prompt> {
  let text = '';
  for (let i = 0; ; i++) {
    const tokens = await engine.tokenize(text);
    if (tokens.length >= length) {
      const other = await engine.detokenize([...tokens].reverse());
      return { text, tokens: tokens.length, other };
    }
    text += await engine.detokenize([300 + ((37 * i) % (engine.info.vocabularySize - 600))]);
  }
}

export async function measurePage(task: PageTask): Promise<void> {
  const post = (report: PageReport): Promise<unknown> =>
    fetch('/report', { method: 'POST', body: JSON.stringify(report) });
  try {
    const response = await fetch(task.model);
    if (!response.ok) throw new Error(`${task.model}: the server answered ${response.status}`);
    const blob = await response.blob();
    const asked = await createEngine(blob, { threads: 1, contextLength: 16 });
    const prompt = await promptOf(asked, task.prefill);
    await asked.dispose();
    for (let round = 0; round < task.rounds; round++) {
      for (const threads of task.threads) {
        // In turn, so that a busy minute hits both; who is first changes.
        const pair = [measureOurs, measureWllama];
        for (const measure of round % 2 === 0 ? pair : pair.reverse()) {
          await post({ kind: 'rates', rates: await measure(task, blob, prompt, threads) });
        }
      }
    }
    await post({ kind: 'done', browser: navigator.userAgent, isolated: crossOriginIsolated });
  } catch (error) {
    await post({ kind: 'error', message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}

type Measure = (task: PageTask, blob: Blob, prompt: Prompt, threads: number) => Promise<PageRates>;

const measureOurs: Measure = async ({ decode }, blob, { text, tokens, other }, threads) => {
  const engine = await createEngine(blob, { threads, contextLength: tokens + decode + 64 });
  const generate = async (prompt: string, count: number): Promise<FinalEvent> => {
    // One token comes from the prefill: `count` passes of decode make one more.
    for await (const event of engine.generate({ prompt, maxTokens: count + 1, ignoreEos: true })) {
      if (event.event === 'final') return event;
    }
    throw new Error('the generation ended without a final event');
  };
  // Lets the optimising compiler see every kernel.
  await generate(other, 2);
  const { timings, cached_tokens, prompt_tokens } = await generate(text, decode);
  if (cached_tokens !== 0 || prompt_tokens.length !== tokens) {
    throw new Error(
      `${prompt_tokens.length} prompt tokens, ${cached_tokens} of them cached, instead of ${tokens} and 0`,
    );
  }
  const { loadMs, backend } = engine.info;
  await engine.dispose();
  return {
    engine: 'apr',
    threads: backend.threads,
    kernel: backend.kernel,
    prefillTokPerSec: timings.prefill_tok_per_sec,
    decodeTokPerSec: timings.decode_tok_per_sec,
    promptTokens: tokens,
    loadMs,
  };
};

const measureWllama: Measure = async (task, blob, { text, tokens, other }, threads) => {
  const { decode } = task;
  const { Wllama } = (await import(task.wllama)) as {
    Wllama: new (paths: Readonly<Record<string, string>>, options: object) => Wllama;
  };
  const peer = new Wllama({ default: task.wllamaWasm }, { suppressNativeLog: true, logger: SILENT });
  const start = performance.now();
  await peer.loadModel([blob], { n_threads: threads, n_ctx: tokens + decode + 64, n_gpu_layers: 0 });
  const loadMs = performance.now() - start;
  const complete = async (prompt: string, count: number): Promise<WllamaTimings> => {
    const options = { prompt, max_tokens: count + 1, temperature: 0, ignore_eos: true, cache_prompt: false };
    const { timings } = await peer.createCompletion(options);
    if (timings === undefined) throw new Error('wllama told no timings');
    return timings;
  };
  // A part is enough: its prompts go through the same code as its tokens.
  await complete(other.slice(0, other.length >> 2), 2);
  const timings = await complete(text, decode);
  if (timings.cache_n !== 0 || timings.prompt_n !== tokens || timings.predicted_n !== decode + 1) {
    throw new Error(`wllama did not do what was asked for: ${JSON.stringify(timings)}`);
  }
  const ran = peer.getNumThreads();
  await peer.exit();
  return {
    engine: 'wllama',
    threads: ran,
    prefillTokPerSec: (1000 * timings.prompt_n) / timings.prompt_ms,
    decodeTokPerSec: (1000 * decode) / timings.predicted_ms,
    promptTokens: tokens,
    loadMs,
  };
};
