/**
 * What watching a run costs: node bench/tracing.js [--model FILE] [--threads N] [--tokens N] [--rounds N] [--json]
 *
 * One engine decodes the same tokens without an observer and with a recorder of each level, in turn.
 */

import { parseArgs } from 'node:util';
import { createEngine, createTraceRecorder } from '../src/index.ts';
import type { TraceLevel } from '../src/trace/recorder.ts';
import { type Spread, showSpread, spreadOf } from './statistics.ts';

const LEVELS = ['off', 'basic', 'layer', 'payload', 'chrome'] as const satisfies readonly ('off' | TraceLevel)[];

export interface TracingTask {
  /** A file, or "demo". */
  readonly model: string;
  readonly threads: number;
  /** Decoded each time. */
  readonly tokens: number;
  readonly rounds: number;
}

export interface TracingRow {
  readonly level: (typeof LEVELS)[number];
  /** Tokens/s. */
  readonly decode: Spread;
  /** Median, over rounds, of the time a token takes more than without an observer in the same round; 0.01 is 1 %. */
  readonly cost: number;
}

/** @throws AprError as createEngine does; Error when a level changes what is generated */
export async function measureTracing({ model, threads, tokens, rounds }: TracingTask): Promise<TracingRow[]> {
  const engine = await createEngine(model, { threads });
  try {
    const expected: number[] = [];
    const decode = async (level: (typeof LEVELS)[number]): Promise<number> => {
      const observer = level === 'off' ? undefined : await createTraceRecorder({ level });
      const ids: number[] = [];
      let first = 0;
      let last = 0;
      const request = { prompt: 'Once upon a time', maxTokens: tokens + 1, ignoreEos: true };
      for await (const event of engine.generate(observer === undefined ? request : { ...request, observer })) {
        if (event.event !== 'token') continue;
        last = performance.now();
        if (ids.length === 0) first = last;
        ids.push(event.token_id);
      }
      if (expected.length === 0) expected.push(...ids);
      if (ids.join() !== expected.join()) throw new Error(`level ${level} changed what was generated`);
      return (ids.length - 1) / ((last - first) / 1000);
    };
    for (const level of LEVELS) await decode(level); // V8 compiles
    const rates = LEVELS.map((): number[] => []);
    for (let round = 0; round < rounds; round++) {
      for (const [i, level] of LEVELS.entries()) rates[i]!.push(await decode(level));
    }
    return LEVELS.map((level, i) => ({
      level,
      decode: spreadOf(rates[i]!),
      cost: spreadOf(rates[i]!.map((rate, round) => rates[0]![round]! / rate - 1)).median,
    }));
  } finally {
    await engine.dispose();
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      model: { type: 'string', default: 'demo' },
      threads: { type: 'string', default: '1' },
      tokens: { type: 'string', default: '100' },
      rounds: { type: 'string', default: '9' },
      json: { type: 'boolean', default: false },
    },
  });
  const [threads, tokens, rounds] = [values.threads, values.tokens, values.rounds].map(Number) as [
    number,
    number,
    number,
  ];
  if (![threads, tokens, rounds].every((value) => Number.isInteger(value) && value > 0)) {
    throw new RangeError('--threads, --tokens and --rounds are whole numbers above 0');
  }
  const rows = await measureTracing({ model: values.model, threads, tokens, rounds });
  if (values.json) {
    process.stdout.write(`${JSON.stringify({ ...values, rows }, undefined, 2)}\n`);
    return;
  }
  for (const { level, decode, cost } of rows) {
    process.stdout.write(
      `${level.padEnd(8)} ${showSpread(decode)} tok/s, ${(cost * 100).toFixed(1)} % more time a token\n`,
    );
  }
}

if (import.meta.filename === process.argv[1]) await main();
