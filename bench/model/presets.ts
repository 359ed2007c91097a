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
    const rowLength = tensor.endsWith('ffn_down') ? feedForward : width;
    if (rowLength % 256 !== 0) return odd;
    const more = layer === undefined || (/(attn_v|ffn_down)$/.test(tensor) && moreBits(layer, blocks));
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
  const scales = { embedding: 0.05, branches: 1, logits: 2, norms: 0.1, attention: 1 };
  return writeGguf(path, metadata, decoderTensors(shape, typeOf, scales, random));
}
