/** SmolLM3: Llama whose every fourth layer does not turn queries and keys (NoPE, Yang et al. 2025). */

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

/** Files do not say; llama.cpp has it as a constant too. */
const NO_ROPE_PERIOD = 4;

export const smollm3: Architecture = {
  name: 'smollm3',
  ropes: rotation('interleaved'),
  tensors: (hp) => [
    ...decoderTensors(hp),
    ...forEachBlock(hp, (prefix) => [
      ...attentionTensors(hp, prefix, { bias: 'optional' }),
      ...denseFfnTensors(hp, prefix, 'none'),
    ]),
  ],
  forward: (ops, model) =>
    decoder(ops, model, (x, prefix, layer) => {
      const variant = (layer + 1) % NO_ROPE_PERIOD === 0 ? ({ rope: 'none' } as const) : {};
      return denseFfn(ops, model, attention(ops, model, x, prefix, variant), prefix);
    }),
};
