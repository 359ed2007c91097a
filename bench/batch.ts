/**
 * What decoding several sequences together gains over one alone: node bench/batch.js [--model FILE] [--sequences N]
 * [--prefill N] [--decode N] [--threads N] [--rounds N] [--kernel simd|relaxed] [--json]
 *
 * One engine, both measured in turn in the same run, so that a busy minute hits both. The ids are compared: what shares
 * passes must answer as it does alone.
 */

import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { createEngine, type Engine } from '../src/index.ts';
import { CACHE } from './repository.ts';
import { type Spread, showSpread, spreadOf } from './statistics.ts';

export interface BatchTask {
  readonly model: string;
  /** Requests that run together. */
  readonly sequences: number;
  /** Prompt tokens of each. */
  readonly prefill: number;
  /** Decode passes of each. */
  readonly decode: number;
  readonly threads: number;
  /** How often both are measured, in turn. */
  readonly rounds: number;
  readonly kernel?: 'simd' | 'relaxed';
}

export interface BatchMeasurement {
  readonly kernel: string;
  readonly threads: number;
  readonly sequences: number;
  readonly prefill: number;
  readonly decode: number;
  /** Decoded tokens/s of one request alone. */
  readonly alone: Spread;
  /** Decoded tokens/s of all requests together. */
  readonly together: Spread;
  /** Median of together over that of alone. */
  readonly ratio: number;
  /** The same of the fastest rounds: what is left when other processes have the cores now and then. */
  readonly ratioOfBest: number;
}

interface Decoded {
  readonly ids: readonly number[];
  /** When the first token and the last one came, ms. */
  readonly first: number;
  readonly last: number;
}

/** @throws AprError as createEngine does; Error when an answer differs from what it is alone */
export async function measureBatch(task: BatchTask): Promise<BatchMeasurement> {
  const { model, sequences, prefill, decode, threads, rounds, kernel } = task;
  const engine = await createEngine(model, {
    threads,
    sequences,
    contextLength: prefill + decode + 1,
    ...(kernel === undefined ? {} : { kernel }),
  });
  try {
    const prompts = Array.from({ length: sequences }, (_, index) =>
      promptOf(prefill, index, engine.info.vocabularySize),
    );
    const alone: number[] = [];
    const together: number[] = [];
    // The first round lets the runtime's optimising compiler see every kernel, and does not count.
    for (let round = 0; round <= rounds; round++) {
      const index = round % sequences;
      const one = await decodeAll(engine, [prompts[index]!], decode);
      const all = await decodeAll(engine, prompts, decode);
      const [found, expected] = [all.answers[index]!.ids, one.answers[0]!.ids];
      if (found.join() !== expected.join()) {
        throw new Error(`request ${index} is answered ${found.join(' ')}, alone ${expected.join(' ')}`);
      }
      if (round === 0) continue;
      alone.push(one.rate);
      together.push(all.rate);
    }
    const [one, all] = [spreadOf(alone), spreadOf(together)];
    const { backend } = engine.info;
    return {
      kernel: backend.kernel,
      threads: backend.threads,
      sequences,
      prefill,
      decode,
      alone: one,
      together: all,
      ratio: all.median / one.median,
      ratioOfBest: all.most / one.most,
    };
  } finally {
    await engine.dispose();
  }
}

/** Runs the requests together; tokens/s from when all have their first token to when the last one is done. */
async function decodeAll(engine: Engine, prompts: readonly number[][], decode: number) {
  const answers = await Promise.all(prompts.map((prompt) => decodeOne(engine, prompt, decode)));
  const start = Math.max(...answers.map(({ first }) => first));
  const end = Math.max(...answers.map(({ last }) => last));
  // Prompts end in different passes: what was decoded before the last one did is not counted.
  const tokens = answers.reduce((sum, { times }) => sum + times.filter((time) => time > start).length, 0);
  return { answers, rate: (1000 * tokens) / (end - start) };
}

async function decodeOne(
  engine: Engine,
  prompt: readonly number[],
  decode: number,
): Promise<Decoded & { readonly times: readonly number[] }> {
  const ids: number[] = [];
  const times: number[] = [];
  // The first token comes out of the prompt's pass.
  for await (const event of engine.generate({ prompt, maxTokens: decode + 1, ignoreEos: true })) {
    if (event.event !== 'token') continue;
    ids.push(event.token_id);
    times.push(performance.now());
  }
  return { ids, times, first: times[0]!, last: times.at(-1)! };
}

/** Ordinary tokens, others for each request, so that no prompt finds its beginning in the cache of another. */
function promptOf(length: number, index: number, vocabularySize: number): number[] {
  return Array.from({ length }, (_, i) => (1000 + 37 * i + 4099 * (index + 1)) % vocabularySize);
}

export function showBatch(found: BatchMeasurement): string {
  return (
    `${found.kernel}, ${found.threads} threads: ${showSpread(found.alone)} tok/s decoded alone, ` +
    `${showSpread(found.together)} by ${found.sequences} sequences together: ratio ${found.ratio.toFixed(2)}, ` +
    `of the fastest rounds ${found.ratioOfBest.toFixed(2)}`
  );
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      model: { type: 'string' },
      sequences: { type: 'string', default: '8' },
      prefill: { type: 'string', default: '16' },
      decode: { type: 'string', default: '32' },
      threads: { type: 'string', default: '2' },
      rounds: { type: 'string', default: '3' },
      kernel: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  const { kernel } = values;
  if (kernel !== undefined && kernel !== 'simd' && kernel !== 'relaxed') {
    throw new RangeError(`--kernel ${kernel}: expected simd or relaxed`);
  }
  const numbers = [values.sequences, values.prefill, values.decode, values.threads, values.rounds].map(Number);
  if (!numbers.every((value) => Number.isInteger(value) && value > 0)) {
    throw new RangeError('--sequences, --prefill, --decode, --threads and --rounds are whole numbers above 0');
  }
  const [sequences, prefill, decode, threads, rounds] = numbers as [number, number, number, number, number];
  const found = await measureBatch({
    model: values.model ?? join(CACHE, 'models', 'qwen2.5-1.5b-q4_k_m.gguf'),
    sequences,
    prefill,
    decode,
    threads,
    rounds,
    ...(kernel === undefined ? {} : { kernel }),
  });
  process.stdout.write(`${values.json ? JSON.stringify(found) : showBatch(found)}\n`);
}

if (import.meta.filename === process.argv[1]) await main();
