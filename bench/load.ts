/**
 * Load to ready against reading the file once: node bench/load.js [--model FILE] [--threads N] [--rounds N] [--json]
 *
 * Both in this process and in turn: reading with fs.readSync into a new SharedArrayBuffer, and an engine until it takes
 * requests. The file has been read before, so that it lies in the page cache as far as that holds it.
 */

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { createEngine } from '../src/index.ts';
import { CACHE } from './repository.ts';
import { type Spread, showSpread, spreadOf } from './statistics.ts';

export interface LoadTask {
  readonly model: string;
  readonly threads: number;
  readonly rounds: number;
}

export interface LoadMeasurement {
  readonly bytes: number;
  readonly threads: number;
  /** Milliseconds. */
  readonly read: Spread;
  readonly load: Spread;
  /** Median of load over that of read. */
  readonly ratio: number;
}

/** Bytes of one call of readSync. */
const PIECE = 16 << 20;

/** @throws AprError as createEngine does */
export async function measureLoad({ model, threads, rounds }: LoadTask): Promise<LoadMeasurement> {
  const reads: number[] = [];
  const loads: number[] = [];
  let bytes = 0;
  // The first round brings the file into memory and lets V8 compile, and does not count.
  for (let round = 0; round <= rounds; round++) {
    const start = performance.now();
    bytes = readOnce(model);
    const between = performance.now();
    const engine = await createEngine(model, { threads });
    const end = performance.now();
    await engine.dispose();
    if (round === 0) continue;
    reads.push(between - start);
    loads.push(end - between);
  }
  const [read, load] = [spreadOf(reads), spreadOf(loads)];
  return { bytes, threads, read, load, ratio: load.median / read.median };
}

function readOnce(path: string): number {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const target = new Uint8Array(new SharedArrayBuffer(size));
    let at = 0;
    while (at < size) {
      const read = readSync(file, target, at, Math.min(PIECE, size - at), at);
      if (read === 0) throw new Error(`${path} ended at byte ${at}, expected ${size}`);
      at += read;
    }
    return size;
  } finally {
    closeSync(file);
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      model: { type: 'string' },
      threads: { type: 'string', default: '2' },
      rounds: { type: 'string', default: '5' },
      json: { type: 'boolean', default: false },
    },
  });
  const [threads, rounds] = [Number(values.threads), Number(values.rounds)];
  if (![threads, rounds].every((value) => Number.isInteger(value) && value > 0)) {
    throw new RangeError('--threads and --rounds are whole numbers above 0');
  }
  const model = values.model ?? join(CACHE, 'models', 'qwen2.5-1.5b-q4_k_m.gguf');
  const found = await measureLoad({ model, threads, rounds });
  const text =
    `${Math.round(found.bytes / 1e6)} MB: read in ${showSpread(found.read, 0)} ms, ready in ` +
    `${showSpread(found.load, 0)} ms with ${threads} threads: ${found.ratio.toFixed(2)} times`;
  process.stdout.write(`${values.json ? JSON.stringify(found) : text}\n`);
}

if (import.meta.filename === process.argv[1]) await main();
