/** Phi-3 and Phi-3.5: Q, K and V in one matrix, gate and up in another, LongRoPE where the file has its factors. */

import type { Architecture, ExpectedTensor } from './architecture.ts';
import { attention, decoder, decoderTensors, denseFfn, forEachBlock, ropeFactorTensors, rotation } from './blocks.ts';

export const phi3: Architecture = {
  name: 'phi3',
  ropes: rotation('halves'),
  tensors: (hp) => {
    const qkv = hp.headCount * hp.headDim + hp.headCountKv * (hp.headDim + hp.headDimV);
    const attended = hp.headCount * hp.headDimV;
    const width = hp.embeddingLength;
    return [
      ...decoderTensors(hp),
      ...ropeFactorTensors(hp),
      ...forEachBlock(hp, (prefix): ExpectedTensor[] => [
        { name: `${prefix}.attn_norm.weight`, shape: [width], kind: 'vector' },
        { name: `${prefix}.attn_qkv.weight`, shape: [width, qkv], kind: 'matrix' },
        { name: `${prefix}.attn_output.weight`, shape: [attended, width], kind: 'matrix' },
        { name: `${prefix}.ffn_norm.weight`, shape: [width], kind: 'vector' },
        { name: `${prefix}.ffn_up.weight`, shape: [width, 2 * hp.feedForwardLength], kind: 'matrix' },
        { name: `${prefix}.ffn_down.weight`, shape: [hp.feedForwardLength, width], kind: 'matrix' },
      ]),
    ];
  },
  forward: (ops, model) => {
    const { headCount, headCountKv, headDim, headDimV, feedForwardLength } = model.hyperparameters;
    const q = headCount * headDim;
    const k = headCountKv * headDim;
    const v = headCountKv * headDimV;
    const slices = { q: { first: 0, count: q }, k: { first: q, count: k }, v: { first: q + k, count: v } };
    return decoder(ops, model, (x, prefix) => {
      const attended = attention(ops, model, x, prefix, {
        projection: (name) => model.rows(`${prefix}.attn_qkv.weight`, slices[name].first, slices[name].count),
      });
      return denseFfn(ops, model, attended, prefix, {
        projection: (name) =>
          model.rows(`${prefix}.ffn_up.weight`, name === 'gate' ? 0 : feedForwardLength, feedForwardLength),
      });
    });
  },
};
