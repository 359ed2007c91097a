/** Metadata and random tensors of decoder-only models: what a file of a given shape has to hold. */

import type { GgmlTypeName } from '../../src/formats/ggml-types.ts';
import { f32, type MetadataValue, string, type TensorSource, u32 } from './gguf-writer.ts';
import type { Random } from './random.ts';
import { randomWeights } from './random-weights.ts';

export interface DecoderShape {
  readonly architecture:
    | 'llama'
    | 'qwen2'
    | 'qwen3'
    | 'qwen3moe'
    | 'gemma2'
    | 'gemma3'
    | 'granite'
    | 'olmo2'
    | 'phi3'
    | 'qwen2moe'
    | 'smollm3';
  readonly blocks: number;
  readonly width: number;
  readonly feedForward: number;
  readonly heads: number;
  readonly headsKv: number;
  readonly headDim: number;
  readonly vocabulary: number;
  readonly context: number;
  readonly ropeBase: number;
  readonly rmsEps: number;
  readonly tiedHead: boolean;
  /** Absent: a dense model. */
  readonly experts?: {
    readonly count: number;
    readonly used: number;
    /** Inner width of the expert that every token goes through, where the architecture has one. */
    readonly shared?: number;
  };
  /** Factors that Granite's files have. */
  readonly factors?: {
    readonly embedding: number;
    readonly residual: number;
    readonly attention: number;
    /** A divisor. */
    readonly logits: number;
  };
  /** Values of a head that RoPE turns, `headDim` by default. */
  readonly ropeDims?: number;
  /** Divisors of the RoPE frequencies, [ropeDims / 2], by the name of their tensor without `.weight`. */
  readonly ropeFactors?: Readonly<Record<string, readonly number[]>>;
}

/** How large random weights are, so that activations keep their size through all layers. */
export interface DecoderScales {
  /** Standard deviation of embedding values. */
  readonly embedding: number;
  /** Weight of all blocks' outputs in the residual stream, the embedding being 1. */
  readonly branches: number;
  /** Standard deviation of logits, which the head's weights are made for; a tied head has the embedding's. */
  readonly logits: number;
  /** Standard deviation of norm weights around 1. */
  readonly norms: number;
  /** Standard deviation of q · k / √headDim; 1 attends to everything about equally. */
  readonly attention: number;
}

/** Type of a matrix by its name, `layer` being undefined outside the blocks. */
export type TypeOf = (tensor: string, layer: number | undefined) => GgmlTypeName;

export function decoderMetadata(name: string, shape: DecoderShape): Record<string, MetadataValue> {
  const { architecture } = shape;
  const key = (suffix: string): string => `${architecture}.${suffix}`;
  return {
    'general.architecture': string(architecture),
    'general.name': string(name),
    'general.quantization_version': u32(2),
    [key('block_count')]: u32(shape.blocks),
    [key('context_length')]: u32(shape.context),
    [key('embedding_length')]: u32(shape.width),
    [key('feed_forward_length')]: u32(shape.feedForward),
    [key('attention.head_count')]: u32(shape.heads),
    [key('attention.head_count_kv')]: u32(shape.headsKv),
    [key('attention.layer_norm_rms_epsilon')]: f32(shape.rmsEps),
    [key('rope.freq_base')]: f32(shape.ropeBase),
    ...(shape.headDim === shape.width / shape.heads
      ? {}
      : {
          [key('attention.key_length')]: u32(shape.headDim),
          [key('attention.value_length')]: u32(shape.headDim),
        }),
    ...(architecture === 'llama' || shape.ropeDims !== undefined
      ? { [key('rope.dimension_count')]: u32(shape.ropeDims ?? shape.headDim) }
      : {}),
    ...(shape.factors === undefined
      ? {}
      : {
          [key('embedding_scale')]: f32(shape.factors.embedding),
          [key('residual_scale')]: f32(shape.factors.residual),
          [key('attention.scale')]: f32(shape.factors.attention),
          [key('logit_scale')]: f32(shape.factors.logits),
        }),
    ...(shape.experts === undefined
      ? {}
      : {
          [key('expert_count')]: u32(shape.experts.count),
          [key('expert_used_count')]: u32(shape.experts.used),
          ...(architecture === 'llama' ? {} : { [key('expert_feed_forward_length')]: u32(shape.feedForward) }),
          ...(shape.experts.shared === undefined
            ? {}
            : { [key('expert_shared_feed_forward_length')]: u32(shape.experts.shared) }),
        }),
  };
}

/** Every tensor of such a file, in the order in which llama.cpp's converter writes them. */
export function decoderTensors(
  shape: DecoderShape,
  typeOf: TypeOf,
  scales: DecoderScales,
  random: Random,
): TensorSource[] {
  const { width, feedForward, headDim, architecture } = shape;
  const query = shape.heads * headDim;
  const keyValue = shape.headsKv * headDim;
  const gemma = architecture === 'gemma2' || architecture === 'gemma3';
  const preNorm = architecture !== 'olmo2';
  const postNorm = gemma || architecture === 'olmo2';
  const { factors } = shape;
  // Gemma multiplies its embedding by √width.
  const stream = scales.embedding * (gemma ? Math.sqrt(width) : (factors?.embedding ?? 1));
  // Each block adds two branches to the residual stream.
  const branch = (scales.branches * stream) / Math.sqrt(2 * shape.blocks) / (factors?.residual ?? 1);
  const sharpness = factors === undefined ? 1 : 1 / (factors.attention * Math.sqrt(headDim));
  const tensors: TensorSource[] = [];
  const matrix = (name: string, dims: number[], deviation: number, layer?: number): void => {
    const type = typeOf(name, layer);
    tensors.push({ name: `${name}.weight`, type, shape: dims, fill: randomWeights(type, deviation, random) });
  };
  const vector = (name: string, length: number, mean: number, deviation: number): void => {
    tensors.push({ name, type: 'F32', shape: [length], fill: randomWeights('F32', deviation, random, mean) });
  };
  const norm = (name: string, length: number): void => vector(`${name}.weight`, length, 1, scales.norms);

  matrix('token_embd', [width, shape.vocabulary], scales.embedding);
  norm('output_norm', width);
  if (!shape.tiedHead)
    matrix('output', [width, shape.vocabulary], ((factors?.logits ?? 1) * scales.logits) / Math.sqrt(width));
  for (const [name, factors] of Object.entries(shape.ropeFactors ?? {})) {
    tensors.push({
      name: `${name}.weight`,
      type: 'F32',
      shape: [factors.length],
      fill: (chunk) => chunk.set(new Uint8Array(Float32Array.from(factors).buffer)),
    });
  }
  for (let layer = 0; layer < shape.blocks; layer++) {
    const block = (name: string, dims: number[], deviation: number): void =>
      matrix(`blk.${layer}.${name}`, dims, deviation, layer);
    const unit = 1 / Math.sqrt(width); // a normed input of deviation 1 keeps it
    if (preNorm) norm(`blk.${layer}.attn_norm`, width);
    if (architecture === 'phi3') {
      block('attn_qkv', [width, query + 2 * keyValue], Math.sqrt(scales.attention) * unit);
    } else {
      block('attn_q', [width, query], sharpness * Math.sqrt(scales.attention) * unit);
      block('attn_k', [width, keyValue], Math.sqrt(scales.attention) * unit);
      block('attn_v', [width, keyValue], unit);
    }
    block('attn_output', [query, width], (2 * branch) / Math.sqrt(query)); // averaging over positions halves it
    if (architecture === 'qwen2' || architecture === 'qwen2moe') {
      vector(`blk.${layer}.attn_q.bias`, query, 0, 0.5);
      vector(`blk.${layer}.attn_k.bias`, keyValue, 0, 0.5);
      vector(`blk.${layer}.attn_v.bias`, keyValue, 0, 0.1);
    }
    if (
      architecture === 'qwen3' ||
      architecture === 'qwen3moe' ||
      architecture === 'olmo2' ||
      architecture === 'gemma3'
    ) {
      // Here the norms set the scale of queries and keys: of each head, or of all together.
      const [q, k] = architecture === 'olmo2' ? [query, keyValue] : [headDim, headDim];
      vector(`blk.${layer}.attn_q_norm.weight`, q, Math.sqrt(scales.attention), scales.norms);
      vector(`blk.${layer}.attn_k_norm.weight`, k, Math.sqrt(scales.attention), scales.norms);
    }
    // Behind these norms, the weights of the matrices before them have no say in the size of a branch.
    if (postNorm) vector(`blk.${layer}.post_attention_norm.weight`, width, branch, branch * scales.norms);
    if (preNorm) norm(`blk.${layer}.ffn_norm`, width);
    if (postNorm) vector(`blk.${layer}.post_ffw_norm.weight`, width, branch, branch * scales.norms);
    const down = (2.5 * branch) / Math.sqrt(feedForward); // silu(a) · b of unit a and b has a deviation of about 0.4
    if (shape.experts === undefined) {
      if (architecture === 'phi3') {
        block('ffn_up', [width, 2 * feedForward], unit); // gate, then up
      } else {
        block('ffn_gate', [width, feedForward], unit);
        block('ffn_up', [width, feedForward], unit);
      }
      block('ffn_down', [feedForward, width], down);
      continue;
    }
    const { count, shared } = shape.experts;
    // Surer than unit weights, so that few choices are close calls, which may fall either way in another engine; and less
    // sure than that two experts had all the weight, so that renormalising matters.
    block('ffn_gate_inp', [width, count], 2 * unit);
    block('ffn_gate_exps', [width, feedForward, count], unit);
    block('ffn_up_exps', [width, feedForward, count], unit);
    block('ffn_down_exps', [feedForward, width, count], down);
    if (shared !== undefined) {
      vector(`blk.${layer}.ffn_gate_inp_shexp.weight`, width, 0, 2 * unit);
      block('ffn_gate_shexp', [width, shared], unit);
      block('ffn_up_shexp', [width, shared], unit);
      block('ffn_down_shexp', [shared, width], (2.5 * branch) / Math.sqrt(shared));
    }
  }
  return tensors;
}

/** Whether llama.cpp's `_M` mixes give a layer's attn_v and ffn_down the larger type: both ends, and every third. */
export function moreBits(layer: number, blocks: number): boolean {
  const eighth = Math.floor(blocks / 8);
  return layer < eighth || layer >= Math.floor((7 * blocks) / 8) || (layer - eighth) % 3 === 2;
}
