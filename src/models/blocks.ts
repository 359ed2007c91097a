/** What decoder architectures have in common: embedding, attention, dense and mixture-of-experts FFN, head. */

import type { Activation } from '../graph/command.ts';
import type { Ops } from '../graph/ops.ts';
import { type RopeParameters, ropeParameters } from '../graph/rope.ts';
import type { Architecture, ExpectedTensor, Model } from './architecture.ts';
import type { Hyperparameters } from './hyperparameters.ts';

/** The one rotation of an architecture that turns all heads alike, with the divisors of `rope_freqs.weight` if any. */
export function rotation(pairing: RopeParameters['pairing']): Architecture['ropes'] {
  return ({ ropeDims, ropeFreqBase, ropeScaling }, vectors) => [
    ropeParameters(pairing, ropeDims, ropeFreqBase, ropeScaling, vectors.get('rope_freqs.weight')),
  ];
}

/** Records embedding, every block, the final norm and the head. */
export function decoder(ops: Ops, model: Model, block: (x: Activation, prefix: string) => Activation): Activation {
  const { blockCount, rmsEps } = model.hyperparameters;
  ops.layer = undefined;
  let x = ops.embed('embd', model.weight('token_embd.weight')); // [rows, embedding]
  for (let layer = 0; layer < blockCount; layer++) {
    ops.layer = layer;
    x = block(x, `blk.${layer}`);
  }
  ops.layer = undefined;
  x = ops.selectOutputs('output_rows', x); // [outputs, embedding]
  x = ops.rmsNorm('output_norm', x, model.weight('output_norm.weight'), rmsEps);
  const head = model.optional('output.weight') ?? model.weight('token_embd.weight');
  return ops.mulMat('logits', head, x); // [outputs, vocabulary]
}

/** Attention with its norm and residual. Biases and Q/K norms take part where the file has them. */
export function attention(ops: Ops, model: Model, input: Activation, prefix: string): Activation {
  const [rope] = model.ropes as [RopeParameters];
  const { headCount, headCountKv, headDim, headDimV, rmsEps, attentionScale } = model.hyperparameters;
  const project = (name: string, x: Activation): Activation => {
    const product = ops.mulMat(`attn_${name}`, model.weight(`${prefix}.attn_${name}.weight`), x);
    return ops.addBias(`attn_${name}_bias`, product, model.optional(`${prefix}.attn_${name}.bias`));
  };
  const rotate = (name: string, x: Activation): Activation => {
    const norm = model.optional(`${prefix}.attn_${name}_norm.weight`); // [headDim], shared by all heads
    const normed = norm === undefined ? x : ops.rmsNorm(`attn_${name}_norm`, x, norm, rmsEps);
    return ops.rope(`attn_${name}_rope`, normed, headDim, rope);
  };
  const x = ops.rmsNorm('attn_norm', input, model.weight(`${prefix}.attn_norm.weight`), rmsEps);
  const q = rotate('q', project('q', x)); // [rows, headCount · headDim]
  const k = rotate('k', project('k', x)); // [rows, headCountKv · headDim]
  const v = project('v', x); // [rows, headCountKv · headDimV]
  const shape = { headCount, headCountKv, headDim, headDimV, scale: attentionScale };
  const attended = ops.attention('attn_kqv', q, k, v, shape); // [rows, headCount · headDimV]
  return ops.add('attn_residual', input, project('output', attended));
}

/** SwiGLU feed-forward with its norm and residual. */
export function denseFfn(ops: Ops, model: Model, input: Activation, prefix: string): Activation {
  const project = (name: string, x: Activation): Activation => {
    const product = ops.mulMat(`ffn_${name}`, model.weight(`${prefix}.ffn_${name}.weight`), x);
    return ops.addBias(`ffn_${name}_bias`, product, model.optional(`${prefix}.ffn_${name}.bias`));
  };
  const x = ops.rmsNorm('ffn_norm', input, model.weight(`${prefix}.ffn_norm.weight`), model.hyperparameters.rmsEps);
  const inner = ops.swiglu('ffn_swiglu', project('gate', x), project('up', x)); // [rows, feedForward]
  return ops.add('ffn_residual', input, project('down', inner));
}

/**
 * Mixture of experts with its norm and residual: soft-max over all experts, the best `expertUsedCount`, weights
 * renormalised to sum 1.
 */
export function moeFfn(ops: Ops, model: Model, input: Activation, prefix: string): Activation {
  const { expertUsedCount: slots, rmsEps } = model.hyperparameters;
  const x = ops.rmsNorm('ffn_norm', input, model.weight(`${prefix}.ffn_norm.weight`), rmsEps);
  const logits = ops.mulMat('ffn_gate_inp', model.weight(`${prefix}.ffn_gate_inp.weight`), x); // [rows, experts]
  const routing = ops.topK('ffn_routing', logits, slots, true);
  const experts = (name: string, input: Activation, perSlot: boolean): Activation =>
    ops.mulMatId(`ffn_${name}_exps`, model.weight(`${prefix}.ffn_${name}_exps.weight`), input, routing, slots, perSlot);
  const inner = ops.swiglu('ffn_swiglu', experts('gate', x, false), experts('up', x, false)); // [rows · slots, expertFf]
  const combined = ops.combine('ffn_moe_out', experts('down', inner, true), routing, slots);
  return ops.add('ffn_residual', input, combined);
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

/** Tensors of attention in one block; `bias` and `norm` say how this architecture has them. */
export function attentionTensors(
  hp: Hyperparameters,
  prefix: string,
  { bias, norm = false }: { bias: 'none' | 'qkv' | 'optional'; norm?: boolean },
): ExpectedTensor[] {
  const q = hp.headCount * hp.headDim;
  const k = hp.headCountKv * hp.headDim;
  const v = hp.headCountKv * hp.headDimV;
  const attended = hp.headCount * hp.headDimV;
  const tensors: ExpectedTensor[] = [
    { name: `${prefix}.attn_norm.weight`, shape: [hp.embeddingLength], kind: 'vector' },
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
  if (norm) {
    tensors.push(
      { name: `${prefix}.attn_q_norm.weight`, shape: [hp.headDim], kind: 'vector' },
      { name: `${prefix}.attn_k_norm.weight`, shape: [hp.headDim], kind: 'vector' },
    );
  }
  return tensors;
}

/** Tensors of a dense FFN in one block. */
export function denseFfnTensors(hp: Hyperparameters, prefix: string, bias: 'none' | 'optional'): ExpectedTensor[] {
  const tensors: ExpectedTensor[] = [
    { name: `${prefix}.ffn_norm.weight`, shape: [hp.embeddingLength], kind: 'vector' },
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
