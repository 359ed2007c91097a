/** Qwen3, dense: an RMS norm on every query and key head before RoPE, no biases. */

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

export const qwen3: Architecture = {
  name: 'qwen3',
  ropes: rotation('halves'),
  tensors: (hp) => [
    ...decoderTensors(hp),
    ...forEachBlock(hp, (prefix) => [
      ...attentionTensors(hp, prefix, { bias: 'none', norm: 'head' }),
      ...denseFfnTensors(hp, prefix, 'none'),
    ]),
  ],
  forward: (ops, model) =>
    decoder(ops, model, (x, prefix) => denseFfn(ops, model, attention(ops, model, x, prefix), prefix)),
};
