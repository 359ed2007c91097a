/** Qwen2 and Qwen2.5, dense: biases on Q, K and V. */

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

export const qwen2: Architecture = {
  name: 'qwen2',
  ropes: rotation('halves'),
  tensors: (hp) => [
    ...decoderTensors(hp),
    ...forEachBlock(hp, (prefix) => [
      ...attentionTensors(hp, prefix, { bias: 'qkv' }),
      ...denseFfnTensors(hp, prefix, 'none'),
    ]),
  ],
  forward: (ops, model) =>
    decoder(ops, model, (x, prefix) => denseFfn(ops, model, attention(ops, model, x, prefix), prefix)),
};
