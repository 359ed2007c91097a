/** Bounds on hyperparameters: what a real model has, and what arithmetic here can carry. */

import { type Finding, keyFinding } from './finding.ts';

export interface ContractHyperparameters {
  /** As `general.architecture` has it; it begins the other metadata keys. */
  readonly architecture: string;
  readonly blockCount: number;
  readonly contextLength: number;
  readonly embeddingLength: number;
  readonly feedForwardLength: number;
  readonly headCount: number;
  readonly headCountKv: number;
  readonly headDim: number;
  readonly headDimV: number;
  readonly rmsEps: number;
  readonly ropeFreqBase: number;
  /** Base of layers with a sliding window, where there are any. */
  readonly ropeFreqBaseSliding?: number | undefined;
  readonly ropeDims: number;
  readonly ropeScaling: RopeScalingNumbers;
  /** Factor on q · k. */
  readonly attentionScale: number;
  /** Factors and soft caps that an architecture may have; 0 and undefined for none. */
  readonly embeddingScale?: number;
  readonly residualScale?: number;
  readonly logitScale?: number;
  readonly attentionSoftcapping?: number | undefined;
  readonly finalLogitSoftcapping?: number | undefined;
  readonly expertCount: number;
  readonly expertUsedCount: number;
  readonly expertFeedForwardLength: number;
  readonly vocabularySize: number;
}

/** Scaling of RoPE; which numbers there are depends on the type. */
export interface RopeScalingNumbers {
  readonly type: string;
  readonly factor?: number;
  readonly originalContextLength?: number;
  readonly betaFast?: number;
  readonly betaSlow?: number;
  readonly extFactor?: number;
  readonly attentionFactor?: number;
}

/** Maxima of apr's model-metadata-bounds-v1, but for those with a comment. */
const RULE = 'model-metadata-bounds-v1';
const MAX_WIDTH = 65_536;
const MAX_HEADS = 256;
const MAX_BLOCKS = 256;
const MAX_INNER = 262_144;
const MAX_VOCABULARY = 1_000_000;
// apr: 2,097,152, but files with ten million exist; the cache is sized by what is asked for
const MAX_CONTEXT = 16_777_216;
const MAX_FREQ_BASE = 1e10; // apr: 1e8, but Mistral Small 3.1 and its kin have 1e9
const MAX_HEAD_DIM = 1024; // not bounded by apr; the largest published ones are 512 wide
const MAX_EXPERTS = 1024; // not bounded by apr; the most that is published is 896
const MAX_ROPE_FACTOR = 1e6; // the largest published ones are below 1,000
const MAX_FACTOR = 1e6; // not bounded by apr; published factors and caps lie between 0.001 and 100

/** Of sizes; numbers within the formulas have none, since whatever they are, the result is a number or NaN. */
const SIZE_OBSTACLE = 'memory and the work of the kernels are laid out by it';

export function boundsFindings(hp: ContractHyperparameters): Finding[] {
  const findings: Finding[] = [];
  const fail = (suffix: string, found: number, expected: string, obstacle: string | null = SIZE_OBSTACLE): void => {
    findings.push(keyFinding(RULE, `${hp.architecture}.${suffix}`, found, expected, obstacle));
  };
  const whole = (suffix: string, value: number, least: number, most: number): void => {
    if (!Number.isInteger(value) || value < least || value > most)
      fail(suffix, value, `a whole number from ${least} to ${most}`);
  };
  const real = (suffix: string, value: number, least: number, most: number): void => {
    if (!(value >= least && value <= most)) fail(suffix, value, `a number from ${least} to ${most}`, null);
  };
  const even = (suffix: string, value: number, most: number): void => {
    if (!Number.isInteger(value / 2) || value < 2 || value > most)
      fail(suffix, value, `an even number from 2 to ${most}`);
  };
  whole('block_count', hp.blockCount, 1, MAX_BLOCKS);
  if (hp.contextLength > MAX_CONTEXT) {
    // No obstacle: the cache has as many positions as are asked for.
    fail('context_length', hp.contextLength, `a whole number from 1 to ${MAX_CONTEXT}`, null);
  } else whole('context_length', hp.contextLength, 1, MAX_CONTEXT);
  whole('embedding_length', hp.embeddingLength, 1, MAX_WIDTH);
  whole('attention.head_count', hp.headCount, 1, MAX_HEADS);
  whole('attention.head_count_kv', hp.headCountKv, 1, MAX_HEADS);
  if (hp.headCountKv >= 1 && hp.headCount % hp.headCountKv !== 0) {
    fail('attention.head_count', hp.headCount, `a multiple of attention.head_count_kv, which is ${hp.headCountKv}`);
  }
  // Absent, they are embedding_length / attention.head_count.
  even('attention.key_length', hp.headDim, MAX_HEAD_DIM);
  even('attention.value_length', hp.headDimV, MAX_HEAD_DIM);
  even('rope.dimension_count', hp.ropeDims, Math.min(hp.headDim, MAX_HEAD_DIM));
  whole('expert_count', hp.expertCount, 0, MAX_EXPERTS);
  if (hp.expertCount > 0) {
    whole('expert_used_count', hp.expertUsedCount, 1, Math.min(hp.expertCount, MAX_EXPERTS));
    whole('expert_feed_forward_length', hp.expertFeedForwardLength, 1, MAX_INNER);
  } else {
    whole('feed_forward_length', hp.feedForwardLength, 1, MAX_INNER);
  }
  real('attention.layer_norm_rms_epsilon', hp.rmsEps, 1e-10, 0.01);
  real('attention.scale', hp.attentionScale, 1 / MAX_FACTOR, MAX_FACTOR);
  const optional = (suffix: string, value: number | undefined): void => {
    if (value) real(suffix, value, 1 / MAX_FACTOR, MAX_FACTOR);
  };
  optional('embedding_scale', hp.embeddingScale);
  optional('residual_scale', hp.residualScale);
  optional('logit_scale', hp.logitScale);
  optional('attn_logit_softcapping', hp.attentionSoftcapping);
  optional('final_logit_softcapping', hp.finalLogitSoftcapping);
  real('rope.freq_base', hp.ropeFreqBase, 1, MAX_FREQ_BASE);
  if (hp.ropeFreqBaseSliding !== undefined) real('rope.freq_base_swa', hp.ropeFreqBaseSliding, 1, MAX_FREQ_BASE);
  ropeScalingBounds(hp.ropeScaling, hp.ropeFreqBase, real);
  if (!Number.isInteger(hp.vocabularySize) || hp.vocabularySize < 1 || hp.vocabularySize > MAX_VOCABULARY) {
    const expected = `1 to ${MAX_VOCABULARY} tokens`;
    const found = `a vocabulary of ${hp.vocabularySize}`;
    findings.push(keyFinding(RULE, 'tokenizer.ggml.tokens', found, expected, SIZE_OBSTACLE));
  }
  return findings;
}

/** Each is a divisor, or within a logarithm. */
function ropeScalingBounds(
  scaling: RopeScalingNumbers,
  freqBase: number,
  real: (suffix: string, value: number, least: number, most: number) => void,
): void {
  const { factor, originalContextLength, betaFast, betaSlow, extFactor, attentionFactor } = scaling;
  if (factor !== undefined) real('rope.scaling.factor', factor, 1 / MAX_ROPE_FACTOR, MAX_ROPE_FACTOR);
  if (attentionFactor !== undefined) real('rope.scaling.attn_factor', attentionFactor, 1e-6, 1e6);
  if (scaling.type !== 'yarn') return;
  // YaRN divides by the logarithm of the base.
  real('rope.freq_base', freqBase, 1.001, MAX_FREQ_BASE);
  if (originalContextLength !== undefined) {
    real('rope.scaling.original_context_length', originalContextLength, 1, MAX_CONTEXT);
  }
  if (betaFast !== undefined) real('rope.scaling.yarn_beta_fast', betaFast, 1e-6, 1e6);
  if (betaSlow !== undefined) real('rope.scaling.yarn_beta_slow', betaSlow, 1e-6, 1e6);
  if (extFactor !== undefined) real('rope.scaling.yarn_ext_factor', extFactor, 0, 1);
}
