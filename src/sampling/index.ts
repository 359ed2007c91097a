export { type Logprobs, logprobsOf } from './logprobs.ts';
export { type ResolvedSampling, validateSampling } from './options.ts';
export { createSampler, type Sampler } from './sampler.ts';
