/**
 * OLMo 2 and OLMo 3: norms behind attention and FFN instead of before them, queries and keys normed over all heads. OLMo 3
 * has three layers with a sliding window, and without the scaling of RoPE, for each that sees everything.
 */

import { ropeParameters } from '../graph/rope.ts';
import type { Architecture } from './architecture.ts';
import {
  attention,
  attentionTensors,
  decoder,
  decoderTensors,
  denseFfn,
  denseFfnTensors,
  forEachBlock,
} from './blocks.ts';

/** Every fourth layer sees all positions, unless the file says otherwise. */
const PATTERN = 4;

const ATTENTION_POST_NORM = 'post_attention_norm.weight';
const FFN_POST_NORM = 'post_ffw_norm.weight';

export const olmo2: Architecture = {
  name: 'olmo2',
  adjust: (hp) => {
    if (hp.slidingWindow === 0 || hp.slidingWindowPattern !== undefined) return hp;
    const defaults = { ...hp.defaults, [`${hp.architecture}.attention.sliding_window_pattern`]: PATTERN };
    return { ...hp, slidingWindowPattern: PATTERN, defaults };
  },
  ropes: ({ ropeDims, ropeFreqBase, ropeFreqBaseSliding = ropeFreqBase, ropeScaling }) => [
    ropeParameters('halves', ropeDims, ropeFreqBase, ropeScaling),
    ropeParameters('halves', ropeDims, ropeFreqBaseSliding, { type: 'none' }),
  ],
  tensors: (hp) => [
    ...decoderTensors(hp),
    ...forEachBlock(hp, (prefix) => [
      ...attentionTensors(hp, prefix, { bias: 'none', norm: 'heads', preNorm: false }),
      { name: `${prefix}.${ATTENTION_POST_NORM}`, shape: [hp.embeddingLength], kind: 'vector' },
      ...denseFfnTensors(hp, prefix, 'none', false),
      { name: `${prefix}.${FFN_POST_NORM}`, shape: [hp.embeddingLength], kind: 'vector' },
    ]),
  ],
  forward: (ops, model) => {
    const { slidingWindow, slidingWindowPattern: pattern = 0 } = model.hyperparameters;
    const [everywhere, local] = model.ropes;
    // One as long as the cache hides nothing.
    const window = slidingWindow < model.contextLength ? slidingWindow : 0;
    return decoder(ops, model, (x, prefix, layer) => {
      // A pattern of 0 means that no layer sees all positions.
      const sliding = slidingWindow > 0 && (pattern === 0 || layer % pattern < pattern - 1);
      const attended = attention(ops, model, x, prefix, {
        preNorm: false,
        postNorm: ATTENTION_POST_NORM,
        rope: sliding ? local : everywhere,
        window: sliding ? window : 0,
      });
      return denseFfn(ops, model, attended, prefix, { preNorm: false, postNorm: FFN_POST_NORM });
    });
  },
};
