/** Measures this engine: MODEL THREADS PREFILL DECODE CONTEXT → one line of JSON. */

import { createEngine, type FinalEvent } from '../src/index.ts';
import { type ModelMeasurement, peakRssBytes, promptOf, readTask } from './measurement.ts';

const task = readTask(process.argv.slice(2));
const engine = await createEngine(task.model, { threads: task.threads, contextLength: task.context });

async function generate(prompt: number[], count: number): Promise<FinalEvent> {
  let final: FinalEvent | undefined;
  // One token comes from the prefill: `count` passes of decode make one more.
  for await (const event of engine.generate({ prompt, maxTokens: count + 1, ignoreEos: true })) {
    if (event.event === 'final') final = event;
  }
  if (final === undefined) throw new Error('the generation ended without a final event');
  return final;
}

// Lets the runtime's optimising compiler see every kernel; the reversed prompt shares no prefix with the measured one.
await generate(promptOf(task.prefill).reverse(), 2);
const { timings, cached_tokens } = await generate(promptOf(task.prefill), task.decode);
if (cached_tokens !== 0) throw new Error(`${cached_tokens} prompt tokens came from the cache and were not measured`);
const measurement: ModelMeasurement = {
  engine: 'apr',
  threads: engine.info.backend.threads,
  kernel: engine.info.backend.kernel,
  loadMs: engine.info.loadMs,
  prefillTokens: task.prefill,
  prefillTokPerSec: timings.prefill_tok_per_sec,
  decodeTokens: task.decode,
  decodeTokPerSec: timings.decode_tok_per_sec,
  peakRssBytes: peakRssBytes(),
  kvCacheBytes: engine.info.kvCacheBytes,
};
await engine.dispose();
process.stdout.write(`${JSON.stringify(measurement)}\n`);
