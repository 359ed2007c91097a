/** Reading .apr files, those of other programs and broken ones. */

import { crc32 as zlibCrc32 } from 'node:zlib';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { AprErrorCode } from '../../src/errors.ts';
import { toGgufName, toHuggingFaceName } from '../../src/formats/apr/tensor-names.ts';
import { crc32 } from '../../src/formats/crc32.ts';
import { memorySource } from '../../src/formats/memory-source.ts';
import { openModel } from '../../src/formats/open-model.ts';
import { createTokenizer } from '../../src/tokenizer/index.ts';
import { type AprParts, type AprTensor, buildApr, foreignJson } from './apr-builder.ts';
import { assertPrintable, rejection } from './rejection.ts';

const open = (parts: AprParts) => openModel(memorySource('model.apr', buildApr(parts)));
const zeros = (length: number): Uint8Array => new Uint8Array(length);

test('CRC-32 is that of zlib, in one piece and in several', () => {
  assert.is(crc32(new TextEncoder().encode('123456789')), 0xcbf43926);
  const bytes = Uint8Array.from({ length: 1003 }, (_, i) => (i * 31 + (i >> 3)) & 255);
  for (const cut of [0, 1, 7, 8, 500, 1003]) {
    assert.is(crc32(bytes.subarray(cut), crc32(bytes.subarray(0, cut))), zlibCrc32(bytes));
  }
});

test('a file of another program: metadata and tensors under the names of GGUF', async () => {
  const file = await open({
    json: foreignJson({ name: 'Tiny', head_dim: 16, chat_template: '{{ messages }}' }),
    tensors: [
      { name: 'model.embed_tokens.weight', dtype: 0, dims: [4, 32], data: zeros(512) },
      { name: 'model.layers.0.self_attn.q_proj.weight', dtype: 12, dims: [2, 256], data: zeros(288) },
      { name: 'model.layers.0.mlp.experts.up_proj.weight', dtype: 1, dims: [2, 3, 32], data: zeros(384) },
      { name: 'model.norm.weight', dtype: 30, dims: [32], data: zeros(64) },
    ],
  });
  assert.is(file.format, 'apr');
  assert.is(file.version, 2);
  const { metadata, tensors } = file;
  assert.is(metadata.string('general.architecture'), 'llama');
  assert.is(metadata.string('general.name'), 'Tiny');
  assert.is(metadata.uint('llama.embedding_length'), 32);
  assert.is(metadata.uint('llama.attention.head_count_kv'), 1);
  assert.is(metadata.uint('llama.attention.value_length'), 16);
  assert.is(metadata.float('llama.attention.layer_norm_rms_epsilon'), Math.fround(1e-5));
  assert.is(metadata.string('tokenizer.chat_template'), '{{ messages }}');
  assert.equal(Array.from(metadata.numbers('tokenizer.ggml.token_type')!), [1, 1, 1, 3]);
  assert.equal(
    [...tensors.values()].map(({ name, shape, type, byteLength }) => [name, shape, type.name, byteLength]),
    [
      ['token_embd.weight', [32, 4], 'F32', 512],
      ['blk.0.attn_q.weight', [256, 2], 'Q4_K', 288],
      ['blk.0.ffn_up_exps.weight', [32, 3, 2], 'F16', 384],
      ['output_norm.weight', [32], 'BF16', 64],
    ],
  );
  const tokenizer = createTokenizer(metadata);
  assert.equal(tokenizer.encode('abb'), [2, 1]);
  assert.ok(tokenizer.isEndOfGeneration(3));
});

test('spellings of architectures', async () => {
  for (const [spelled, name] of [
    ['qwen3_moe', 'qwen3moe'],
    ['Mistral', 'llama'],
    ['Qwen2ForCausalLM', 'qwen2'],
    ['somethingnew', 'somethingnew'],
  ] as const) {
    const { metadata } = await open({ json: foreignJson({ architecture: spelled }) });
    assert.is(metadata.string('general.architecture'), name);
    assert.is(metadata.uint(`${name}.block_count`), 1);
  }
});

test('older writers have another magic', async () => {
  assert.is((await open({ magic: 'APR2', json: foreignJson() })).format, 'apr');
});

test('an empty lm_head.weight is a tied head', async () => {
  const embedding: AprTensor = { name: 'model.embed_tokens.weight', dtype: 0, dims: [4, 32], data: zeros(512) };
  for (const dims of [[0], [4, 32]]) {
    const { tensors } = await open({
      json: foreignJson(),
      tensors: [embedding, { name: 'lm_head.weight', dtype: 0, dims }],
    });
    assert.equal([...tensors.keys()], ['token_embd.weight']);
  }
  const head = { name: 'lm_head.weight', dtype: 0, dims: [4, 32], data: zeros(512) };
  assert.ok((await open({ json: foreignJson(), tensors: [embedding, head] })).tensors.has('output.weight'));
});

for (const [dtype, size, name] of [
  [2, 36, 'Q4_0'],
  [3, 40, 'Q4_1'],
  [3, 512, 'F64'],
  [4, 256, 'I32'],
  [5, 512, 'I64'],
  [6, 44, 'Q5_0'],
  [6, 64, 'I8'],
  [7, 48, 'Q5_1'],
  [8, 68, 'Q8_0'],
  [9, 72, 'Q8_1'],
  [20, 36, 'IQ4_NL'],
  [39, 34, 'MXFP4'],
] as const) {
  test(`data type ${dtype} of 64 values in ${size} bytes is ${name}`, async () => {
    const { tensors } = await open({
      json: foreignJson(),
      tensors: [{ name: 'w', dtype, dims: [2, 32], data: zeros(size) }],
    });
    assert.is(tensors.get('w')!.type.name, name);
  });
}

const refused = (name: string, code: AprErrorCode, parts: AprParts, ...fragments: (string | RegExp)[]): void => {
  test(`refused: ${name}`, async () => {
    assertPrintable(await rejection(() => open(parts), code, 'model.apr', ...fragments));
  });
};
const refusedTensor = (name: string, code: AprErrorCode, tensor: AprTensor, ...fragments: (string | RegExp)[]): void =>
  refused(name, code, { json: foreignJson(), tensors: [tensor] }, ...fragments);
const W = { name: 'w', dtype: 0, dims: [32], data: zeros(128) };

// The header.
refused('another version', 'UNSUPPORTED', { major: 3 }, 'version 3', 'expected 2');
refused('a damaged header', 'BAD_FORMAT', { damage: (bytes) => bytes.writeUInt8(7, 50) }, 'CRC-32');
refused('column-major order', 'UNSUPPORTED', { flags: 1 << 11 }, 'LAYOUT-002');
refused('encryption', 'UNSUPPORTED', { flags: 1 << 2 }, 'encrypted');
refused('a shard', 'UNSUPPORTED', { flags: 1 << 4 }, 'shard');
refused('metadata behind the file', 'BAD_FORMAT', { header: (view) => view.setUint32(20, 2 ** 31, true) }, 'truncated');
refused(
  'an index behind the file',
  'BAD_FORMAT',
  { header: (view) => view.setBigUint64(24, 2n ** 60n, true) },
  'index',
);
refused('data in the header', 'BAD_FORMAT', { header: (view) => view.setBigUint64(32, 1n, true) }, 'data');
refused(
  'too many tensors',
  'BAD_FORMAT',
  { header: (view) => view.setUint32(8, 2 ** 32 - 1, true) },
  '4294967295 tensors',
);

// Metadata.
refused('no JSON', 'BAD_FORMAT', { json: '{"a":' }, 'not JSON');
refused('an escape sequence in place of JSON', 'BAD_FORMAT', { json: '{"a": \x1b[31mX}' }, 'not JSON');
refused('a JSON array', 'BAD_FORMAT', { json: [] }, 'array of 0');
refused('JSON nested a thousand times', 'BAD_FORMAT', { json: '['.repeat(1000) }, 'nested 1000 levels');
refused(
  'a million empty arrays',
  'BAD_FORMAT',
  { json: `[${'[],'.repeat(1_000_000)}[]]` },
  '1000002 objects and arrays',
);
refused('brackets in strings are none', 'BAD_FORMAT', { json: `["\\"${'['.repeat(400_000)}"]` }, 'array of 1');
refused('no architecture', 'BAD_FORMAT', { json: { hidden_size: 3 } }, '"architecture"');
refused('no number of layers', 'BAD_FORMAT', { json: foreignJson({ num_layers: null }) }, '"num_layers"');
refused('text for a number', 'BAD_FORMAT', { json: foreignJson({ hidden_size: '32' }) }, '"hidden_size"', '"32"');
refused('a negative number', 'BAD_FORMAT', { json: foreignJson({ num_heads: -1 }) }, '"num_heads"', '-1');
refused(
  'rows of Q and K in another order',
  'UNSUPPORTED',
  { json: foreignJson({ rope_type: 2 }) },
  'rope_type',
  'order',
);
refused('a vocabulary of numbers', 'BAD_FORMAT', { json: foreignJson({ 'tokenizer.vocabulary': [1] }) }, 'vocabulary');
refused(
  'an end token beyond it',
  'BAD_FORMAT',
  { json: foreignJson({ 'tokenizer.eos_token_id': 4 }) },
  'eos_token_id',
  '4',
);

// GGUF metadata within.
const gguf = (metadata: unknown, extra: Record<string, unknown> = {}): AprParts => ({
  json: { gguf: { metadata }, ...extra },
});
refused('"gguf" that is none', 'BAD_FORMAT', { json: { gguf: 3 } }, '"gguf"');
refused('no metadata in it', 'BAD_FORMAT', { json: { gguf: {} } }, 'gguf.metadata');
refused('an unknown type', 'BAD_FORMAT', gguf({ k: { type: 'uint128', value: 1 } }), '"k"', 'uint128');
refused('a type of toString', 'BAD_FORMAT', gguf({ k: { type: 'toString', value: 1 } }), '"k"');
refused('a number too large', 'BAD_FORMAT', gguf({ k: { type: 'uint8', value: 256 } }), '"k"', '256', 'uint8');
refused('a fraction', 'BAD_FORMAT', gguf({ k: { type: 'int32', value: 0.5 } }), '"k"', '0.5');
refused('bad base64', 'BAD_FORMAT', gguf({ k: { type: 'string', value: { base64: '???' } } }), '"k"', 'base64');
refused(
  'strings that are elsewhere',
  'BAD_FORMAT',
  gguf({ k: { type: 'array', items: 'string', same_as: 'no' } }),
  '"k"',
);
refused('mixed items', 'BAD_FORMAT', gguf({ k: { type: 'array', items: 'bool', value: [true, 1] } }), '"k"');

// The index.
refusedTensor('a tensor behind the file', 'BAD_FORMAT', { ...W, offset: 2n ** 40n }, '"w"', 'truncated');
refusedTensor('an end beyond 2^64', 'BAD_FORMAT', { ...W, offset: 2n ** 64n - 1n }, '"w"', 'truncated');
refusedTensor('a size that is not the type’s', 'BAD_FORMAT', { ...W, dims: [31] }, '"w"', '128 bytes', '124 as F32');
refusedTensor('a row that blocks do not divide', 'BAD_FORMAT', { ...W, dtype: 12, dims: [100] }, '"w"', 'Q4_K');
refusedTensor('no dimensions', 'BAD_FORMAT', { ...W, dims: [] }, '"w"', '0 dimensions');
refusedTensor('five dimensions', 'BAD_FORMAT', { ...W, dims: [1, 1, 1, 1, 32] }, '"w"', '5 dimensions');
refusedTensor(
  'a product beyond 2^53',
  'BAD_FORMAT',
  { ...W, dims: [2n ** 32n, 2n ** 32n] },
  '"w"',
  'more than any file',
);
refusedTensor('an unknown data type', 'UNSUPPORTED', { ...W, dtype: 200 }, '"w"', '200');
refusedTensor('AprQ4 under its old id', 'UNSUPPORTED', { ...W, dtype: 8, dims: [64], data: zeros(36) }, '"w"', 'AprQ4');
refusedTensor('AprQ4', 'UNSUPPORTED', { ...W, dtype: 128, dims: [64], data: zeros(36) }, '"w"', 'AprQ4', 'GGUF');
refusedTensor('AprQ8', 'UNSUPPORTED', { ...W, dtype: 129, dims: [64], data: zeros(68) }, '"w"', 'AprQ8');
refusedTensor('an empty name', 'BAD_FORMAT', { ...W, name: '' }, '0 bytes');
refusedTensor('a name of 257 bytes', 'BAD_FORMAT', { ...W, name: 'x'.repeat(257) }, '257 bytes');
refusedTensor('a name that is not UTF-8', 'BAD_FORMAT', { ...W, name: Uint8Array.of(0xff) }, 'UTF-8');
refusedTensor('a name with an escape', 'BAD_FORMAT', { ...W, name: 'a\x1b[31m' }, 'control');
refused('a name that stands twice', 'BAD_FORMAT', { json: foreignJson(), tensors: [W, W] }, '"w"', 'twice');
refused(
  'one tensor under both its names',
  'BAD_FORMAT',
  {
    json: foreignJson(),
    tensors: [
      { ...W, name: 'model.norm.weight' },
      { ...W, name: 'output_norm.weight' },
    ],
  },
  'twice',
);
refused(
  'an index out of order',
  'BAD_FORMAT',
  { json: foreignJson(), tensors: [W, { ...W, name: 'a' }], unsorted: true },
  'sorted',
);
refused(
  'two tensors over the same bytes',
  'BAD_FORMAT',
  { json: foreignJson(), tensors: [W, { ...W, name: 'x', offset: 64 }] },
  'within tensor',
);
refused(
  'compressed data',
  'UNSUPPORTED',
  { flags: 1 | (1 << 10), json: foreignJson(), tensors: [{ ...W, data: zeros(50) }] },
  'compressed',
);

test('a compression flag alone says nothing: its writer sets it without compressing', async () => {
  assert.is((await open({ flags: 1 | (1 << 10), json: foreignJson(), tensors: [W] })).tensors.size, 1);
});

test('a file without a tokenizer opens; asking for the tokenizer names what was looked for', async () => {
  const { metadata } = await open({ json: foreignJson({ 'tokenizer.vocabulary': undefined }), flags: 1 << 9 });
  assert.is(metadata.uint('llama.block_count'), 1);
  await rejection(
    () => createTokenizer(metadata),
    'BAD_FORMAT',
    'model.apr',
    'tokenizer.vocabulary',
    'tokenizer.ggml.tokens',
    'HAS_VOCAB is set all the same',
  );
});

test('names go both ways', () => {
  for (const [gguf, hf] of [
    ['token_embd.weight', 'model.embed_tokens.weight'],
    ['output.weight', 'lm_head.weight'],
    ['output_norm.weight', 'model.norm.weight'],
    ['blk.12.attn_k.bias', 'model.layers.12.self_attn.k_proj.bias'],
    ['blk.0.ffn_norm.weight', 'model.layers.0.post_attention_layernorm.weight'],
    ['blk.3.ffn_gate_inp.weight', 'model.layers.3.mlp.gate.weight'],
    ['rope_freqs.weight', 'rope_freqs.weight'],
    ['blk.0.unheard_of.weight', 'blk.0.unheard_of.weight'],
    ['blk.0.attn_q', 'blk.0.attn_q'],
  ] as const) {
    assert.is(toHuggingFaceName(gguf), hf);
    assert.is(toGgufName(hf), gguf);
  }
});

test.run();
