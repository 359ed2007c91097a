/** Qwen1.5-MoE and Qwen2-MoE: biases on Q, K and V, routed experts without renormalisation, and one for every token. */

import type { Activation } from '../graph/command.ts';
import type { Ops } from '../graph/ops.ts';
import type { Architecture, ExpectedTensor, Model } from './architecture.ts';
import {
  attention,
  attentionTensors,
  decoder,
  decoderTensors,
  forEachBlock,
  moeFfn,
  moeFfnTensors,
  rotation,
} from './blocks.ts';

/** The expert that every token goes through, weighed by a sigmoid of its own. */
function sharedExpert(ops: Ops, model: Model, x: Activation, prefix: string): Activation {
  const multiply = (name: string, input: Activation): Activation =>
    ops.mulMat(`ffn_${name}_shexp`, model.weight(`${prefix}.ffn_${name}_shexp.weight`), input);
  const inner = ops.swiglu('ffn_swiglu_shexp', multiply('gate', x), multiply('up', x));
  return ops.sigmoidGate('ffn_shexp_out', multiply('down', inner), multiply('gate_inp', x));
}

export const qwen2moe: Architecture = {
  name: 'qwen2moe',
  // The first files give one width only.
  adjust: (hp) => {
    if (hp.sharedExpertFeedForwardLength > 0) return hp;
    const defaults = {
      ...hp.defaults,
      [`${hp.architecture}.expert_shared_feed_forward_length`]: hp.feedForwardLength,
    };
    return { ...hp, sharedExpertFeedForwardLength: hp.feedForwardLength, defaults };
  },
  ropes: rotation('halves'),
  tensors: (hp) => [
    ...decoderTensors(hp),
    ...forEachBlock(hp, (prefix): ExpectedTensor[] => {
      const { embeddingLength: width, sharedExpertFeedForwardLength: inner } = hp;
      return [
        ...attentionTensors(hp, prefix, { bias: 'qkv' }),
        ...moeFfnTensors(hp, prefix),
        { name: `${prefix}.ffn_gate_inp_shexp.weight`, shape: [width], kind: 'matrix' },
        { name: `${prefix}.ffn_gate_shexp.weight`, shape: [width, inner], kind: 'matrix' },
        { name: `${prefix}.ffn_up_shexp.weight`, shape: [width, inner], kind: 'matrix' },
        { name: `${prefix}.ffn_down_shexp.weight`, shape: [inner, width], kind: 'matrix' },
      ];
    }),
  ],
  forward: (ops, model) =>
    decoder(ops, model, (x, prefix) =>
      moeFfn(ops, model, attention(ops, model, x, prefix), prefix, {
        normalise: false,
        shared: (normed) => sharedExpert(ops, model, normed, prefix),
      }),
    ),
};
