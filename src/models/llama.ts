/** Llama 1–3, Mistral, TinyLlama, SmolLM2, and Mixtral: files of all of these say `llama`. */

import type { Architecture } from './architecture.ts';
import {
  attention,
  attentionTensors,
  decoder,
  decoderTensors,
  denseFfn,
  denseFfnTensors,
  forEachBlock,
  moeFfn,
  moeFfnTensors,
  ropeFactorTensors,
  rotation,
} from './blocks.ts';

export const llama: Architecture = {
  name: 'llama',
  ropes: rotation('interleaved'),
  tensors: (hp) => [
    ...decoderTensors(hp),
    ...ropeFactorTensors(hp),
    ...forEachBlock(hp, (prefix) => [
      ...attentionTensors(hp, prefix, { bias: 'optional' }),
      ...(hp.expertCount > 0 ? moeFfnTensors(hp, prefix) : denseFfnTensors(hp, prefix, 'optional')),
    ]),
  ],
  forward: (ops, model) =>
    decoder(ops, model, (x, prefix) => {
      const ffn = model.hyperparameters.expertCount > 0 ? moeFfn : denseFfn;
      return ffn(ops, model, attention(ops, model, x, prefix), prefix);
    }),
};
