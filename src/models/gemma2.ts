/** Gemma 2: every second layer with a sliding window, norms behind attention and FFN too, soft caps, GELU. */

import type { Architecture } from './architecture.ts';
import {
  attention,
  attentionTensors,
  decoder,
  decoderTensors,
  denseFfn,
  denseFfnTensors,
  forEachBlock,
  rotation,
} from './blocks.ts';

/** Every second layer sees all positions, the others so many, unless the file says otherwise. */
const PATTERN = 2;
const WINDOW = 4096;
const ATTENTION_CAP = 50;
const FINAL_CAP = 30;

/** The 27B model scales by its residual width a head, unlike the others. Source: config.py of google/gemma_pytorch. */
const WIDE_BLOCK_COUNT = 46;

const ATTENTION_POST_NORM = 'post_attention_norm.weight';
const FFN_POST_NORM = 'post_ffw_norm.weight';

export const gemma2: Architecture = {
  name: 'gemma2',
  adjust: (hp) => {
    const defaults: Record<string, number> = { ...hp.defaults };
    const take = (found: number | undefined, suffix: string, value: number): number => {
      if (found !== undefined) return found;
      defaults[`${hp.architecture}.${suffix}`] = value;
      return value;
    };
    const wide = hp.blockCount === WIDE_BLOCK_COUNT;
    return {
      ...hp,
      slidingWindow: hp.slidingWindow === 0 ? take(undefined, 'attention.sliding_window', WINDOW) : hp.slidingWindow,
      slidingWindowPattern: take(hp.slidingWindowPattern, 'attention.sliding_window_pattern', PATTERN),
      attentionSoftcapping: take(hp.attentionSoftcapping, 'attn_logit_softcapping', ATTENTION_CAP),
      finalLogitSoftcapping: take(hp.finalLogitSoftcapping, 'final_logit_softcapping', FINAL_CAP),
      attentionScale: 1 / Math.sqrt(wide ? hp.embeddingLength / hp.headCount : hp.headDim),
      defaults,
    };
  },
  ropes: rotation('halves'),
  tensors: (hp) => [
    ...decoderTensors(hp),
    ...forEachBlock(hp, (prefix) => [
      ...attentionTensors(hp, prefix, { bias: 'none' }),
      { name: `${prefix}.${ATTENTION_POST_NORM}`, shape: [hp.embeddingLength], kind: 'vector' },
      ...denseFfnTensors(hp, prefix, 'none'),
      { name: `${prefix}.${FFN_POST_NORM}`, shape: [hp.embeddingLength], kind: 'vector' },
    ]),
  ],
  forward: (ops, model) => {
    const { embeddingLength, slidingWindow, slidingWindowPattern: pattern = PATTERN } = model.hyperparameters;
    const { attentionSoftcapping: softCap, finalLogitSoftcapping: logitSoftCap } = model.hyperparameters;
    // One as long as the cache hides nothing.
    const window = slidingWindow < model.contextLength ? slidingWindow : 0;
    return decoder(
      ops,
      model,
      (x, prefix, layer) => {
        // A pattern of 0 means that no layer sees all positions.
        const sliding = pattern === 0 || layer % pattern < pattern - 1;
        const attended = attention(ops, model, x, prefix, {
          window: sliding ? window : 0,
          softCap,
          postNorm: ATTENTION_POST_NORM,
        });
        return denseFfn(ops, model, attended, prefix, { activation: 'geglu', postNorm: FFN_POST_NORM });
      },
      { embeddingScale: Math.sqrt(embeddingLength), logitSoftCap },
    );
  },
};
