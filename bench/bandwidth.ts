/**
 * How much of the memory bandwidth that this machine gives to WebAssembly decoding moves: node bench/bandwidth.js
 * [--model FILE] [--threads N] [--rounds N] [--json]
 *
 * Both in this process and in turn: bytes of weights a token times tokens a second, and the same threads reading 256 MB.
 */

import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createEngine, listTensors, measureReadBandwidth } from '../src/index.ts';
import { CACHE } from './repository.ts';
import { type Spread, showSpread, spreadOf } from './statistics.ts';

export interface BandwidthMeasurement {
  readonly threads: number;
  /** Of the weights that a token needs. */
  readonly bytesPerToken: number;
  /** GB/s that decoding moves, and that reading reaches. */
  readonly decode: Spread;
  readonly read: Spread;
  /** Median of decode over that of read. */
  readonly ratio: number;
}

const DECODE = 32;

/** @throws AprError as createEngine does; Error where the bandwidth cannot be measured */
export async function measureBandwidth(model: string, threads: number, rounds: number): Promise<BandwidthMeasurement> {
  const { tensors } = await listTensors(model);
  // An embedding matrix of its own is not read: a token needs one row of it.
  const own = tensors.some(({ name }) => name === 'output.weight');
  const read = tensors.filter(({ name }) => !(own && name === 'token_embd.weight'));
  const bytesPerToken = read.reduce((sum, { size }) => sum + size, 0);
  const decodes: number[] = [];
  const reads: number[] = [];
  const engine = await createEngine(model, { threads, contextLength: 4 * DECODE });
  try {
    for (let round = 0; round <= rounds; round++) {
      const bandwidth = await measureReadBandwidth(threads);
      if (bandwidth === undefined) throw new Error('there is too little memory to measure its bandwidth');
      let rate = 0;
      for await (const event of engine.generate({ prompt: 'Hello', maxTokens: DECODE, ignoreEos: true })) {
        if (event.event === 'final') rate = event.tok_per_sec;
      }
      // V8 compiles during the first round.
      if (round === 0) continue;
      reads.push(bandwidth.gb_per_sec);
      decodes.push((rate * bytesPerToken) / 1e9);
    }
  } finally {
    await engine.dispose();
  }
  const [moved, possible] = [spreadOf(decodes), spreadOf(reads)];
  return { threads, bytesPerToken, decode: moved, read: possible, ratio: moved.median / possible.median };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      model: { type: 'string' },
      threads: { type: 'string', default: '2' },
      rounds: { type: 'string', default: '3' },
      json: { type: 'boolean', default: false },
    },
  });
  const [threads, rounds] = [Number(values.threads), Number(values.rounds)];
  if (![threads, rounds].every((value) => Number.isInteger(value) && value > 0)) {
    throw new RangeError('--threads and --rounds are whole numbers above 0');
  }
  const model = values.model ?? join(CACHE, 'models', 'qwen2.5-1.5b-q4_k_m.gguf');
  const found = await measureBandwidth(model, threads, rounds);
  const text =
    `${threads} threads: decoding moves ${showSpread(found.decode)} GB/s of the ${showSpread(found.read)} that ` +
    `reading reaches: ${(100 * found.ratio).toFixed(0)} %`;
  process.stdout.write(`${values.json ? JSON.stringify(found) : text}\n`);
}

if (import.meta.filename === process.argv[1]) await main();
