import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { AprError } from '../../src/errors.ts';
import type { Weight } from '../../src/graph/command.ts';
import { Ops } from '../../src/graph/ops.ts';
import { type Hyperparameters, normaliseArchitecture, readHyperparameters } from '../../src/models/hyperparameters.ts';
import { architectureOf } from '../../src/models/index.ts';

/** Metadata of a small file; everything a test changes comes last. */
function metadata(values: Record<string, string | number>) {
  const read = (key: string): never => values[key] as never;
  return {
    sourceName: 'small.gguf',
    has: (key: string) => key in values,
    string: read,
    uint: read,
    float: read,
    bool: read,
    strings: (key: string) => (key === 'tokenizer.ggml.tokens' ? { length: 100 } : undefined),
    elements: () => undefined,
  };
}

function small(architecture: string, more: Record<string, string | number> = {}): Hyperparameters {
  const keys = {
    block_count: 2,
    context_length: 64,
    embedding_length: 32,
    feed_forward_length: 48,
    'attention.head_count': 4,
    'attention.head_count_kv': 2,
    ...more,
  };
  const prefixed = Object.entries(keys).map(([key, value]) => [`${architecture}.${key}`, value]);
  return readHyperparameters(metadata({ 'general.architecture': architecture, ...Object.fromEntries(prefixed) }));
}

for (const [name, more] of [
  ['llama', {}],
  ['llama', { expert_count: 4, expert_used_count: 2 }],
  ['qwen2', {}],
  ['qwen3', { 'attention.key_length': 16, 'attention.value_length': 16 }],
  ['phi3', {}],
  ['gemma3', { 'attention.sliding_window': 16, block_count: 7 }],
  [
    'qwen2moe',
    { expert_count: 4, expert_used_count: 2, expert_feed_forward_length: 16, expert_shared_feed_forward_length: 24 },
  ],
  ['qwen3moe', { expert_count: 8, expert_used_count: 2, expert_feed_forward_length: 16 }],
] as const) {
  test(`${name} ${JSON.stringify(more)}: the pass uses every declared tensor, with matching widths`, () => {
    const hyperparameters = small(name, more);
    const architecture = architectureOf(name, 'small.gguf');
    const used = new Set<string>();
    const declared = new Map(architecture.tensors(hyperparameters).map((tensor) => [tensor.name, tensor]));
    const optional = (tensorName: string): Weight | undefined => {
      const tensor = declared.get(tensorName);
      if (tensor === undefined) return undefined;
      used.add(tensorName);
      const [width = 1, rows = 1, experts = 1] = tensor.shape;
      return { kind: 'weight', name: tensorName, width, rows, experts, firstRow: 0, vector: tensor.kind === 'vector' };
    };
    const model = {
      hyperparameters,
      contextLength: 64,
      ropes: architecture.ropes(hyperparameters, new Map(), 64),
      weight: (tensorName: string) => optional(tensorName) as Weight,
      rows: (tensorName: string, firstRow: number, rows: number) => ({
        ...(optional(tensorName) as Weight),
        firstRow,
        rows,
      }),
      optional,
    };
    const ops = new Ops(5, 1);
    const record = ops.finish(architecture.forward(ops, model));
    assert.equal([record.logits?.width, record.logits?.rows], [100, 1]);
    for (const command of record.commands) {
      if (command.op === 'mulMat' || command.op === 'mulMatId')
        assert.is(command.x.width, command.weight.width, command.dst.name);
      if (command.op === 'add') assert.is(command.a.width, command.b.width, command.dst.name);
      if (command.op === 'addBias') assert.is(command.bias.width, command.x.width, command.dst.name);
    }
    const unused = [...declared.values()].filter((tensor) => !used.has(tensor.name) && !tensor.setup);
    assert.equal(
      unused.map((tensor) => tensor.name),
      [],
    );
    const names = record.activations.map((activation) => activation.name);
    assert.is(new Set(names).size, names.length, 'activation names are unique');
  });
}

test('architecture aliases are one architecture, unknown ones are refused by name', () => {
  assert.is(normaliseArchitecture('Qwen3_MoE'), 'qwen3moe');
  assert.is(architectureOf('qwen3_moe', 'x.gguf').name, 'qwen3moe');
  try {
    architectureOf('mamba', 'x.gguf');
    assert.unreachable();
  } catch (error) {
    assert.instance(error, AprError);
    assert.is((error as AprError).code, 'UNSUPPORTED');
    assert.match((error as AprError).message, /x\.gguf.*"mamba".*qwen3moe/);
  }
});

test('a missing RoPE base is 1e6 for the Qwen families and 1e4 otherwise, and is told', () => {
  for (const name of ['qwen2', 'qwen3', 'qwen3moe', 'qwen3_moe']) {
    const { ropeFreqBase, defaults } = small(name);
    assert.is(ropeFreqBase, 1e6, name);
    assert.is(defaults[`${name}.rope.freq_base`], 1e6, name);
  }
  assert.is(small('llama').ropeFreqBase, 1e4);
  assert.is(small('qwen2', { 'rope.freq_base': 5e5 }).ropeFreqBase, 5e5);
  assert.is('qwen2.rope.freq_base' in small('qwen2', { 'rope.freq_base': 5e5 }).defaults, false);
});

test('an unknown RoPE scaling is refused by name', () => {
  assert.throws(() => small('llama', { 'rope.scaling.type': 'dynamic' }), /dynamic/);
});

test.run();
