/** Granite 3 and later, dense: Llama with factors on embedding, attention, residual branches and logits. */

import { AprError } from '../errors.ts';
import type { Architecture } from './architecture.ts';
import {
  attention,
  attentionTensors,
  decoder,
  decoderTensors,
  denseFfn,
  denseFfnTensors,
  forEachBlock,
  ropeFactorTensors,
  rotation,
} from './blocks.ts';

export const granite: Architecture = {
  name: 'granite',
  adjust: (hp) => {
    if (hp.logitScale !== 0) return hp;
    const key = `${hp.architecture}.logit_scale`;
    const message = `${hp.sourceName}: metadata ${key} is missing or 0, expected the divisor of the logits`;
    throw new AprError('BAD_FORMAT', message, { key });
  },
  ropes: rotation('interleaved'),
  tensors: (hp) => [
    ...decoderTensors(hp),
    ...ropeFactorTensors(hp),
    ...forEachBlock(hp, (prefix) => [
      ...attentionTensors(hp, prefix, { bias: 'optional' }),
      ...denseFfnTensors(hp, prefix, 'optional'),
    ]),
  ],
  forward: (ops, model) => {
    const { embeddingScale, residualScale: residual, logitScale, ropeFinetuned } = model.hyperparameters;
    // 0 stands for none.
    const residualScale = residual === 0 ? undefined : residual;
    const variant = { residualScale, ...(ropeFinetuned === false ? { rope: 'none' as const } : {}) };
    return decoder(
      ops,
      model,
      (x, prefix) => denseFfn(ops, model, attention(ops, model, x, prefix, variant), prefix, { residualScale }),
      { logitScale: 1 / logitScale, ...(embeddingScale === 0 ? {} : { embeddingScale }) },
    );
  },
};
