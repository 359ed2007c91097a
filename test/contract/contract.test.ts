import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  assertBounds,
  assertContract,
  type ContractHyperparameters,
  type ContractInput,
  type ContractTensor,
  checkContract,
  type ExpectedTensor,
  refuse,
} from '../../src/contract/index.ts';
import { rejection } from '../formats/rejection.ts';

const HYPERPARAMETERS: ContractHyperparameters = {
  architecture: 'llama',
  blockCount: 1,
  contextLength: 512,
  embeddingLength: 1536,
  feedForwardLength: 64,
  headCount: 12,
  headCountKv: 2,
  headDim: 128,
  headDimV: 128,
  rmsEps: 1e-6,
  ropeFreqBase: 1e6,
  ropeDims: 128,
  ropeScaling: { type: 'none' },
  attentionScale: 0.1,
  expertCount: 0,
  expertUsedCount: 0,
  expertFeedForwardLength: 64,
  vocabularySize: 1000,
};

const EXPECTED: readonly ExpectedTensor[] = [
  { name: 'token_embd.weight', shape: [1536, 1000], kind: 'matrix' },
  { name: 'output_norm.weight', shape: [1536], kind: 'vector' },
  { name: 'output.weight', shape: [1536, 1000], kind: 'matrix', optional: true },
  { name: 'blk.0.attn_q.weight', shape: [1536, 1536], kind: 'matrix' },
  { name: 'blk.0.attn_q.bias', shape: [1536], kind: 'vector', optional: true },
];

const tensor = (shape: readonly number[], type = 'F32'): ContractTensor => ({
  type: { name: type },
  shape,
  byteLength: shape.reduce((product, size) => product * size, 4),
});

type Tensors = Record<string, ContractTensor | undefined>;

const GOOD: Tensors = {
  'token_embd.weight': tensor([1536, 1000], 'Q6_K'),
  'output_norm.weight': tensor([1536]),
  'blk.0.attn_q.weight': tensor([1536, 1536], 'Q4_K'),
};

interface Change {
  readonly tensors?: Tensors;
  readonly hyperparameters?: Partial<ContractHyperparameters>;
  readonly vocabularySize?: number;
  readonly specialTokens?: Record<string, number>;
}

/** A file that fulfils the contract, but for the change. */
function input({
  tensors = {},
  hyperparameters = {},
  vocabularySize = 1000,
  specialTokens = {},
}: Change = {}): ContractInput {
  const present = Object.entries({ ...GOOD, ...tensors }).filter(
    (entry): entry is [string, ContractTensor] => entry[1] !== undefined,
  );
  return {
    sourceName: 'model.gguf',
    tensors: new Map(present),
    expected: EXPECTED,
    supportedTypes: new Set(['F32', 'F16', 'Q4_K', 'Q6_K']),
    hyperparameters: { ...HYPERPARAMETERS, ...hyperparameters },
    vocabulary: { size: vocabularySize, specialTokens },
  };
}

const accepted = (name: string, change: Change): void => {
  test(`accepted: ${name}`, () => {
    assert.equal(checkContract(input(change)), []);
    assertContract(input(change));
  });
};

accepted('a plain file', {});
accepted('a head of its own', { tensors: { 'output.weight': tensor([1536, 1000], 'Q6_K') } });
accepted('an empty head beside a full embedding, which ties them', { tensors: { 'output.weight': tensor([1536, 0]) } });
accepted('an optional bias', { tensors: { 'blk.0.attn_q.bias': tensor([1536], 'F16') } });
accepted('sizes of 1 behind the last', { tensors: { 'output_norm.weight': tensor([1536, 1, 1]) } });
accepted('norms of 16 bits', { tensors: { 'output_norm.weight': tensor([1536], 'BF16') } });
accepted('special tokens up to the last id', {
  specialTokens: { 'tokenizer.ggml.bos_token_id': 0, 'tokenizer.ggml.eos_token_id': 999 },
});
accepted("Mistral Small 3.1's RoPE base", { hyperparameters: { ropeFreqBase: 1e9 } });
accepted("Granite's factors, and Gemma 2's soft caps", {
  hyperparameters: {
    embeddingScale: 12,
    residualScale: 0.22,
    logitScale: 8,
    attentionSoftcapping: 50,
    finalLogitSoftcapping: 30,
  },
});
accepted('factors and soft caps of 0, which are none', {
  hyperparameters: {
    embeddingScale: 0,
    residualScale: 0,
    logitScale: 0,
    attentionSoftcapping: 0,
    finalLogitSoftcapping: 0,
  },
});
accepted('no grouping of heads', { hyperparameters: { headCountKv: 12 } });
accepted('a mixture of experts without a dense FFN', {
  hyperparameters: { expertCount: 128, expertUsedCount: 8, feedForwardLength: 0, expertFeedForwardLength: 768 },
});
accepted('YaRN', {
  hyperparameters: {
    ropeScaling: {
      type: 'yarn',
      factor: 4,
      originalContextLength: 32_768,
      betaFast: 32,
      betaSlow: 1,
      extFactor: 1,
      attentionFactor: 1,
    },
  },
});

const refused = (name: string, change: Change, rule: string, ...fragments: string[]): void => {
  test(`refused: ${name}`, async () => {
    const findings = checkContract(input(change));
    assert.is(findings.length, 1, JSON.stringify(findings));
    assert.is(findings[0]?.rule, rule);
    const code = rule === 'TYPE-SUPPORTED' ? 'UNSUPPORTED' : 'CONTRACT';
    const error = await rejection(() => assertContract(input(change)), code, 'model.gguf', rule, ...fragments);
    assert.is(error.details.rule, rule);
  });
};

// Tensors.
refused(
  'a norm of the wrong length',
  { tensors: { 'output_norm.weight': tensor([768]) } },
  'F-LAYOUT-CONTRACT-003',
  'output_norm.weight',
  '[768]',
  '[1536]',
);
refused(
  'a bias of the wrong length',
  { tensors: { 'blk.0.attn_q.bias': tensor([128]) } },
  'F-LAYOUT-CONTRACT-003',
  'blk.0.attn_q.bias',
  '[128]',
  '[1536]',
);
refused(
  'an empty norm',
  { tensors: { 'output_norm.weight': tensor([0]) } },
  'F-LAYOUT-CONTRACT-003',
  'output_norm.weight',
  '[0]',
);
refused(
  'a matrix of the wrong width',
  { tensors: { 'blk.0.attn_q.weight': tensor([768, 1536]) } },
  'F-LAYOUT-CONTRACT-001',
  'blk.0.attn_q.weight',
  '[768, 1536]',
  '[1536, 1536]',
);
refused(
  'a matrix with one more dimension',
  { tensors: { 'blk.0.attn_q.weight': tensor([1536, 1536, 2]) } },
  'F-LAYOUT-CONTRACT-001',
  '[1536, 1536, 2]',
);
refused(
  'a missing matrix',
  { tensors: { 'blk.0.attn_q.weight': undefined } },
  'OBLIG-APR-WEIGHT-SHAPE-MATCHES-CONFIG',
  'blk.0.attn_q.weight',
  'missing',
);
refused(
  'a tensor that nothing computes with',
  { tensors: { 'blk.0.attn_sinks.weight': tensor([12]) } },
  'TENSOR-KNOWN',
  'blk.0.attn_sinks.weight',
);
refused(
  'a block too many',
  { tensors: { 'blk.1.attn_q.weight': tensor([1536, 1536]) } },
  'TENSOR-KNOWN',
  'blk.1.attn_q.weight',
);
refused(
  'an embedding of another vocabulary',
  { tensors: { 'token_embd.weight': tensor([1536, 900]) } },
  'OBLIG-APR-VOCAB-EMBED-CONSISTENT',
  'token_embd.weight',
  '[1536, 900]',
  '1000',
);
refused(
  'a head of another vocabulary',
  { tensors: { 'output.weight': tensor([1536, 1001]) } },
  'OBLIG-APR-VOCAB-EMBED-CONSISTENT',
  'output.weight',
  '1001',
  '1000',
);
refused(
  'a head of another width',
  { tensors: { 'output.weight': tensor([768, 1000]) } },
  'F-LAYOUT-CONTRACT-002',
  'output.weight',
);
refused(
  'an empty embedding',
  { tensors: { 'token_embd.weight': tensor([1536, 0]) } },
  'OBLIG-APR-VOCAB-EMBED-CONSISTENT',
  'token_embd.weight',
);
refused(
  'a matrix type without a kernel',
  { tensors: { 'blk.0.attn_q.weight': tensor([1536, 1536], 'IQ2_XXS') } },
  'TYPE-SUPPORTED',
  'blk.0.attn_q.weight',
  'IQ2_XXS',
  'Q4_K',
);
refused(
  'a quantised norm',
  { tensors: { 'output_norm.weight': tensor([1536], 'Q4_K') } },
  'TYPE-SUPPORTED',
  'output_norm.weight',
  'Q4_K',
);

test('an empty head beside an empty embedding ties nothing', () => {
  const findings = checkContract(
    input({ tensors: { 'token_embd.weight': tensor([1536, 0]), 'output.weight': tensor([1536, 0]) } }),
  );
  assert.equal(
    findings.map((finding) => finding.tensor),
    ['token_embd.weight', 'output.weight'],
  );
});

// Vocabulary.
refused(
  'a special token beyond the vocabulary',
  { specialTokens: { 'tokenizer.ggml.eos_token_id': 1000 } },
  'OBLIG-SPECIAL-TOKEN-WITHIN-VOCAB',
  'tokenizer.ggml.eos_token_id',
  '1000',
);
refused(
  'a negative special token',
  { specialTokens: { 'tokenizer.ggml.bos_token_id': -1 } },
  'OBLIG-SPECIAL-TOKEN-WITHIN-VOCAB',
  'tokenizer.ggml.bos_token_id',
  '-1',
);
refused(
  'a tokenizer of another vocabulary',
  { vocabularySize: 999 },
  'OBLIG-APR-VOCAB-EMBED-CONSISTENT',
  '999',
  '1000',
);

// Bounds.
const BOUNDS: readonly (readonly [Partial<ContractHyperparameters>, key: string, found: string])[] = [
  [{ blockCount: 0 }, 'llama.block_count', '0'],
  [{ blockCount: 257 }, 'llama.block_count', '257'],
  [{ blockCount: 2 ** 32 - 1 }, 'llama.block_count', '4294967295'],
  [{ contextLength: 0 }, 'llama.context_length', '0'],
  [{ contextLength: 2 ** 31 }, 'llama.context_length', '2147483648'],
  [{ embeddingLength: 0 }, 'llama.embedding_length', '0'],
  [{ embeddingLength: 65_537 }, 'llama.embedding_length', '65537'],
  [{ feedForwardLength: 0 }, 'llama.feed_forward_length', '0'],
  [{ feedForwardLength: 262_145 }, 'llama.feed_forward_length', '262145'],
  [{ headCount: 258, headCountKv: 2 }, 'llama.attention.head_count', '258'],
  [{ headCountKv: 0 }, 'llama.attention.head_count_kv', '0'],
  [{ headCountKv: 5 }, 'llama.attention.head_count', '12'],
  [{ headDim: 1536 / 11, ropeDims: 128 }, 'llama.attention.key_length', '139.6'],
  [{ headDim: 129 }, 'llama.attention.key_length', '129'],
  [{ headDimV: 0 }, 'llama.attention.value_length', '0'],
  [{ ropeDims: 63 }, 'llama.rope.dimension_count', '63'],
  [{ ropeDims: 0 }, 'llama.rope.dimension_count', '0'],
  [{ ropeDims: 130 }, 'llama.rope.dimension_count', '130'],
  [{ rmsEps: 0 }, 'llama.attention.layer_norm_rms_epsilon', '0'],
  [{ rmsEps: 0.1 }, 'llama.attention.layer_norm_rms_epsilon', '0.1'],
  [{ rmsEps: Number.NaN }, 'llama.attention.layer_norm_rms_epsilon', 'NaN'],
  [{ ropeFreqBase: 0 }, 'llama.rope.freq_base', '0'],
  [{ ropeFreqBase: 1e11 }, 'llama.rope.freq_base', '100000000000'],
  [{ attentionScale: -1 }, 'llama.attention.scale', '-1'],
  [{ attentionScale: Number.POSITIVE_INFINITY }, 'llama.attention.scale', 'Infinity'],
  [{ attentionScale: 3e38 }, 'llama.attention.scale', '3e+38'],
  [{ embeddingScale: 1e300 }, 'llama.embedding_scale', '1e+300'],
  [{ residualScale: -1 }, 'llama.residual_scale', '-1'],
  [{ logitScale: 1e-45 }, 'llama.logit_scale', '1e-45'],
  [{ attentionSoftcapping: -50 }, 'llama.attn_logit_softcapping', '-50'],
  [{ finalLogitSoftcapping: 1e-7 }, 'llama.final_logit_softcapping', '1e-7'],
  [{ ropeScaling: { type: 'linear', factor: -2 } }, 'llama.rope.scaling.factor', '-2'],
  [{ ropeScaling: { type: 'none', attentionFactor: 0 } }, 'llama.rope.scaling.attn_factor', '0'],
  [{ ropeFreqBaseSliding: 0 }, 'llama.rope.freq_base_swa', '0'],
  [
    { ropeScaling: { type: 'yarn', factor: 4, originalContextLength: 0 } },
    'llama.rope.scaling.original_context_length',
    '0',
  ],
  [{ ropeScaling: { type: 'yarn', factor: 4 }, ropeFreqBase: 1 }, 'llama.rope.freq_base', '1'],
  [{ ropeScaling: { type: 'yarn', factor: 4, betaFast: 0 } }, 'llama.rope.scaling.yarn_beta_fast', '0'],
  [{ ropeScaling: { type: 'yarn', factor: 4, extFactor: -1 } }, 'llama.rope.scaling.yarn_ext_factor', '-1'],
  [{ expertCount: 1025, expertUsedCount: 8 }, 'llama.expert_count', '1025'],
  [{ expertCount: 8, expertUsedCount: 0 }, 'llama.expert_used_count', '0'],
  [{ expertCount: 8, expertUsedCount: 9 }, 'llama.expert_used_count', '9'],
  [{ expertCount: 8, expertUsedCount: 2, expertFeedForwardLength: 0 }, 'llama.expert_feed_forward_length', '0'],
  [{ vocabularySize: 0 }, 'tokenizer.ggml.tokens', 'a vocabulary of 0'],
  [{ vocabularySize: 1_000_001 }, 'tokenizer.ggml.tokens', 'a vocabulary of 1000001'],
];
for (const [hyperparameters, key, found] of BOUNDS) {
  refused(JSON.stringify(hyperparameters), { hyperparameters }, 'model-metadata-bounds-v1', key, `is ${found}`);
}

test('a hyperparameter out of bounds is told alone, and before there is a list of tensors', async () => {
  const hyperparameters = { ...HYPERPARAMETERS, blockCount: 2 ** 32 - 1 };
  await rejection(() => assertBounds('model.gguf', hyperparameters), 'CONTRACT', 'model.gguf', 'llama.block_count');
  assertBounds('model.gguf', HYPERPARAMETERS);
  assert.is(checkContract(input({ hyperparameters, tensors: { 'output_norm.weight': tensor([768]) } })).length, 1);
});

test('a number within a formula out of bounds does not hide the tensors, and is no obstacle', () => {
  const findings = checkContract(
    input({ hyperparameters: { rmsEps: Number.NaN }, tensors: { 'blk.0.extra.weight': tensor([4]) } }),
  );
  assert.equal(
    findings.map(({ rule, obstacle }) => [rule, obstacle]),
    [
      ['model-metadata-bounds-v1', null],
      ['TENSOR-KNOWN', null],
    ],
  );
  refuse('model.gguf', findings, true);
});

test('with the contract skipped, the first obstacle is told with its reason', async () => {
  const tensors = { 'blk.0.extra.weight': tensor([4]), 'output_norm.weight': undefined };
  const findings = checkContract(input({ tensors }));
  await rejection(() => refuse('model.gguf', findings), 'CONTRACT', 'output_norm.weight', '(and 1 more)');
  const error = await rejection(
    () => refuse('model.gguf', findings, true),
    'CONTRACT',
    'output_norm.weight is missing',
    '--skip-contract cannot pass over it: its values are part of every pass',
  );
  assert.is(error.details.findings, 1);
});

test('several findings: the first, and how many more', async () => {
  const change = {
    tensors: { 'output_norm.weight': tensor([768]), extra: tensor([1]), 'blk.0.attn_q.weight': undefined },
  };
  const error = await rejection(() => assertContract(input(change)), 'CONTRACT', 'output_norm.weight', '(and 2 more)');
  assert.is(error.details.findings, 3);
});

test('a broken file with an unsupported type is a broken file', async () => {
  const change = {
    tensors: { 'blk.0.attn_q.weight': tensor([1536, 1536], 'IQ2_XXS'), 'output_norm.weight': tensor([768]) },
  };
  await rejection(() => assertContract(input(change)), 'CONTRACT', 'output_norm.weight');
});

test.run();
