/** Shapes of real models, filled with random weights: what benchmarks run on. */

import type { GgmlTypeName } from '../../src/formats/ggml-types.ts';
import { type DecoderShape, decoderMetadata, decoderTensors, moreBits, type TypeOf } from './decoder.ts';
import { string, u32, writeGguf } from './gguf-writer.ts';
import { createRandom } from './random.ts';
import { bpeMetadata, bpeVocabulary, CHAT_ML } from './vocabulary.ts';

interface Preset {
  readonly title: string;
  readonly shape: DecoderShape;
  readonly typeOf: TypeOf;
  /** `general.file_type` of llama.cpp. */
  readonly fileType: number;
}

const QWEN_VOCABULARY = 151_936;
const QWEN_MERGES = 151_387;
/** Ids behind the 256 bytes and the merges of Qwen2.5. */
const QWEN_CONTROL = [
  '<|endoftext|>',
  '<|im_start|>',
  '<|im_end|>',
  '<|object_ref_start|>',
  '<|object_ref_end|>',
  '<|box_start|>',
  '<|box_end|>',
  '<|quad_start|>',
  '<|quad_end|>',
  '<|vision_start|>',
  '<|vision_end|>',
  '<|vision_pad|>',
  '<|image_pad|>',
  '<|video_pad|>',
];

/**
 * The mix of Q4_K_M for a tied head: Q6_K for the embedding, and for attn_v and ffn_down of the layers with more bits.
 * Rows that are no multiple of 256 cannot be K-quants.
 */
function q4KM(blocks: number, width: number, feedForward: number, odd: GgmlTypeName): TypeOf {
  return (tensor, layer) => {
    if (tensor.endsWith('ffn_gate_inp')) return 'F32';
    const rowLength = /ffn_down(_exps)?$/.test(tensor) ? feedForward : width;
    if (rowLength % 256 !== 0) return odd;
    const more = layer === undefined || (/(attn_v|ffn_down(_exps)?)$/.test(tensor) && moreBits(layer, blocks));
    return more ? 'Q6_K' : 'Q4_K';
  };
}

function qwen25(blocks: number, width: number, feedForward: number, heads: number, headsKv: number): DecoderShape {
  return {
    architecture: 'qwen2',
    blocks,
    width,
    feedForward,
    heads,
    headsKv,
    headDim: width / heads,
    vocabulary: QWEN_VOCABULARY,
    context: 32_768,
    ropeBase: 1e6,
    rmsEps: 1e-6,
    tiedHead: true,
  };
}

/** Qwen3-0.6B with all its matrices in one type. */
function qwen3Small(type: GgmlTypeName, fileType: number): Preset {
  return {
    title: 'Synthetic Qwen3 0.6B shape',
    shape: {
      architecture: 'qwen3',
      blocks: 28,
      width: 1024,
      feedForward: 3072,
      heads: 16,
      headsKv: 8,
      headDim: 128,
      vocabulary: QWEN_VOCABULARY,
      context: 40_960,
      ropeBase: 1e6,
      rmsEps: 1e-6,
      tiedHead: true,
    },
    typeOf: () => type,
    fileType,
  };
}

export const PRESETS: Readonly<Record<string, Preset>> = {
  'qwen2.5-1.5b-q4_k_m': {
    title: 'Synthetic Qwen2.5 1.5B shape',
    shape: qwen25(28, 1536, 8960, 12, 2),
    typeOf: q4KM(28, 1536, 8960, 'Q8_0'),
    fileType: 15,
  },
  'qwen2.5-0.5b-q4_k_m': {
    title: 'Synthetic Qwen2.5 0.5B shape',
    shape: qwen25(24, 896, 4864, 14, 2),
    // llama.cpp falls back to Q5_0 where Q4_K does not fit; Q8_0 here, so the file is larger than a real one.
    typeOf: q4KM(24, 896, 4864, 'Q8_0'),
    fileType: 15,
  },
  'qwen3-0.6b-q8_0': qwen3Small('Q8_0', 7),
  'qwen3-0.6b-q4_0': qwen3Small('Q4_0', 2),
  'qwen3-0.6b-q6_k': qwen3Small('Q6_K', 18),
  'qwen3-0.6b-iq4_xs': qwen3Small('IQ4_XS', 30),
  'qwen3-0.6b-mxfp4': qwen3Small('MXFP4', 38),
  /** 18.6 GB. */
  'qwen3-coder-30b-a3b-q4_k_m': {
    title: 'Synthetic Qwen3-Coder 30B-A3B shape',
    shape: {
      architecture: 'qwen3moe',
      blocks: 48,
      width: 2048,
      feedForward: 768,
      heads: 32,
      headsKv: 4,
      headDim: 128,
      vocabulary: QWEN_VOCABULARY,
      context: 262_144,
      ropeBase: 1e7,
      rmsEps: 1e-6,
      tiedHead: false,
      experts: { count: 128, used: 8 },
    },
    typeOf: q4KM(48, 2048, 768, 'Q8_0'),
    fileType: 15,
  },
};

/**
 * Writes the file of a preset.
 * @returns its size in bytes
 * @throws RangeError for an unknown preset
 */
export function generateModel(name: string, path: string, seed = 1): number {
  const preset = PRESETS[name];
  if (preset === undefined) {
    throw new RangeError(`unknown model "${name}", expected one of ${Object.keys(PRESETS).join(', ')}`);
  }
  const { shape, title, fileType, typeOf } = preset;
  const random = createRandom(seed);
  const vocabulary = bpeVocabulary(shape.vocabulary, QWEN_MERGES, QWEN_CONTROL, random);
  const metadata = {
    ...decoderMetadata(title, shape),
    'general.file_type': u32(fileType),
    ...bpeMetadata(vocabulary, { pre: 'qwen2', bos: '<|endoftext|>', eos: '<|im_end|>', addBos: false }),
    'tokenizer.chat_template': string(CHAT_ML),
  };
  // The residual stream grows as it does in trained models, whose matrices all have a deviation of about 0.02: with less,
  // many more scales of blocks would be subnormal as f16 than theirs are.
  const scales = { embedding: 0.05, branches: 64, logits: 2, norms: 0.1, attention: 1 };
  return writeGguf(path, metadata, decoderTensors(shape, typeOf, scales, random));
}
