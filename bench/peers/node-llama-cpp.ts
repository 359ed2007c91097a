/**
 * Measures llama.cpp through node-llama-cpp on the CPU: MODEL THREADS PREFILL DECODE CONTEXT → one line of JSON.
 * Greedy sampling is part of both rates, as it is of ours; f16 KV cache and the package's own defaults otherwise.
 */

import { type ModelMeasurement, peakRssBytes, promptOf, readTask } from '../measurement.ts';
import { PEER_VERSION } from './install.ts';
import { loadLlama } from './llama-types.ts';

const task = readTask(process.argv.slice(2));
const start = performance.now();
const llama = await loadLlama(task.threads);
const model = await llama.loadModel({ modelPath: task.model, gpuLayers: 0 });
const context = await model.createContext({
  contextSize: task.context,
  batchSize: Math.max(task.prefill, 512),
  threads: task.threads,
});
const sequence = context.getSequence();
const loadMs = performance.now() - start;

async function generate(prompt: number[], count: number): Promise<{ prefillMs: number; decodeMs: number }> {
  await sequence.clearHistory();
  const began = performance.now();
  let prefilled = began;
  let tokens = 0;
  for await (const _ of sequence.evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
    if (tokens === 0) prefilled = performance.now();
    if (++tokens > count) break;
  }
  return { prefillMs: prefilled - began, decodeMs: performance.now() - prefilled };
}

// The file is mapped: the first passes read it from disk.
await generate(promptOf(task.prefill).reverse(), 2);
const { prefillMs, decodeMs } = await generate(promptOf(task.prefill), task.decode);
const measurement: ModelMeasurement = {
  engine: `node-llama-cpp ${PEER_VERSION}`,
  threads: task.threads,
  kernel: llama.systemInfo,
  loadMs,
  prefillTokens: task.prefill,
  prefillTokPerSec: (task.prefill * 1000) / prefillMs,
  decodeTokens: task.decode,
  decodeTokPerSec: (task.decode * 1000) / decodeMs,
  peakRssBytes: peakRssBytes(),
  kvCacheBytes: 0,
};
process.stdout.write(`${JSON.stringify(measurement)}\n`);
await llama.dispose();
