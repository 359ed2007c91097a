/** Qwen3 with a mixture of experts in every layer, such as Qwen3-Coder-30B-A3B. */

import type { Architecture } from './architecture.ts';
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

export const qwen3moe: Architecture = {
  name: 'qwen3moe',
  ropes: rotation('halves'),
  tensors: (hp) => [
    ...decoderTensors(hp),
    ...forEachBlock(hp, (prefix) => [
      ...attentionTensors(hp, prefix, { bias: 'none', norm: 'head' }),
      ...moeFfnTensors(hp, prefix),
    ]),
  ],
  forward: (ops, model) =>
    decoder(ops, model, (x, prefix) => moeFfn(ops, model, attention(ops, model, x, prefix), prefix)),
};
