import { AprError } from '../errors.ts';
import { greatest, topIds } from './top.ts';

export interface Logprobs {
  /** Of the token asked about. */
  readonly chosen: number;
  /** The most probable tokens, best first, among equals the lower id first. */
  readonly top: readonly { readonly id: number; readonly logprob: number }[];
}

/**
 * Natural logarithms of the soft-max of the raw logits, summed in double precision.
 * @param logits [vocabularySize]
 * @throws AprError USAGE for a count that is no whole number from 0 up, INFERENCE when a logit is NaN or infinite
 */
export function logprobsOf(logits: Float32Array, token: number, count: number): Logprobs {
  if (!Number.isSafeInteger(count) || count < 0) {
    throw new AprError('USAGE', `logprobs is ${count}, expected a whole number from 0 up`, { option: 'logprobs' });
  }
  const best = greatest(logits);
  if (best < 0) throw new AprError('INFERENCE', 'a logit is NaN or infinite; the model file may be damaged');
  const most = logits[best]!;
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - most);
  const scale = most + Math.log(sum);
  const top = Array.from(topIds(logits, count), (id) => ({ id, logprob: logits[id]! - scale }));
  return { chosen: logits[token]! - scale, top };
}
