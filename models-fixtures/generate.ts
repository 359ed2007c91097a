/**
 * Writes the tiny models with random weights beside this file, and what llama.cpp computes on them. They cover
 * architectures and tensor types for which there is no small trained model.
 *
 *   node dist/models-fixtures/generate.js files    the same bytes every time
 *   node dist/models-fixtures/generate.js golden   needs the network once, to install llama.cpp into .cache/
 */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DecoderShape, decoderMetadata, decoderTensors, type TypeOf } from '../bench/model/decoder.ts';
import { f32, type MetadataValue, string, u32, writeGguf } from '../bench/model/gguf-writer.ts';
import { createRandom } from '../bench/model/random.ts';
import {
  bpeMetadata,
  bpeVocabulary,
  LLAMA_CONTROL,
  sentencePieceMetadata,
  sentencePieceVocabulary,
} from '../bench/model/vocabulary.ts';
import { goldenValues } from '../bench/peers/oracle.ts';
import { REPOSITORY } from '../bench/repository.ts';
import type { GgmlTypeName } from '../src/formats/ggml-types.ts';

const FOLDER = join(REPOSITORY, 'models-fixtures');
/** Random weights that answer decidedly: sharp attention, logits far apart, norms that differ from channel to channel. */
const SCALES = { embedding: 0.5, branches: 1, logits: 2, norms: 0.2, attention: 1.5 };

interface Fixture {
  readonly shape: Partial<DecoderShape> & Pick<DecoderShape, 'architecture'>;
  readonly tokenizer: 'spm' | 'gemma' | 'phi3' | 'llama-bpe' | 'qwen2';
  readonly typeOf: TypeOf;
  /** Standard deviation of logits, {@link SCALES}' otherwise. */
  readonly logits?: number;
  readonly metadata?: Record<string, MetadataValue>;
}

interface SentencePieceFixture {
  readonly control: readonly string[];
  readonly bos?: string;
  readonly eos?: string;
  readonly addSpacePrefix?: boolean;
}

const BASE: Omit<DecoderShape, 'architecture'> = {
  blocks: 2,
  width: 64,
  feedForward: 160,
  heads: 4,
  headsKv: 2,
  headDim: 16,
  vocabulary: 384,
  context: 256,
  ropeBase: 1e4,
  rmsEps: 1e-5,
  tiedHead: false,
};

/** Enough for what an architecture does differently. */
const SMALL = { width: 32, feedForward: 48, heads: 2, headsKv: 1, vocabulary: 320 };

const all =
  (type: GgmlTypeName): TypeOf =>
  () =>
    type;

/** As llama.cpp's quantiser mixes them: `base`, but more bits for head, embedding, values and the way down. */
const mix = (base: GgmlTypeName, more: GgmlTypeName, odd: Readonly<Record<string, GgmlTypeName>> = {}): TypeOf => {
  return (tensor, layer) => {
    const part = tensor.replace(/^blk\.\d+\./, '');
    return odd[part] ?? (layer === undefined || part === 'attn_v' || part === 'ffn_down' ? more : base);
  };
};

const FIXTURES: Readonly<Record<string, Fixture>> = {
  'tiny-llama-spm-f16': {
    shape: { architecture: 'llama', headsKv: 4, vocabulary: 512 },
    tokenizer: 'spm',
    typeOf: all('F16'),
  },
  // Heads of 48 in a width of 256: attn_output's rows of 192 cannot be K-quants.
  'tiny-llama3-q4_k': {
    shape: {
      architecture: 'llama',
      width: 256,
      feedForward: 256,
      headDim: 48,
      ropeBase: 5e5,
      ropeFactors: { rope_freqs: llama3Factors(48, 5e5) },
    },
    tokenizer: 'llama-bpe',
    typeOf: mix('Q4_K', 'Q6_K', { attn_output: 'Q8_0' }),
  },
  'tiny-llama-linear-f16': {
    shape: { architecture: 'llama', headDim: 32 },
    tokenizer: 'llama-bpe',
    typeOf: all('F16'),
    metadata: { 'llama.rope.scaling.type': string('linear'), 'llama.rope.scaling.factor': f32(4) },
  },
  'tiny-llama-yarn-f16': {
    shape: { architecture: 'llama', headDim: 32 },
    tokenizer: 'llama-bpe',
    typeOf: all('F16'),
    metadata: {
      'llama.rope.scaling.type': string('yarn'),
      'llama.rope.scaling.factor': f32(4),
      'llama.rope.scaling.original_context_length': u32(64),
    },
  },
  'tiny-qwen2-yarn-f32': {
    shape: { architecture: 'qwen2', tiedHead: true },
    tokenizer: 'qwen2',
    typeOf: all('F32'),
    metadata: {
      'qwen2.rope.scaling.type': string('yarn'),
      'qwen2.rope.scaling.factor': f32(8),
      'qwen2.rope.scaling.original_context_length': u32(48),
      'qwen2.rope.scaling.attn_factor': f32(0.75),
    },
  },
  'tiny-qwen2-f32': { shape: { architecture: 'qwen2' }, tokenizer: 'qwen2', typeOf: all('F32') },
  'tiny-qwen2-f16': { shape: { architecture: 'qwen2', tiedHead: true }, tokenizer: 'qwen2', typeOf: all('F16') },
  // Activations rounded to 8 bits: flatter logits, so that roundings that fall the other way stay within tolerance.
  'tiny-qwen2-bf16': { shape: { architecture: 'qwen2' }, tokenizer: 'qwen2', typeOf: all('BF16'), logits: 1.5 },
  'tiny-qwen3-q5_k': {
    shape: { architecture: 'qwen3', width: 256, feedForward: 256, heads: 2, headsKv: 1, headDim: 128, ropeBase: 1e6 },
    tokenizer: 'qwen2',
    typeOf: mix('Q5_K', 'Q6_K'),
  },
  // As Mixtral: experts in a file that says llama. The router stays in f32.
  'tiny-mixtral-q8_0': {
    shape: { architecture: 'llama', feedForward: 64, experts: { count: 8, used: 2 } },
    tokenizer: 'spm',
    typeOf: (tensor) => (tensor.endsWith('ffn_gate_inp') ? 'F32' : 'Q8_0'),
  },
  // Chosen experts keep their share of the whole soft-max; one more, under a gate of its own, is used for every token.
  'tiny-qwen2moe-q8_0': {
    shape: { architecture: 'qwen2moe', feedForward: 64, experts: { count: 4, used: 2, shared: 96 } },
    tokenizer: 'qwen2',
    typeOf: (tensor) => (tensor.endsWith('ffn_gate_inp') ? 'F32' : 'Q8_0'),
  },
  // Seven blocks: one sees everything, the others fewer positions than the prompts have. RoPE is scaled in that one only.
  'tiny-gemma3-f16': {
    shape: {
      architecture: 'gemma3',
      blocks: 7,
      feedForward: 64,
      heads: 3,
      headsKv: 1,
      headDim: 32,
      ropeBase: 1e6,
      rmsEps: 1e-6,
      tiedHead: true,
    },
    tokenizer: 'gemma',
    typeOf: all('F16'),
    metadata: {
      'gemma3.attention.sliding_window': u32(12),
      'gemma3.rope.scaling.type': string('linear'),
      'gemma3.rope.scaling.factor': f32(8),
    },
  },
  // Q, K and V are rows of one matrix, gate and up of another; a quarter of each head does not turn.
  'tiny-phi3-q4_k': {
    shape: {
      architecture: 'phi3',
      width: 256,
      feedForward: 256,
      headsKv: 1,
      headDim: 64,
      ropeDims: 48,
      vocabulary: 512,
      tiedHead: true,
    },
    tokenizer: 'phi3',
    typeOf: all('Q4_K'),
    logits: 1.5,
  },
  // As converters write it: two sets of factors, the original context length and no rope.scaling.type.
  'tiny-phi3-longrope-f16': {
    shape: { architecture: 'phi3', feedForward: 96, ropeDims: 16, ropeFactors: longRopeFactors(16) },
    tokenizer: 'phi3',
    typeOf: all('F16'),
    metadata: {
      'phi3.rope.scaling.original_context_length': u32(64),
      'phi3.rope.scaling.attn_factor': f32(Math.sqrt(1 + Math.log(4) / Math.log(64))),
      // Written by converters, and left aside by llama.cpp.
      'phi3.attention.sliding_window': u32(16),
    },
  },
  // As OLMo 3: four blocks, of which the last sees everything and has its RoPE scaled.
  'tiny-olmo2-f16': {
    shape: { architecture: 'olmo2', ...SMALL, blocks: 4, ropeBase: 5e5 },
    tokenizer: 'qwen2',
    typeOf: all('F16'),
    metadata: {
      'olmo2.attention.sliding_window': u32(12),
      'olmo2.rope.scaling.type': string('yarn'),
      'olmo2.rope.scaling.factor': f32(8),
      'olmo2.rope.scaling.original_context_length': u32(48),
      'olmo2.rope.scaling.attn_factor': f32(1.2),
    },
  },
  'tiny-granite-f16': {
    shape: {
      architecture: 'granite',
      ...SMALL,
      factors: { embedding: 3, residual: 0.25, attention: 1 / 12, logits: 4 },
    },
    tokenizer: 'qwen2',
    typeOf: all('F16'),
  },
  // Five blocks, of which the fourth does not turn queries and keys.
  'tiny-smollm3-f16': {
    shape: { architecture: 'smollm3', ...SMALL, blocks: 5, ropeBase: 5e6, tiedHead: true },
    tokenizer: 'llama-bpe',
    typeOf: all('F16'),
  },
  // Caps that scores and logits feel, and a window shorter than the prompts.
  'tiny-gemma2-f16': {
    shape: { architecture: 'gemma2', ...SMALL, blocks: 3, rmsEps: 1e-6, tiedHead: true },
    tokenizer: 'gemma',
    typeOf: all('F16'),
    metadata: {
      'gemma2.attention.sliding_window': u32(12),
      'gemma2.attn_logit_softcapping': f32(1.5),
      'gemma2.final_logit_softcapping': f32(4),
    },
  },
};

const TEXTS = [
  'Once upon a time',
  'def is_prime(n):\n',
  '12345 + 67890 = naïve café — “quoted” 你好 🚀',
  'The quick brown fox jumps over the lazy dog, and then the dog runs after the fox until both of them are tired.',
];
const WORDS = [
  'the',
  'once',
  'upon',
  'time',
  'and',
  'quick',
  'brown',
  'fox',
  'jumps',
  'over',
  'lazy',
  'dog',
  'then',
  'prime',
  'def',
  'until',
  'both',
  'them',
  'tired',
  'after',
  'runs',
  'quoted',
  'hello',
  'world',
  'spaces',
  'again',
  'two',
  'user',
];

/** A prompt with control tokens for each tokenizer. */
const CONTROL: Readonly<Record<Fixture['tokenizer'], readonly string[]>> = {
  spm: ['<s>Hello  world', '  two  spaces </s><s> again'],
  gemma: [
    '<bos><start_of_turn>user\nHello  world<end_of_turn>\n<start_of_turn>model\n',
    '  two  spaces <eos><bos> again',
  ],
  phi3: ['<|user|>\nHello  world<|end|>\n<|assistant|>\n', '  two  spaces </s><s> again'],
  'llama-bpe': ['<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>'],
  qwen2: ['<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\n'],
};

/** Control tokens of the vocabularies that are SentencePiece's. */
const SENTENCE_PIECE: Partial<Record<Fixture['tokenizer'], SentencePieceFixture>> = {
  spm: { control: LLAMA_CONTROL },
  gemma: {
    control: ['<pad>', '<eos>', '<bos>', '<unk>', '<start_of_turn>', '<end_of_turn>'],
    bos: '<bos>',
    eos: '<eos>',
    addSpacePrefix: false,
  },
  phi3: { control: [...LLAMA_CONTROL, '<|endoftext|>', '<|user|>', '<|assistant|>', '<|end|>'], eos: '<|endoftext|>' },
};

/**
 * Divisors of RoPE frequencies as Llama 3.1's converter computes them (factor 8, low and high frequency factors 1 and
 * 4), for an original context of 64 so that short prompts feel them.
 */
function llama3Factors(dims: number, base: number): number[] {
  const [factor, low, high, original] = [8, 1, 4, 64];
  return Array.from({ length: dims / 2 }, (_, i) => {
    const wavelength = 2 * Math.PI * base ** ((2 * i) / dims);
    if (wavelength < original / high) return 1;
    if (wavelength > original / low) return factor;
    const smooth = (original / wavelength - low) / (high - low);
    return 1 / ((1 - smooth) / factor + smooth);
  });
}

/** Short and long divisors that differ from pair to pair, as LongRoPE's search finds them. */
function longRopeFactors(dims: number): Record<string, number[]> {
  const pairs = Array.from({ length: dims / 2 }, (_, i) => i);
  return {
    rope_factors_long: pairs.map((i) => 1 + i + (i % 3) / 4),
    rope_factors_short: pairs.map((i) => 1 + i / 16),
  };
}

function writeFixture(name: string, fixture: Fixture, seed: number): number {
  const { shape: given, tokenizer, typeOf, metadata = {}, logits = SCALES.logits } = fixture;
  const pieces = SENTENCE_PIECE[tokenizer];
  const shape: DecoderShape = { ...BASE, ...given, ...(pieces === undefined ? {} : { vocabulary: 512 }) };
  const random = createRandom(seed);
  // A tied head's logits have the embedding's deviation times √width, and it repeats the last token unless the blocks
  // outweigh the embedding.
  const tied = { embedding: logits / Math.sqrt(shape.width), branches: 6 };
  const scales = { ...SCALES, logits, ...(shape.tiedHead ? tied : {}) };
  const tokens = (): Record<string, MetadataValue> => {
    if (pieces !== undefined) {
      return sentencePieceMetadata(sentencePieceVocabulary(shape.vocabulary, WORDS, pieces.control), pieces);
    }
    const llama = tokenizer === 'llama-bpe';
    const control = llama
      ? ['<|begin_of_text|>', '<|end_of_text|>', '<|start_header_id|>', '<|end_header_id|>', '<|eot_id|>']
      : ['<|endoftext|>', '<|im_start|>', '<|im_end|>'];
    const merges = shape.vocabulary - 256 - control.length;
    const vocabulary = bpeVocabulary(shape.vocabulary, merges, control, random);
    const eos = llama ? '<|eot_id|>' : '<|im_end|>';
    return bpeMetadata(vocabulary, { pre: tokenizer, bos: control[0]!, eos, addBos: llama });
  };
  const entries = { ...decoderMetadata(name, shape), ...metadata, 'general.license': string('MIT'), ...tokens() };
  return writeGguf(join(FOLDER, `${name}.gguf`), entries, decoderTensors(shape, typeOf, scales, random));
}

const [command, ...names] = process.argv.slice(2);
const unknown = names.find((name) => FIXTURES[name] === undefined);
if ((command !== 'files' && command !== 'golden') || unknown !== undefined) {
  process.stderr.write(`usage: generate files|golden [NAME…]\nNAME is one of ${Object.keys(FIXTURES).join(', ')}\n`);
  process.exitCode = 2;
} else {
  for (const [i, [name, fixture]] of Object.entries(FIXTURES).entries()) {
    if (names.length > 0 && !names.includes(name)) continue;
    if (command === 'files') {
      process.stdout.write(`${name}: ${writeFixture(name, fixture, 100 + i)} bytes\n`);
      continue;
    }
    const golden = await goldenValues(join(FOLDER, `${name}.gguf`), [...TEXTS, ...CONTROL[fixture.tokenizer]]);
    writeFileSync(join(FOLDER, 'golden', `${name}.json`), `${JSON.stringify(golden)}\n`);
    process.stdout.write(`${name}: ${golden.cases.length} cases\n`);
  }
}
