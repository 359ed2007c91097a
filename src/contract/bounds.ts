/** Bounds on hyperparameters: what a real model has, and what arithmetic here can carry. */

import type { Finding } from './finding.ts';

export interface ContractHyperparameters {
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
  readonly ropeDims: number;
  readonly expertCount: number;
  readonly expertUsedCount: number;
  readonly expertFeedForwardLength: number;
  readonly vocabularySize: number;
}

const RULE = 'model-metadata-bounds-v1';
const MAX_WIDTH = 65_536;
const MAX_HEADS = 256;
const MAX_BLOCKS = 256;
const MAX_INNER = 262_144;
const MAX_VOCABULARY = 1_000_000;
const MAX_CONTEXT = 16_777_216; // files with a million positions exist; the cache is sized by what is asked for
const MAX_HEAD_DIM = 1024;
const MAX_EXPERTS = 1024;

export function boundsFindings(hp: ContractHyperparameters): Finding[] {
  const findings: Finding[] = [];
  const fail = (name: string, found: number, expected: string, rule = RULE): void => {
    findings.push({ rule, found: String(found), expected, message: `${name} is ${found}, expected ${expected}` });
  };
  const whole = (name: string, value: number, least: number, most: number): void => {
    if (!Number.isInteger(value) || value < least || value > most) fail(name, value, `a whole number from ${least} to ${most}`);
  };
  const real = (name: string, value: number, least: number, most: number): void => {
    if (!(value >= least && value <= most)) fail(name, value, `a number from ${least} to ${most}`);
  };
  whole('block_count', hp.blockCount, 1, MAX_BLOCKS);
  whole('context_length', hp.contextLength, 1, MAX_CONTEXT);
  whole('embedding_length', hp.embeddingLength, 1, MAX_WIDTH);
  whole('attention.head_count', hp.headCount, 1, MAX_HEADS);
  whole('attention.head_count_kv', hp.headCountKv, 1, MAX_HEADS);
  whole('attention.key_length (head size)', hp.headDim, 2, MAX_HEAD_DIM);
  whole('attention.value_length (head size)', hp.headDimV, 2, MAX_HEAD_DIM);
  whole('vocabulary size', hp.vocabularySize, 1, MAX_VOCABULARY);
  real('attention.layer_norm_rms_epsilon', hp.rmsEps, 1e-10, 0.01);
  real('rope.freq_base', hp.ropeFreqBase, 1, 1e10);
  if (hp.headCount % hp.headCountKv !== 0) {
    fail('attention.head_count', hp.headCount, `a multiple of attention.head_count_kv ${hp.headCountKv}`);
  }
  if (hp.headDim % 2 !== 0) fail('attention.key_length (head size)', hp.headDim, 'an even number');
  if (hp.headDimV % 2 !== 0) fail('attention.value_length (head size)', hp.headDimV, 'an even number');
  if (!Number.isInteger(hp.ropeDims) || hp.ropeDims < 2 || hp.ropeDims % 2 !== 0 || hp.ropeDims > hp.headDim) {
    fail('rope.dimension_count', hp.ropeDims, `an even number from 2 to the head size ${hp.headDim}`);
  }
  whole('expert_count', hp.expertCount, 0, MAX_EXPERTS);
  if (hp.expertCount > 0) {
    whole('expert_used_count', hp.expertUsedCount, 1, hp.expertCount);
    whole('expert_feed_forward_length', hp.expertFeedForwardLength, 1, MAX_INNER);
  } else {
    whole('feed_forward_length', hp.feedForwardLength, 1, MAX_INNER);
  }
  return findings;
}
