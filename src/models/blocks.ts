/** What decoder architectures have in common: embedding, attention, dense and mixture-of-experts FFN, head. */

import { AprError } from '../errors.ts';
import type { Activation, Weight } from '../graph/command.ts';
import type { Ops } from '../graph/ops.ts';
import { type RopeParameters, ropeParameters } from '../graph/rope.ts';
import type { Architecture, ExpectedTensor, Model } from './architecture.ts';
import type { Hyperparameters } from './hyperparameters.ts';

/**
 * The one rotation of an architecture that turns all heads alike. Its frequencies are divided by `rope_freqs.weight`, or
 * by LongRoPE's factors (Ding et al. 2024), where the file has such tensors: one set up to the original context length,
 * one for a KV cache that is longer.
 */
export function rotation(pairing: RopeParameters['pairing']): Architecture['ropes'] {
  return (hyperparameters, vectors, contextLength) => {
    const { sourceName, ropeDims, ropeFreqBase, ropeScaling, ropeOriginalContextLength } = hyperparameters;
    const tensors = ['rope_factors_short.weight', 'rope_factors_long.weight'] as const;
    const [name, unused] = contextLength > ropeOriginalContextLength ? [tensors[1], tensors[0]] : tensors;
    const factors = vectors.get('rope_freqs.weight') ?? vectors.get(name);
    if (factors === undefined && (ropeScaling.type === 'longrope' || vectors.has(unused))) {
      const message =
        `${sourceName}: tensor ${name} is missing, expected the divisors of RoPE frequencies for a context length of ` +
        `${contextLength}, the original one being ${ropeOriginalContextLength}`;
      throw new AprError('CONTRACT', message, { tensor: name });
    }
    return [ropeParameters(pairing, ropeDims, ropeFreqBase, ropeScaling, factors)];
  };
}

/** Divisors of the RoPE frequencies that a file may hold. */
export function ropeFactorTensors(hp: Hyperparameters): ExpectedTensor[] {
  const names = ['rope_freqs.weight', 'rope_factors_long.weight', 'rope_factors_short.weight'];
  return names.map((name) => ({ name, shape: [hp.ropeDims / 2], kind: 'vector', optional: true, setup: true }));
}

export interface DecoderVariant {
  /** Factor on the embedding. */
  readonly embeddingScale?: number;
  /** Factor on the head's products, which are the logits otherwise. */
  readonly logitScale?: number;
  /** Bound of a soft cap on the logits; 0 or absent for none. */
  readonly logitSoftCap?: number | undefined;
}

/** Records embedding and every block; for a pass with outputs also the final norm and the head. */
export function decoder(
  ops: Ops,
  model: Model,
  block: (x: Activation, prefix: string, layer: number) => Activation,
  { embeddingScale, logitScale, logitSoftCap = 0 }: DecoderVariant = {},
): Activation | undefined {
  const { blockCount, rmsEps } = model.hyperparameters;
  ops.layer = undefined;
  let x = ops.embed('embd', model.weight('token_embd.weight')); // [rows, embedding]
  if (embeddingScale !== undefined) x = ops.scale('embd_scaled', x, embeddingScale);
  for (let layer = 0; layer < blockCount; layer++) {
    ops.layer = layer;
    x = block(x, `blk.${layer}`, layer);
  }
  ops.layer = undefined;
  if (ops.outputs === 0) return undefined;
  x = ops.selectOutputs('output_rows', x); // [outputs, embedding]
  x = ops.rmsNorm('output_norm', x, model.weight('output_norm.weight'), rmsEps);
  const head = model.optional('output.weight') ?? model.weight('token_embd.weight');
  if (logitScale === undefined && logitSoftCap === 0) return ops.mulMat('logits', head, x); // [outputs, vocabulary]
  let logits = ops.mulMat('logits_raw', head, x);
  if (logitScale !== undefined) logits = ops.scale(logitSoftCap === 0 ? 'logits' : 'logits_scaled', logits, logitScale);
  return logitSoftCap === 0 ? logits : ops.softCap('logits', logits, logitSoftCap);
}

/** What stands before and behind attention or FFN. */
export interface BranchVariant {
  /** Whether the input is normed. Default true. */
  readonly preNorm?: boolean;
  /** Name within the block of a norm before the residual. */
  readonly postNorm?: string;
  /** Factor on what is added to the residual. */
  readonly residualScale?: number | undefined;
}

/** Where an architecture's attention differs from the common one. */
export interface AttentionVariant extends BranchVariant {
  /** Default: the model's first rotation. `none` leaves queries and keys as they are. */
  readonly rope?: RopeParameters | 'none';
  /** Positions that a row sees; 0 or absent for all. */
  readonly window?: number;
  /** Bound of a soft cap on the scaled q · k; 0 or absent for none. */
  readonly softCap?: number | undefined;
  /** Matrix of a projection. Default: `attn_q.weight`, `attn_k.weight`, `attn_v.weight` of the block. */
  readonly projection?: (name: 'q' | 'k' | 'v') => Weight;
}

/** Attention with its norm and residual. Biases and Q/K norms take part where the file has them. */
export function attention(
  ops: Ops,
  model: Model,
  input: Activation,
  prefix: string,
  variant: AttentionVariant = {},
): Activation {
  const { headCount, headCountKv, headDim, headDimV, rmsEps, attentionScale } = model.hyperparameters;
  const rope = variant.rope ?? (model.ropes[0] as RopeParameters);
  const project = (name: 'q' | 'k' | 'v' | 'output', weight: Weight, x: Activation): Activation => {
    const product = ops.mulMat(`attn_${name}`, weight, x);
    return ops.addBias(`attn_${name}_bias`, product, model.optional(`${prefix}.attn_${name}.bias`));
  };
  const projectInput = (name: 'q' | 'k' | 'v', x: Activation): Activation =>
    project(name, variant.projection?.(name) ?? model.weight(`${prefix}.attn_${name}.weight`), x);
  const rotate = (name: 'q' | 'k', x: Activation): Activation => {
    const norm = model.optional(`${prefix}.attn_${name}_norm.weight`); // [headDim], shared by all heads, or of all of them
    const normed = norm === undefined ? x : ops.rmsNorm(`attn_${name}_norm`, x, norm, rmsEps);
    return rope === 'none' ? normed : ops.rope(`attn_${name}_rope`, normed, headDim, rope);
  };
  const x = preNorm(ops, model, input, prefix, 'attn_norm', variant);
  const q = rotate('q', projectInput('q', x)); // [rows, headCount · headDim]
  const k = rotate('k', projectInput('k', x)); // [rows, headCountKv · headDim]
  const v = projectInput('v', x); // [rows, headCountKv · headDimV]
  const { window = 0, softCap = 0 } = variant;
  const shape = { headCount, headCountKv, headDim, headDimV, scale: attentionScale, window, softCap };
  const attended = ops.attention('attn_kqv', q, k, v, shape); // [rows, headCount · headDimV]
  const output = project('output', model.weight(`${prefix}.attn_output.weight`), attended);
  return residual(ops, model, input, output, prefix, 'attn', variant);
}

/** Where an architecture's dense FFN differs from the common one. */
export interface FfnVariant extends BranchVariant {
  /** Default `swiglu`. */
  readonly activation?: 'swiglu' | 'geglu';
  /** Matrix of a projection. Default: `ffn_gate.weight` and `ffn_up.weight` of the block. */
  readonly projection?: (name: 'gate' | 'up') => Weight;
}

/** Gated feed-forward with its norm and residual. */
export function denseFfn(
  ops: Ops,
  model: Model,
  input: Activation,
  prefix: string,
  variant: FfnVariant = {},
): Activation {
  const project = (name: 'gate' | 'up' | 'down', x: Activation): Activation => {
    const own = name === 'down' ? undefined : variant.projection?.(name);
    const product = ops.mulMat(`ffn_${name}`, own ?? model.weight(`${prefix}.ffn_${name}.weight`), x);
    return ops.addBias(`ffn_${name}_bias`, product, model.optional(`${prefix}.ffn_${name}.bias`));
  };
  const activation = variant.activation ?? 'swiglu';
  const x = preNorm(ops, model, input, prefix, 'ffn_norm', variant);
  const inner = ops[activation](`ffn_${activation}`, project('gate', x), project('up', x)); // [rows, feedForward]
  return residual(ops, model, input, project('down', inner), prefix, 'ffn', variant);
}

function preNorm(
  ops: Ops,
  model: Model,
  x: Activation,
  prefix: string,
  name: string,
  variant: BranchVariant,
): Activation {
  if (variant.preNorm === false) return x;
  return ops.rmsNorm(name, x, model.weight(`${prefix}.${name}.weight`), model.hyperparameters.rmsEps);
}

/** The input plus what was computed from it, normed and scaled as the variant says. */
function residual(
  ops: Ops,
  model: Model,
  input: Activation,
  output: Activation,
  prefix: string,
  name: 'attn' | 'ffn',
  { postNorm, residualScale }: BranchVariant,
): Activation {
  let branch = output;
  if (postNorm !== undefined) {
    const weight = model.weight(`${prefix}.${postNorm}`);
    branch = ops.rmsNorm(`${name}_post_norm`, branch, weight, model.hyperparameters.rmsEps);
  }
  if (residualScale !== undefined) branch = ops.scale(`${name}_scaled`, branch, residualScale);
  return ops.add(`${name}_residual`, input, branch);
}

export interface MoeVariant {
  /** Whether the chosen experts' weights are renormalised to sum 1. Default true. */
  readonly normalise?: boolean;
  /** What is added to the experts' sum, computed from their normed input. */
  readonly shared?: (x: Activation) => Activation;
}

/** Mixture of experts with its norm and residual: soft-max over all experts, the best `expertUsedCount`. */
export function moeFfn(
  ops: Ops,
  model: Model,
  input: Activation,
  prefix: string,
  { normalise = true, shared }: MoeVariant = {},
): Activation {
  const { expertUsedCount: slots, rmsEps } = model.hyperparameters;
  const x = ops.rmsNorm('ffn_norm', input, model.weight(`${prefix}.ffn_norm.weight`), rmsEps);
  const logits = ops.mulMat('ffn_gate_inp', model.weight(`${prefix}.ffn_gate_inp.weight`), x); // [rows, experts]
  const routing = ops.topK('ffn_routing', logits, slots, normalise);
  const experts = (name: string, input: Activation, perSlot: boolean): Activation =>
    ops.mulMatId(`ffn_${name}_exps`, model.weight(`${prefix}.ffn_${name}_exps.weight`), input, routing, slots, perSlot);
  const inner = ops.swiglu('ffn_swiglu', experts('gate', x, false), experts('up', x, false)); // [rows · slots, expertFf]
  const combined = ops.combine('ffn_moe_out', experts('down', inner, true), routing, slots);
  const output = shared === undefined ? combined : ops.add('ffn_out', combined, shared(x));
  return ops.add('ffn_residual', input, output);
}

/** Tensors outside the blocks. */
export function decoderTensors(hp: Hyperparameters): ExpectedTensor[] {
  return [
    { name: 'token_embd.weight', shape: [hp.embeddingLength, hp.vocabularySize], kind: 'matrix' },
    { name: 'output_norm.weight', shape: [hp.embeddingLength], kind: 'vector' },
    // Absent: the embedding matrix is the head.
    { name: 'output.weight', shape: [hp.embeddingLength, hp.vocabularySize], kind: 'matrix', optional: true },
  ];
}

/**
 * Tensors of attention in one block; `bias`, `norm` (of queries and keys, over each head or all of them) and `preNorm`
 * say how this architecture has them.
 */
export function attentionTensors(
  hp: Hyperparameters,
  prefix: string,
  {
    bias,
    norm = 'none',
    preNorm = true,
  }: { bias: 'none' | 'qkv' | 'optional'; norm?: 'none' | 'head' | 'heads'; preNorm?: boolean },
): ExpectedTensor[] {
  const q = hp.headCount * hp.headDim;
  const k = hp.headCountKv * hp.headDim;
  const v = hp.headCountKv * hp.headDimV;
  const attended = hp.headCount * hp.headDimV;
  const tensors: ExpectedTensor[] = [
    ...normTensors(hp, `${prefix}.attn_norm.weight`, preNorm),
    { name: `${prefix}.attn_q.weight`, shape: [hp.embeddingLength, q], kind: 'matrix' },
    { name: `${prefix}.attn_k.weight`, shape: [hp.embeddingLength, k], kind: 'matrix' },
    { name: `${prefix}.attn_v.weight`, shape: [hp.embeddingLength, v], kind: 'matrix' },
    { name: `${prefix}.attn_output.weight`, shape: [attended, hp.embeddingLength], kind: 'matrix' },
  ];
  if (bias !== 'none') {
    const optional = bias === 'optional';
    tensors.push(
      { name: `${prefix}.attn_q.bias`, shape: [q], kind: 'vector', optional },
      { name: `${prefix}.attn_k.bias`, shape: [k], kind: 'vector', optional },
      { name: `${prefix}.attn_v.bias`, shape: [v], kind: 'vector', optional },
    );
    if (optional) {
      tensors.push({ name: `${prefix}.attn_output.bias`, shape: [hp.embeddingLength], kind: 'vector', optional });
    }
  }
  if (norm !== 'none') {
    const each = norm === 'head';
    tensors.push(
      { name: `${prefix}.attn_q_norm.weight`, shape: [each ? hp.headDim : q], kind: 'vector' },
      { name: `${prefix}.attn_k_norm.weight`, shape: [each ? hp.headDim : k], kind: 'vector' },
    );
  }
  return tensors;
}

/** Tensors of a dense FFN in one block. */
export function denseFfnTensors(
  hp: Hyperparameters,
  prefix: string,
  bias: 'none' | 'optional',
  preNorm = true,
): ExpectedTensor[] {
  const tensors: ExpectedTensor[] = [
    ...normTensors(hp, `${prefix}.ffn_norm.weight`, preNorm),
    { name: `${prefix}.ffn_gate.weight`, shape: [hp.embeddingLength, hp.feedForwardLength], kind: 'matrix' },
    { name: `${prefix}.ffn_up.weight`, shape: [hp.embeddingLength, hp.feedForwardLength], kind: 'matrix' },
    { name: `${prefix}.ffn_down.weight`, shape: [hp.feedForwardLength, hp.embeddingLength], kind: 'matrix' },
  ];
  if (bias === 'optional') {
    tensors.push(
      { name: `${prefix}.ffn_gate.bias`, shape: [hp.feedForwardLength], kind: 'vector', optional: true },
      { name: `${prefix}.ffn_up.bias`, shape: [hp.feedForwardLength], kind: 'vector', optional: true },
      { name: `${prefix}.ffn_down.bias`, shape: [hp.embeddingLength], kind: 'vector', optional: true },
    );
  }
  return tensors;
}

function normTensors({ embeddingLength }: Hyperparameters, name: string, present: boolean): ExpectedTensor[] {
  return present ? [{ name, shape: [embeddingLength], kind: 'vector' }] : [];
}

/** Tensors of a mixture of experts in one block. */
export function moeFfnTensors(hp: Hyperparameters, prefix: string): ExpectedTensor[] {
  const { embeddingLength, expertCount, expertFeedForwardLength: inner } = hp;
  return [
    { name: `${prefix}.ffn_norm.weight`, shape: [embeddingLength], kind: 'vector' },
    { name: `${prefix}.ffn_gate_inp.weight`, shape: [embeddingLength, expertCount], kind: 'matrix' },
    { name: `${prefix}.ffn_gate_exps.weight`, shape: [embeddingLength, inner, expertCount], kind: 'matrix' },
    { name: `${prefix}.ffn_up_exps.weight`, shape: [embeddingLength, inner, expertCount], kind: 'matrix' },
    { name: `${prefix}.ffn_down_exps.weight`, shape: [inner, embeddingLength, expertCount], kind: 'matrix' },
  ];
}

/** The block's tensors for every layer. */
export function forEachBlock(hp: Hyperparameters, block: (prefix: string) => ExpectedTensor[]): ExpectedTensor[] {
  return Array.from({ length: hp.blockCount }, (_, layer) => block(`blk.${layer}`)).flat();
}
