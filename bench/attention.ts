/**
 * Micro-benchmark of attention on one thread: node bench/attention.js [--build BUILD] [--heads N] [--kv-heads N]
 * [--width N] [--positions LIST]
 *
 * decode   one token at a position, in its three calls, over caches of several layers, so that keys and values come from
 *          memory: ns a position and layer, and G multiply-accumulates/s
 * prefill  128 tokens that end at the position
 *
 * The limit of the machine stands first: reading keys and values once.
 */

import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { type Build, createBench, floatBits, type KernelBench, randomFloats } from '../test/kernels/ops-fixtures.ts';

const LAYERS = 6;
const PREFILL = 128;

export interface AttentionShape {
  readonly headCount: number;
  readonly headCountKv: number;
  readonly headDim: number;
}

export interface AttentionMeasurement {
  readonly position: number;
  /** Milliseconds of one token and layer, and its parts. */
  readonly decodeMs: number;
  readonly scoresMs: number;
  readonly valuesMs: number;
  readonly mergeMs: number;
  /** Milliseconds of 128 tokens and one layer. */
  readonly prefillMs: number;
  /** Milliseconds of reading the keys and values of a layer. */
  readonly readMs: number;
}

/** Milliseconds of each of several calls that belong together: the fastest round of them. */
function fastest(calls: readonly ((layer: number) => void)[], seconds: number): number[] {
  const best = calls.map(() => Number.POSITIVE_INFINITY);
  const end = performance.now() + seconds * 1000;
  for (let round = 0; round < 3 || performance.now() < end; round++) {
    calls.forEach((call, i) => {
      const start = performance.now();
      call(round % LAYERS);
      best[i] = Math.min(best[i]!, performance.now() - start);
    });
  }
  return best;
}

export function measureAttention(
  bench: KernelBench,
  { headCount, headCountKv, headDim }: AttentionShape,
  positions: readonly number[],
): AttentionMeasurement[] {
  const context = Math.max(...positions) + 1;
  const scratch = bench.reserve(
    bench.call('attention_scratch_bytes', headDim, headDim, headCount / headCountKv, context),
  );
  const kBytes = bench.call('k_cache_bytes', context, headCountKv, headDim);
  const vBytes = bench.call('v_cache_bytes', context, headCountKv, headDim);
  const caches = Array.from({ length: LAYERS }, () => ({ k: bench.reserve(kBytes), v: bench.reserve(vBytes) }));
  const stored = bench.ints(Array.from({ length: context }, (_, i) => i));
  const sequences = bench.ints(new Int32Array(Math.max(context, PREFILL)));
  const width = headCountKv * headDim;
  // The same few rows again and again: filling is not what is measured.
  const rows = 256;
  const values = bench.floats(randomFloats(rows * width, 3));
  for (const { k, v } of caches) {
    for (let at = 0; at < context; at += rows) {
      const places = [stored + at * 4, sequences, headCountKv, headDim, headDim, context];
      bench.call('store_kv', 0, Math.min(rows, context - at), 0, values, values, k, v, ...places);
    }
  }
  const q = bench.floats(randomFloats(PREFILL * headCount * headDim, 7, 2));
  const dst = bench.reserve(PREFILL * headCount * headDim * 4);
  const partial = bench.reserve(bench.call('attention_partial_bytes', 1, headCount, context, headDim));
  const scale = floatBits(1 / Math.sqrt(headDim));
  const items = headCountKv * Math.ceil(context / bench.constant('ATTENTION_CHUNK'));
  const sizes = [headCount, headCountKv, headDim, headDim, context] as const;
  const place = bench.ints(new Int32Array(PREFILL));
  const places = (position: number, count: number): void =>
    new Int32Array(bench.memory.buffer, place, count).forEach((_, row, all) => {
      all[row] = position - count + 1 + row;
    });
  const scores = (layer: number): number =>
    bench.call(
      'attention_scores',
      0,
      items,
      scratch,
      partial,
      q,
      caches[layer]!.k,
      place,
      sequences,
      1,
      ...sizes,
      0,
      scale,
    );
  const combine = (layer: number): number =>
    bench.call('attention_values', 0, items, scratch, partial, caches[layer]!.v, place, sequences, 1, ...sizes, 0);
  const merge = (): number =>
    bench.call(
      'attention_merge',
      0,
      headCount,
      scratch,
      dst,
      partial,
      place,
      1,
      headCount,
      headCountKv,
      headDim,
      context,
      0,
    );
  const blocks = Math.ceil(PREFILL / bench.call('attention_rows', context, headCount / headCountKv));
  const whole = (layer: number): number => {
    const { k, v } = caches[layer]!;
    const args = [dst, q, k, v, place, sequences, PREFILL, ...sizes, scale, 0];
    return bench.call('attention', 0, headCountKv * blocks, scratch, ...args);
  };
  return positions.map((position) => {
    places(position, 1);
    // V8 compiles the kernels anew once they have run for a while.
    fastest([scores, combine, merge], 1.5);
    const [scoresMs, valuesMs, mergeMs] = fastest([scores, combine, merge], 1) as [number, number, number];
    places(position, Math.min(PREFILL, position + 1));
    const [prefillMs] = fastest([whole], 1.5) as [number];
    const share = (position + 1) / context;
    const [readMs] = fastest(
      [(layer) => readAll(bench, caches[layer]!.k, kBytes * share) + readAll(bench, caches[layer]!.v, vBytes * share)],
      0.3,
    ) as [number];
    const decodeMs = scoresMs + valuesMs + mergeMs;
    return { position, decodeMs, scoresMs, valuesMs, mergeMs, prefillMs, readMs };
  });
}

/** Reads an area as fast as memory gives it: a search for what is not there. */
function readAll(bench: KernelBench, pointer: number, bytes: number): number {
  return Buffer.from(bench.memory.buffer, pointer, Math.floor(bytes)).indexOf('\x01\x02\x03\x04\x05\x06\x07\x08');
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      build: { type: 'string' },
      heads: { type: 'string', default: '12' },
      'kv-heads': { type: 'string', default: '2' },
      width: { type: 'string', default: '128' },
      positions: { type: 'string', default: '4095,8191' },
    },
  });
  const shape = {
    headCount: Number(values.heads),
    headCountKv: Number(values['kv-heads']),
    headDim: Number(values.width),
  };
  const positions = values.positions.split(',').map(Number);
  const builds = values.build === undefined ? (['simd-plain', 'relaxed-plain'] as const) : [values.build as Build];
  for (const build of builds) {
    const bench = await createBench(build, 2400);
    if (bench === undefined) {
      console.log(`${build}: not on Node ${process.version}`);
      continue;
    }
    console.log(`${build}, Node ${process.version}: ${shape.headCount}/${shape.headCountKv} heads of ${shape.headDim}`);
    for (const found of measureAttention(bench, shape, positions)) {
      const macs = 2 * (found.position + 1) * shape.headCount * shape.headDim;
      console.log(
        `position ${found.position}: decode ${found.decodeMs.toFixed(3)} ms ` +
          `(${found.scoresMs.toFixed(3)} + ${found.valuesMs.toFixed(3)} + ${found.mergeMs.toFixed(3)}), ` +
          `${((found.decodeMs * 1e6) / (found.position + 1)).toFixed(0)} ns a position, ` +
          `${(macs / found.decodeMs / 1e6).toFixed(1)} G MAC/s; reading alone ${found.readMs.toFixed(3)} ms; ` +
          `prefill of ${PREFILL} ${found.prefillMs.toFixed(1)} ms, ` +
          `${((macs * PREFILL) / found.prefillMs / 1e6).toFixed(1)} G MAC/s`,
      );
    }
  }
}

if (import.meta.filename === process.argv[1]) await main();
