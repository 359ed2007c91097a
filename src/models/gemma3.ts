/**
 * Gemma 3, text: five layers with a sliding window and a RoPE base of their own for each that sees everything, norms
 * behind attention and FFN, GELU.
 */

import { AprError } from '../errors.ts';
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
import type { Hyperparameters } from './hyperparameters.ts';

/** Every sixth layer sees all positions, and the others turn from this base, unless the file says otherwise. */
const PATTERN = 6;
const LOCAL_BASE = 1e4;

/** The 27B model scales by its residual width a head, unlike the others. Source: config.py of google/gemma_pytorch. */
const WIDE_BLOCK_COUNT = 62;

const ATTENTION_POST_NORM = 'post_attention_norm.weight';
const FFN_POST_NORM = 'post_ffw_norm.weight';

/** A pattern of 0 means that no layer sees all positions. */
function isSliding(
  { slidingWindow, slidingWindowPattern: pattern = PATTERN }: Hyperparameters,
  layer: number,
): boolean {
  return slidingWindow > 0 && (pattern === 0 || layer % pattern < pattern - 1);
}

export const gemma3: Architecture = {
  name: 'gemma3',
  adjust: (hp) => {
    if ((hp.finalLogitSoftcapping ?? 0) !== 0) {
      const message = `${hp.sourceName}: gemma3.final_logit_softcapping is ${hp.finalLogitSoftcapping}, only 0 is supported`;
      throw new AprError('UNSUPPORTED', message);
    }
    const defaults: Record<string, number> = { ...hp.defaults };
    if (hp.slidingWindow > 0) {
      if (hp.slidingWindowPattern === undefined)
        defaults[`${hp.architecture}.attention.sliding_window_pattern`] = PATTERN;
      if (hp.ropeFreqBaseSliding === undefined) defaults[`${hp.architecture}.rope.freq_base_swa`] = LOCAL_BASE;
    }
    const wide = hp.blockCount === WIDE_BLOCK_COUNT;
    const attentionScale = wide ? 1 / Math.sqrt(hp.embeddingLength / hp.headCount) : hp.attentionScale;
    return { ...hp, attentionScale, defaults };
  },
  ropes: ({ ropeDims, ropeFreqBase, ropeFreqBaseSliding = LOCAL_BASE, ropeScaling }) => [
    ropeParameters('halves', ropeDims, ropeFreqBase, ropeScaling),
    ropeParameters('halves', ropeDims, ropeFreqBaseSliding, { type: 'none' }),
  ],
  tensors: (hp) => [
    ...decoderTensors(hp),
    ...forEachBlock(hp, (prefix) => [
      ...attentionTensors(hp, prefix, { bias: 'none', norm: 'head' }),
      { name: `${prefix}.${ATTENTION_POST_NORM}`, shape: [hp.embeddingLength], kind: 'vector' },
      ...denseFfnTensors(hp, prefix, 'none'),
      { name: `${prefix}.${FFN_POST_NORM}`, shape: [hp.embeddingLength], kind: 'vector' },
    ]),
  ],
  forward: (ops, model) => {
    const { embeddingLength, slidingWindow } = model.hyperparameters;
    const [everywhere, local] = model.ropes;
    // One as long as the cache hides nothing.
    const window = slidingWindow < model.contextLength ? slidingWindow : 0;
    return decoder(
      ops,
      model,
      (x, prefix, layer) => {
        const sliding = isSliding(model.hyperparameters, layer);
        const attended = attention(ops, model, x, prefix, {
          rope: sliding ? local : everywhere,
          window: sliding ? window : 0,
          postNorm: ATTENTION_POST_NORM,
        });
        return denseFfn(ops, model, attended, prefix, { activation: 'geglu', postNorm: FFN_POST_NORM });
      },
      { embeddingScale: Math.sqrt(embeddingLength) },
    );
  },
};
