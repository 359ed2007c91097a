/** What architectures with a way of their own read from their files. llama.cpp's values on whole models: test/golden. */

import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { AprError } from '../../src/errors.ts';
import type { Command, Weight } from '../../src/graph/command.ts';
import { Ops } from '../../src/graph/ops.ts';
import type { Architecture, Model } from '../../src/models/architecture.ts';
import { type Hyperparameters, readHyperparameters } from '../../src/models/hyperparameters.ts';
import { architectureOf } from '../../src/models/index.ts';

type Values = Record<string, string | number | boolean | readonly number[]>;

/** Hyperparameters of a small file, as its architecture adjusts them. */
function read(name: string, more: Values = {}): { architecture: Architecture; hp: Hyperparameters } {
  const keys: Values = {
    block_count: 2,
    context_length: 64,
    embedding_length: 32,
    feed_forward_length: 48,
    'attention.head_count': 4,
    'attention.head_count_kv': 2,
    ...more,
  };
  const values: Values = { 'general.architecture': name };
  for (const [key, value] of Object.entries(keys)) values[`${name}.${key}`] = value;
  const value = (key: string): never => values[key] as never;
  const found = readHyperparameters({
    sourceName: 'small.gguf',
    has: (key) => key in values,
    string: value,
    uint: value,
    float: value,
    bool: value,
    strings: (key) => (key === 'tokenizer.ggml.tokens' ? { length: 100 } : undefined),
    elements: (key) => (Array.isArray(values[key]) ? value(key) : undefined),
  });
  const architecture = architectureOf(name, 'small.gguf');
  return { architecture, hp: architecture.adjust?.(found) ?? found };
}

/** Commands of a pass over five tokens. */
function commandsOf(architecture: Architecture, hyperparameters: Hyperparameters, contextLength: number): Command[] {
  const tensors = new Map(architecture.tensors(hyperparameters).map((tensor) => [tensor.name, tensor]));
  const optional = (name: string): Weight | undefined => {
    const tensor = tensors.get(name);
    if (tensor === undefined) return undefined;
    const [width = 1, rows = 1, experts = 1] = tensor.shape;
    return { kind: 'weight', name, width, rows, experts, firstRow: 0, vector: tensor.kind === 'vector' };
  };
  const model: Model = {
    hyperparameters,
    contextLength,
    ropes: architecture.ropes(hyperparameters, new Map(), contextLength),
    weight: (name) => optional(name) as Weight,
    rows: (name, firstRow, rows) => ({ ...(optional(name) as Weight), firstRow, rows }),
    optional,
  };
  const ops = new Ops(5, 1);
  return [...ops.finish(architecture.forward(ops, model)).commands];
}

const GEMMA = { block_count: 8, context_length: 64, 'rope.freq_base': 1e6 };

/** Window, and whether RoPE has the local base, of every layer. */
function layersOf(more: Values, contextLength = 64): [window: number, local: boolean][] {
  const { architecture, hp } = read('gemma3', { ...GEMMA, ...more });
  const commands = commandsOf(architecture, hp, contextLength);
  const ropes = commands.flatMap((command) => (command.op === 'rope' ? [command] : []));
  const windows = commands.flatMap((command) => (command.op === 'attention' ? [command.window] : []));
  assert.is(ropes.length, 2 * windows.length, 'queries and keys');
  const local = 1e4 ** (-2 / hp.headDim);
  return windows.map((window, layer) => {
    const [q, k] = [ropes[2 * layer]!.rope, ropes[2 * layer + 1]!.rope];
    assert.is(q, k);
    return [window, Math.abs(q.frequencies[1]! - local) < 1e-9];
  });
}

test('gemma3: five layers with a window and the local base, then one without', () => {
  const sliding: [number, boolean] = [16, true];
  const full: [number, boolean] = [0, false];
  const six = [...Array.from({ length: 5 }, () => sliding), full, sliding, sliding];
  assert.equal(layersOf({ 'attention.sliding_window': 16 }), six);
  // The local base is not scaled, the other one is.
  assert.equal(layersOf({ 'attention.sliding_window': 16, 'rope.scaling.factor': 8 }), six);
  const third = [sliding, sliding, full, sliding, sliding, full, sliding, sliding];
  assert.equal(layersOf({ 'attention.sliding_window': 16, 'attention.sliding_window_pattern': 3 }), third);
  const none = Array.from({ length: 8 }, () => full);
  assert.equal(layersOf({ 'attention.sliding_window': 16, 'attention.sliding_window_pattern': 1 }), none);
  const every = Array.from({ length: 8 }, () => sliding);
  assert.equal(layersOf({ 'attention.sliding_window': 16, 'attention.sliding_window_pattern': 0 }), every);
  assert.equal(layersOf({}), none);
});

test('gemma3: a window that reaches over the whole cache is none, its layers keep their base', () => {
  const windows = layersOf({ 'attention.sliding_window': 2 ** 32 - 1 });
  assert.equal(windows[0], [0, true]);
  assert.equal(windows[5], [0, false]);
  assert.equal(layersOf({ 'attention.sliding_window': 16 }, 16)[0], [0, true]);
  assert.equal(layersOf({ 'attention.sliding_window': 16 }, 17)[0], [16, true]);
});

test('gemma3: what a file leaves out about its windows is told', () => {
  const told = (more: Values): string[] => {
    const { defaults } = read('gemma3', { ...GEMMA, ...more }).hp;
    return Object.entries(defaults).map(([key, value]) => `${key} ${value}`);
  };
  const window = { 'attention.sliding_window': 16, 'attention.layer_norm_rms_epsilon': 1e-6 };
  assert.equal(told(window), ['gemma3.attention.sliding_window_pattern 6', 'gemma3.rope.freq_base_swa 10000']);
  assert.equal(told({ ...window, 'attention.sliding_window_pattern': 3, 'rope.freq_base_swa': 500 }), []);
  assert.equal(told({ 'attention.layer_norm_rms_epsilon': 1e-6 }), []);
});

test('gemma3: 62 layers scale by the width of a head in the residual stream, others by the head itself', () => {
  const keys = { 'attention.key_length': 16, 'attention.value_length': 16 };
  assert.is(read('gemma3', keys).hp.attentionScale, 1 / 4);
  assert.is(read('gemma3', { ...keys, block_count: 62 }).hp.attentionScale, 1 / Math.sqrt(32 / 4));
});

test('gemma3: a soft cap on the logits is refused by name', () => {
  try {
    read('gemma3', { final_logit_softcapping: 30 });
  } catch (error) {
    assert.instance(error, AprError);
    assert.is((error as AprError).code, 'UNSUPPORTED');
    assert.match((error as AprError).message, /^small\.gguf: gemma3\.final_logit_softcapping is 30/);
    return;
  }
  assert.unreachable();
});

const SHORT = Float32Array.of(1, 2, 4, 8);
const LONG = Float32Array.of(3, 5, 7, 9);
const FACTORS = new Map([
  ['rope_factors_short.weight', SHORT],
  ['rope_factors_long.weight', LONG],
]);

function phi3Rope(more: Values, contextLength: number, vectors: ReadonlyMap<string, Float32Array> = FACTORS) {
  const { architecture, hp } = read('phi3', more);
  const [rope] = architecture.ropes(hp, vectors, contextLength);
  const plain = Array.from({ length: 4 }, (_, i) => 1e4 ** ((-2 * i) / 8));
  return { magnitude: rope!.magnitude, divisors: plain.map((frequency, i) => frequency / rope!.frequencies[i]!) };
}

function assertClose(found: readonly number[], expected: Float32Array): void {
  for (const [i, value] of found.entries()) {
    assert.ok(Math.abs(value - expected[i]!) < 1e-9, `${found.join(' ')}, expected ${expected.join(' ')}`);
  }
}

test('phi3: the short factors up to the original context length, the long ones beyond it', () => {
  // Converters write no rope.scaling.type.
  for (const type of [{} as Values, { 'rope.scaling.type': 'longrope' }]) {
    const more = { ...type, 'rope.scaling.original_context_length': 32, 'rope.scaling.attn_factor': 1.25 };
    const short = phi3Rope(more, 32);
    assertClose(short.divisors, SHORT);
    assert.is(short.magnitude, 1.25);
    const long = phi3Rope(more, 33);
    assertClose(long.divisors, LONG);
    assert.is(long.magnitude, 1.25);
  }
  // Without an original context length, the file's is it.
  assertClose(phi3Rope({}, 64).divisors, SHORT);
  assertClose(phi3Rope({}, 65).divisors, LONG);
  const divided = { 'rope.scaling.type': 'longrope', 'rope.scaling.factor': 2 };
  assertClose(
    phi3Rope(divided, 64).divisors,
    SHORT.map((factor) => 2 * factor),
  );
});

test('phi3: no factors, no LongRoPE; a missing set of two, or one that the file asks for, is refused by name', () => {
  assertClose(phi3Rope({}, 65, new Map()).divisors, Float32Array.of(1, 1, 1, 1));
  const refused = (more: Values, contextLength: number, vectors: ReadonlyMap<string, Float32Array>): string => {
    try {
      phi3Rope(more, contextLength, vectors);
    } catch (error) {
      assert.instance(error, AprError);
      assert.is((error as AprError).code, 'CONTRACT');
      return (error as AprError).message;
    }
    throw new Error('nothing was thrown');
  };
  const short = new Map([['rope_factors_short.weight', SHORT]]);
  assertClose(phi3Rope({}, 64, short).divisors, SHORT);
  assert.match(refused({}, 65, short), /small\.gguf: tensor rope_factors_long\.weight is missing.* 65/);
  assert.match(refused({ 'rope.scaling.type': 'longrope' }, 64, new Map()), /rope_factors_short\.weight/);
});

test('qwen2moe: widths of experts that a file leaves out follow from feed_forward_length, and are told', () => {
  const experts = { expert_count: 8, expert_used_count: 4 };
  const old = read('qwen2moe', experts).hp;
  assert.is(old.expertFeedForwardLength, 12);
  assert.is(old.sharedExpertFeedForwardLength, 48);
  assert.is(old.defaults['qwen2moe.expert_feed_forward_length'], 12);
  assert.is(old.defaults['qwen2moe.expert_shared_feed_forward_length'], 48);
  const widths = { expert_feed_forward_length: 16, expert_shared_feed_forward_length: 24 };
  const { expertFeedForwardLength, sharedExpertFeedForwardLength, defaults } = read('qwen2moe', {
    ...experts,
    ...widths,
  }).hp;
  assert.equal([expertFeedForwardLength, sharedExpertFeedForwardLength], [16, 24]);
  assert.is(Object.keys(defaults).filter((key) => key.includes('expert')).length, 0);
  // Mixtral's experts are as wide as the file says.
  assert.is(read('llama', experts).hp.expertFeedForwardLength, 48);
});

test('granite: no turn where the file says so, and a divisor of the logits it must have', () => {
  const count = (more: Values): [ropes: number, factors: number[]] => {
    const { architecture, hp } = read('granite', { logit_scale: 8, ...more });
    const commands = commandsOf(architecture, hp, 64);
    const factors = commands.flatMap((command) => (command.op === 'scale' ? [command.factor] : []));
    return [commands.filter(({ op }) => op === 'rope').length, factors];
  };
  assert.equal(count({}), [4, [1 / 8]]);
  assert.equal(count({ 'rope.scaling.finetuned': false, residual_scale: 0.5, embedding_scale: 12 }), [
    0,
    [12, 0.5, 0.5, 0.5, 0.5, 1 / 8],
  ]);
  assert.throws(
    () => read('granite', {}),
    (error: unknown) => error instanceof AprError && /logit_scale/.test(error.message),
  );
});

test('gemma2: every second layer has the window, caps are those of the file or 50 and 30', () => {
  const passOf = (more: Values) => {
    const { architecture, hp } = read('gemma2', { block_count: 4, context_length: 8192, ...more });
    const commands = commandsOf(architecture, hp, 8192);
    const layers = commands.flatMap((c) => (c.op === 'attention' ? [[c.window, c.softCap]] : []));
    return { layers, caps: commands.flatMap((c) => (c.op === 'softCap' ? [c.cap] : [])), defaults: hp.defaults };
  };
  const { layers, caps, defaults } = passOf({});
  assert.equal(layers, [
    [4096, 50],
    [0, 50],
    [4096, 50],
    [0, 50],
  ]);
  assert.equal(caps, [30]);
  assert.is(defaults['gemma2.attn_logit_softcapping'], 50);
  const own = passOf({
    'attention.sliding_window': 64,
    attn_logit_softcapping: 7,
    final_logit_softcapping: 0,
    'attention.sliding_window_pattern': 4,
  });
  assert.equal(
    own.layers.map(([window]) => window),
    [64, 64, 64, 0],
  );
  assert.equal([own.layers[0]![1], own.caps], [7, []]);
});

test('smollm3: every fourth layer does not turn queries and keys', () => {
  const { architecture, hp } = read('smollm3', { block_count: 9 });
  const commands = commandsOf(architecture, hp, 64);
  const turning = commands.flatMap((command) => (command.op === 'rope' ? [command.dst.layer] : []));
  assert.equal([...new Set(turning)], [0, 1, 2, 4, 5, 6, 8]);
});

test('olmo2: without a sliding window all layers turn alike, with one three of four see less and are not scaled', () => {
  const yarn = { 'rope.scaling.type': 'yarn', 'rope.scaling.factor': 8, context_length: 64, block_count: 4 };
  const layers = (more: Values): [window: number, scaled: boolean][] => {
    const { architecture, hp } = read('olmo2', { ...yarn, ...more });
    const commands = commandsOf(architecture, hp, 64);
    const ropes = commands.flatMap((command) => (command.op === 'rope' ? [command.rope] : []));
    const windows = commands.flatMap((command) => (command.op === 'attention' ? [command.window] : []));
    return windows.map((window, layer) => [window, ropes[2 * layer]!.magnitude !== 1]);
  };
  const full: [number, boolean] = [0, true];
  const sliding: [number, boolean] = [16, false];
  assert.equal(layers({}), [full, full, full, full]);
  assert.equal(layers({ 'attention.sliding_window': 16 }), [sliding, sliding, sliding, full]);
  assert.equal(
    read('olmo2', { 'attention.sliding_window': 16 }).hp.defaults['olmo2.attention.sliding_window_pattern'],
    4,
  );
  // As llama.cpp's converter writes it: whether each layer has a window.
  const window = { 'attention.sliding_window': 16 };
  const each = (...windows: number[]): Values => ({ ...window, 'attention.sliding_window_pattern': windows });
  assert.equal(layers(each(1, 1, 1, 0)), [sliding, sliding, sliding, full]);
  assert.equal(layers(each(1, 0, 1, 0)), [sliding, full, sliding, full]);
  assert.equal(layers(each(1, 1, 1, 1)), [sliding, sliding, sliding, sliding]);
  assert.equal(layers(each(0, 0, 0, 0)), [full, full, full, full]);
  for (const [windows, found] of [
    [[0, 1, 1, 1], 'no regular way \\(the first without a window is layer 0\\)'],
    [[1, 1, 1], 'has 3 elements, expected one element for each of the 4 layers'],
    [[], 'has 0 elements'],
  ] as const) {
    assert.throws(() => layers(each(...windows)), new RegExp(found));
  }
});

test.run();
