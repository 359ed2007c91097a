/** Executes a pass in plain TypeScript: f32 values, f64 sums, no threads. Slow, and easy to believe. */

import { AprError } from '../../errors.ts';
import { rowBytes } from '../../formats/ggml-types.ts';
import type { ModelFile, TensorInfo } from '../../formats/model-file.ts';
import type { Backend, PassInputs } from '../../graph/backend.ts';
import type { Activation, Command, PassRecord, Weight } from '../../graph/command.ts';
import type { PassObserver, PassStep, ThreadTimes } from '../../graph/observer.ts';
import { ropeTable } from '../../graph/rope.ts';
import { nextTurn } from '../../scheduling/turn.ts';
import { floatToHalf, halfToFloat } from '../half.ts';
import { allocationFailed, checkMemory } from '../memory.ts';
import { dequantize } from './dequantize.ts';
import { roundTrip } from './round-trip.ts';

/** This thread computes at most about so long before it lets others have a turn. */
const SLICE_MS = 30;

interface LoadedTensor {
  readonly info: TensorInfo;
  readonly bytes: DataView;
}

/** Keys and values of one layer and sequence, [context × headCountKv · headDim], rounded to f16 as the cache stores them. */
interface LayerCache {
  readonly k: Float32Array;
  readonly v: Float32Array;
}

export interface ReferenceOptions {
  readonly file: ModelFile;
  /** Names of the tensors to load. */
  readonly tensors: Iterable<string>;
  readonly contextLength: number;
  /** Sequences that the KV cache holds side by side. Default 1. */
  readonly sequences?: number;
  readonly blockCount: number;
  /** Values of one position's keys and values in a layer. */
  readonly keyWidth: number;
  readonly valueWidth: number;
  /** Told the bytes loaded so far. */
  readonly onLoaded?: (bytes: number) => void;
  readonly signal?: AbortSignal;
  readonly availableMemory: number | undefined;
}

export async function createReferenceBackend(options: ReferenceOptions): Promise<Backend> {
  const { file, contextLength, sequences = 1, keyWidth, valueWidth, blockCount } = options;
  const infos = [...options.tensors].map((name) => file.tensors.get(name) as TensorInfo);
  const weightBytes = infos.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const kvCacheBytes = sequences * blockCount * contextLength * (keyWidth + valueWidth) * 4;
  const totalBytes = weightBytes + kvCacheBytes;
  const need = { sourceName: file.source.name, totalBytes, kvCacheBytes, contextLength, sequences };
  checkMemory(need, options.availableMemory);
  const loaded = new Map<string, LoadedTensor>();
  let loadedBytes = 0;
  for (const info of infos) {
    if (options.signal?.aborted) throw new AprError('ABORTED', `loading ${file.source.name} was aborted`);
    const bytes = await file.source.read(info.offset, info.byteLength);
    loaded.set(info.name, { info, bytes: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength) });
    loadedBytes += info.byteLength;
    options.onLoaded?.(loadedBytes);
  }
  let caches: LayerCache[][];
  try {
    caches = Array.from({ length: blockCount }, () =>
      Array.from({ length: sequences }, () => ({
        k: new Float32Array(contextLength * keyWidth),
        v: new Float32Array(contextLength * valueWidth),
      })),
    );
  } catch (cause) {
    throw allocationFailed(kvCacheBytes, cause);
  }
  return new ReferenceBackend(loaded, caches);
}

function stepTimes(steps: number): ThreadTimes {
  return {
    woke: performance.now(),
    begin: new Float64Array(steps).fill(Number.NaN),
    end: new Float64Array(steps).fill(Number.NaN),
  };
}

class ReferenceBackend implements Backend {
  readonly name = 'reference';
  readonly kernel = 'scalar';
  readonly threads = 1;
  readonly kvCacheBytes: number;
  readonly maxRows = 64;
  readonly maxOutputs = 64;
  readonly observedRows = 64;
  #tensors: ReadonlyMap<string, LoadedTensor>;
  /** By layer and sequence. */
  #caches: readonly (readonly LayerCache[])[];
  readonly #steps = new WeakMap<PassRecord, readonly PassStep[]>();
  #disposed = false;

  constructor(tensors: ReadonlyMap<string, LoadedTensor>, caches: readonly (readonly LayerCache[])[]) {
    this.#tensors = tensors;
    this.#caches = caches;
    this.kvCacheBytes = caches.flat().reduce((sum, { k, v }) => sum + k.byteLength + v.byteLength, 0);
  }

  async rest(): Promise<void> {}

  async dispose(): Promise<void> {
    this.#disposed = true;
    this.#caches = [];
    this.#tensors = new Map();
  }

  async execute(
    record: PassRecord,
    inputs: PassInputs,
    observer?: PassObserver,
    signal?: AbortSignal,
  ): Promise<Float32Array> {
    const values = new Map<number, Float32Array>();
    const positions = Array.from(inputs.positions);
    const times = observer?.onPass && stepTimes(record.commands.length);
    let turn = Number.NEGATIVE_INFINITY;
    for (const [index, command] of record.commands.entries()) {
      if (performance.now() - turn > SLICE_MS) {
        await nextTurn();
        turn = performance.now();
      }
      if (this.#disposed) throw new AprError('DISPOSED', 'the engine was disposed');
      if (signal?.aborted) throw new AprError('ABORTED', 'the generation was aborted');
      if (times !== undefined) times.begin[index] = performance.now();
      this.#run(command, inputs, values);
      if (times !== undefined) times.end[index] = performance.now();
      if (observer?.wants === undefined || command.op === 'storeKv') continue;
      const { id, name, layer, width, rows } = command.dst;
      if (observer.wants(name, layer)) {
        const copy = (values.get(id) as Float32Array).slice();
        observer.onTap?.({ name, layer, shape: [width, rows], positions, values: copy });
      }
    }
    if (times !== undefined) {
      const end = performance.now();
      const steps = this.#stepsOf(record);
      const { woke } = times;
      const around = { start: woke, handed: woke, returned: end, end };
      observer?.onPass?.({ record, positions, steps, threads: [times], ...around });
    }
    return record.logits === undefined ? new Float32Array() : (values.get(record.logits.id) as Float32Array);
  }

  #stepsOf(record: PassRecord): readonly PassStep[] {
    const known = this.#steps.get(record);
    if (known !== undefined) return known;
    const steps = record.commands.map((command, index): PassStep => {
      const { op } = command;
      if (op !== 'embed' && op !== 'mulMat' && op !== 'mulMatId') return { command: index, kernel: op };
      const { type } = this.#tensors.get(command.weight.name)!.info;
      const rows = op === 'embed' ? command.dst.rows : command.weight.rows;
      const weight = { type: type.name, bytes: rows * rowBytes(type, command.weight.width) };
      return { command: index, kernel: op, weight: op === 'mulMatId' ? { ...weight, perExpert: true } : weight };
    });
    this.#steps.set(record, steps);
    return steps;
  }

  #run(command: Command, inputs: PassInputs, values: Map<number, Float32Array>): void {
    const read = (activation: Activation): Float32Array => values.get(activation.id) as Float32Array;
    const write = (activation: Activation): Float32Array => {
      const value = new Float32Array(activation.width * activation.rows);
      values.set(activation.id, value);
      return value;
    };
    switch (command.op) {
      case 'embed': {
        const out = write(command.dst);
        inputs.tokens.forEach((token, row) => {
          out.set(this.#weightRow(command.weight, 0, token), row * command.weight.width);
        });
        return;
      }
      case 'selectRows': {
        const { width } = command.x;
        const out = write(command.dst);
        const x = read(command.x);
        inputs.outputRows.forEach((from, to) => {
          out.set(x.subarray(from * width, (from + 1) * width), to * width);
        });
        return;
      }
      case 'rmsNorm':
        return rmsNorm(write(command.dst), read(command.x), this.#weightRow(command.weight, 0, 0), command.eps);
      case 'mulMat': {
        const pairs = Array.from({ length: command.x.rows }, (_, row) => [row, row] as const);
        return this.#multiply(write(command.dst), command.weight, 0, read(command.x), pairs);
      }
      case 'mulMatId':
        return this.#multiplyExperts(command, write(command.dst), read(command.x), read(command.routing));
      case 'topK':
        return topK(write(command.dst), read(command.logits), command.logits.width, command.slots, command.normalise);
      case 'combine': {
        const { slots } = command;
        const { width } = command.x;
        const out = write(command.dst);
        const x = read(command.x);
        const routing = read(command.routing);
        for (let i = 0; i < out.length; i++) {
          const row = Math.floor(i / width);
          let sum = 0;
          for (let s = 0; s < slots; s++) {
            sum += routing[row * 2 * slots + slots + s]! * x[(row * slots + s) * width + (i % width)]!;
          }
          out[i] = sum;
        }
        return;
      }
      case 'add': {
        const a = read(command.a);
        const b = read(command.b);
        const out = write(command.dst);
        for (let i = 0; i < out.length; i++) out[i] = a[i]! + b[i]!;
        return;
      }
      case 'addBias': {
        const bias = this.#weightRow(command.bias, 0, 0);
        const x = read(command.x);
        const out = write(command.dst);
        for (let i = 0; i < out.length; i++) out[i] = x[i]! + bias[i % bias.length]!;
        return;
      }
      case 'rope':
        return rope(write(command.dst), read(command.x), command, inputs.positions);
      case 'storeKv':
        return this.#storeKv(command.layer, read(command.k), read(command.v), inputs);
      case 'attention':
        return attention(write(command.dst), read(command.q), this.#caches[command.layer]!, command, inputs);
      case 'geglu': {
        const gate = read(command.gate);
        const up = read(command.up);
        const out = write(command.dst);
        for (let i = 0; i < out.length; i++) {
          const g = gate[i]!;
          out[i] = 0.5 * g * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (g + 0.044715 * g ** 3))) * up[i]!;
        }
        return;
      }
      case 'scale': {
        const x = read(command.x);
        const out = write(command.dst);
        for (let i = 0; i < out.length; i++) out[i] = x[i]! * Math.fround(command.factor);
        return;
      }
      case 'softCap': {
        const x = read(command.x);
        const out = write(command.dst);
        for (let i = 0; i < out.length; i++) out[i] = softCap(x[i]!, command.cap);
        return;
      }
      case 'sigmoidGate': {
        const { width } = command.x;
        const x = read(command.x);
        const gate = read(command.gate);
        const out = write(command.dst);
        for (let i = 0; i < out.length; i++) out[i] = x[i]! / (1 + Math.exp(-gate[Math.floor(i / width)]!));
        return;
      }
      case 'swiglu': {
        const gate = read(command.gate);
        const up = read(command.up);
        const out = write(command.dst);
        for (let i = 0; i < out.length; i++) out[i] = (gate[i]! / (1 + Math.exp(-gate[i]!))) * up[i]!;
        return;
      }
    }
  }

  /** Row of a weight as f32. */
  #weightRow(weight: Weight, expert: number, row: number): Float32Array {
    const { info, bytes } = this.#tensors.get(weight.name) as LoadedTensor;
    const out = new Float32Array(weight.width);
    const offset = (expert * weight.rows + weight.firstRow + row) * rowBytes(info.type, weight.width);
    dequantize(info.type, bytes, offset, weight.width, out);
    return out;
  }

  /** out[to] = x[from] · weight[expert]ᵀ for each pair. */
  #multiply(
    out: Float32Array,
    weight: Weight,
    expert: number,
    x: Float32Array,
    pairs: readonly (readonly [from: number, to: number])[],
  ): void {
    const { width, rows } = weight;
    const { info } = this.#tensors.get(weight.name) as LoadedTensor;
    const rounded = pairs.map(([from]) => {
      const row = x.slice(from * width, (from + 1) * width);
      roundTrip(info.type.name, row, 0, width);
      return row;
    });
    for (let r = 0; r < rows; r++) {
      const w = this.#weightRow(weight, expert, r);
      for (let p = 0; p < pairs.length; p++) {
        const row = rounded[p]!;
        let sum = 0;
        for (let i = 0; i < width; i++) sum += w[i]! * row[i]!;
        out[pairs[p]![1] * rows + r] = sum;
      }
    }
  }

  #multiplyExperts(
    command: Command & { op: 'mulMatId' },
    out: Float32Array,
    x: Float32Array,
    routing: Float32Array,
  ): void {
    const { slots, weight } = command;
    const ids = new Int32Array(routing.buffer);
    const byExpert = new Map<number, [number, number][]>();
    for (let row = 0; row < command.routing.rows; row++) {
      for (let slot = 0; slot < slots; slot++) {
        const expert = ids[row * 2 * slots + slot]!;
        const to = row * slots + slot;
        const pairs = byExpert.get(expert) ?? [];
        pairs.push([command.perSlot ? to : row, to]);
        byExpert.set(expert, pairs);
      }
    }
    for (const [expert, pairs] of byExpert) this.#multiply(out, weight, expert, x, pairs);
  }

  #storeKv(layer: number, k: Float32Array, v: Float32Array, { positions, sequences }: PassInputs): void {
    const kWidth = k.length / positions.length;
    const vWidth = v.length / positions.length;
    positions.forEach((position, row) => {
      const cache = this.#caches[layer]![sequences[row]!]!;
      for (let i = 0; i < kWidth; i++) cache.k[position * kWidth + i] = toHalf(k[row * kWidth + i]!);
      for (let i = 0; i < vWidth; i++) cache.v[position * vWidth + i] = toHalf(v[row * vWidth + i]!);
    });
  }
}

function softCap(x: number, cap: number): number {
  return cap * Math.tanh(x / cap);
}

function toHalf(value: number): number {
  return halfToFloat(floatToHalf(value));
}

function rmsNorm(out: Float32Array, x: Float32Array, weight: Float32Array, eps: number): void {
  const width = weight.length;
  for (let at = 0; at < x.length; at += width) {
    let squares = 0;
    for (let i = 0; i < width; i++) squares += x[at + i]! * x[at + i]!;
    const scale = 1 / Math.sqrt(squares / width + eps);
    for (let i = 0; i < width; i++) out[at + i] = x[at + i]! * scale * weight[i]!;
  }
}

function topK(out: Float32Array, logits: Float32Array, experts: number, slots: number, normalise: boolean): void {
  const ids = new Int32Array(out.buffer);
  for (let row = 0; row * experts < logits.length; row++) {
    const values = Array.from(logits.subarray(row * experts, (row + 1) * experts));
    const largest = Math.max(...values);
    const exps = values.map((value) => Math.exp(value - largest));
    const sum = exps.reduce((a, b) => a + b, 0);
    const chosen = exps
      .map((value, id) => ({ id, probability: value / sum }))
      .sort((a, b) => b.probability - a.probability || a.id - b.id)
      .slice(0, slots);
    // The smallest normal f16, as llama.cpp bounds it, so that a sum of zeros does not divide.
    const total = normalise
      ? Math.max(
          6.103515625e-5,
          chosen.reduce((a, b) => a + b.probability, 0),
        )
      : 1;
    chosen.forEach(({ id, probability }, slot) => {
      ids[row * 2 * slots + slot] = id;
      out[row * 2 * slots + slots + slot] = probability / total;
    });
  }
}

function rope(out: Float32Array, x: Float32Array, command: Command & { op: 'rope' }, positions: Int32Array): void {
  const { headDim, rope: parameters } = command;
  const { width } = command.x;
  const pairs = parameters.dims / 2;
  const table = new Float32Array(positions.length * parameters.dims);
  ropeTable(parameters, positions, table);
  out.set(x);
  const [step, distance] = parameters.pairing === 'interleaved' ? [2, 1] : [1, pairs];
  for (let head = 0; head < x.length; head += headDim) {
    const row = Math.floor(head / width);
    for (let i = 0; i < pairs; i++) {
      const cos = table[(row * pairs + i) * 2]!;
      const sin = table[(row * pairs + i) * 2 + 1]!;
      const a = head + i * step;
      const b = a + distance;
      out[a] = x[a]! * cos - x[b]! * sin;
      out[b] = x[a]! * sin + x[b]! * cos;
    }
  }
}

function attention(
  out: Float32Array,
  q: Float32Array,
  caches: readonly LayerCache[],
  command: Command & { op: 'attention' },
  { positions, sequences }: PassInputs,
): void {
  const { headCount, headCountKv, headDim, headDimV, scale, window, softCap: cap } = command;
  const group = headCount / headCountKv;
  positions.forEach((position, row) => {
    const cache = caches[sequences[row]!]!;
    const first = window === 0 ? 0 : Math.max(0, position + 1 - window);
    for (let head = 0; head < headCount; head++) {
      const kvHead = Math.floor(head / group);
      const query = (row * headCount + head) * headDim;
      // The cache is of binary16; so is what ggml multiplies it by, q and the normalised weights.
      const rounded = q.subarray(query, query + headDim).map(toHalf);
      const scores = new Float64Array(position + 1 - first);
      for (let p = first; p <= position; p++) {
        const key = (p * headCountKv + kvHead) * headDim;
        let sum = 0;
        for (let i = 0; i < headDim; i++) sum += rounded[i]! * cache.k[key + i]!;
        scores[p - first] = cap === 0 ? sum * scale : softCap(sum * scale, cap);
      }
      const largest = scores.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
      const powers = scores.map((score) => Math.exp(score - largest));
      const total = powers.reduce((a, b) => a + b, 0);
      const weights = powers.map((power) => toHalf(power / total));
      for (let i = 0; i < headDimV; i++) {
        let sum = 0;
        for (let p = first; p <= position; p++)
          sum += weights[p - first]! * cache.v[(p * headCountKv + kvHead) * headDimV + i]!;
        out[(row * headCount + head) * headDimV + i] = sum;
      }
    }
  });
}
