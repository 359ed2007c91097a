/** Hyperparameters of a decoder, read from a file's metadata; what a file may leave out comes from one table. */

import { AprError } from '../errors.ts';
import type { RopeScaling } from '../graph/rope.ts';

/** The part of a file's metadata that is needed here; `src/formats` provides it. */
export interface MetadataReader {
  readonly sourceName: string;
  has(key: string): boolean;
  string(key: string): string | undefined;
  uint(key: string): number | undefined;
  float(key: string): number | undefined;
  bool(key: string): boolean | undefined;
  strings(key: string): { readonly length: number } | undefined;
  /** Elements of an array of booleans or of numbers, false as 0; undefined for anything else. */
  elements(key: string): ArrayLike<number> | undefined;
}

export interface Hyperparameters {
  /** The file, for messages. */
  readonly sourceName: string;
  /** `general.architecture` as the file has it. */
  readonly architecture: string;
  readonly blockCount: number;
  readonly contextLength: number;
  readonly embeddingLength: number;
  /** Inner width of a dense FFN; 0 where every layer is a mixture of experts. */
  readonly feedForwardLength: number;
  readonly headCount: number;
  readonly headCountKv: number;
  readonly headDim: number;
  readonly headDimV: number;
  readonly rmsEps: number;
  readonly ropeFreqBase: number;
  readonly ropeDims: number;
  readonly ropeScaling: RopeScaling;
  /** `rope.scaling.finetuned`, which says false in files of Granite that do not turn queries and keys at all. */
  readonly ropeFinetuned: boolean | undefined;
  /** Context length that a file with two sets of RoPE factors changes them at. */
  readonly ropeOriginalContextLength: number;
  /** Factor on q · k. */
  readonly attentionScale: number;
  /** 0 for a dense model. */
  readonly expertCount: number;
  readonly expertUsedCount: number;
  readonly expertFeedForwardLength: number;
  /** Inner width of an expert that every token goes through; 0 for none. */
  readonly sharedExpertFeedForwardLength: number;
  /** Positions that a layer with a sliding window sees; 0 for none. Which layers have one, the architecture knows. */
  readonly slidingWindow: number;
  /** The last of so many layers has no sliding window, the others have one; undefined where the file does not say. */
  readonly slidingWindowPattern: number | undefined;
  /** Bounds of soft caps on the scores of attention and on the logits; 0 for none, undefined where the file does not say. */
  readonly attentionSoftcapping: number | undefined;
  readonly finalLogitSoftcapping: number | undefined;
  /** Factors on the embedding and on what blocks add to the residual stream, and divisor of the logits; 0 for none. */
  readonly embeddingScale: number;
  readonly residualScale: number;
  readonly logitScale: number;
  /** RoPE base of the layers with a sliding window; undefined where the file does not say. */
  readonly ropeFreqBaseSliding: number | undefined;
  readonly vocabularySize: number;
  /** Metadata keys that the file lacks, with the value taken instead. */
  readonly defaults: Readonly<Record<string, number>>;
}

/** `Qwen3-MoE`, `qwen3_moe` and `qwen3moe` are one architecture. */
export function normaliseArchitecture(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}

interface ArchitectureDefaults {
  readonly ropeFreqBase: number;
  readonly rmsEps: number;
  /** Whether an expert without a width of its own has its share of `feed_forward_length`, as one of those used. */
  readonly feedForwardOfUsedExperts: boolean;
}

/** What to take when a file does not say. Keyed by normalised architecture name. */
const DEFAULTS: Readonly<Record<string, Partial<ArchitectureDefaults>>> = {
  // The Qwen2 and Qwen3 families were trained with a base of 1e6; some converters leave it out.
  qwen2: { ropeFreqBase: 1e6, rmsEps: 1e-6 },
  qwen2moe: { ropeFreqBase: 1e6, rmsEps: 1e-6, feedForwardOfUsedExperts: true },
  qwen3: { ropeFreqBase: 1e6, rmsEps: 1e-6 },
  qwen3moe: { ropeFreqBase: 1e6, rmsEps: 1e-6, feedForwardOfUsedExperts: true },
};
const FALLBACK: ArchitectureDefaults = { ropeFreqBase: 1e4, rmsEps: 1e-5, feedForwardOfUsedExperts: false };

/**
 * Reads the hyperparameters that all decoder architectures share.
 * @throws AprError BAD_FORMAT for a missing or ill-typed key, UNSUPPORTED for an unknown RoPE scaling
 */
export function readHyperparameters(metadata: MetadataReader): Hyperparameters {
  const architecture = metadata.string('general.architecture');
  if (architecture === undefined) throw missing('general.architecture', 'the name of the model architecture');
  const table = { ...FALLBACK, ...DEFAULTS[normaliseArchitecture(architecture)] };
  const defaults: Record<string, number> = {};
  const key = (suffix: string): string => `${architecture}.${suffix}`;

  function missing(name: string, meaning: string): AprError {
    const message = `${metadata.sourceName}: metadata has no "${name}" (${meaning}); the file cannot be run without it`;
    return new AprError('BAD_FORMAT', message, { key: name });
  }
  function required(suffix: string, meaning: string): number {
    const value = metadata.uint(key(suffix));
    if (value === undefined) throw missing(key(suffix), meaning);
    return value;
  }
  function withDefault(suffix: string, value: number, read: 'uint' | 'float'): number {
    const found = metadata[read](key(suffix));
    if (found !== undefined) return found;
    defaults[key(suffix)] = value;
    return value;
  }

  const blockCount = required('block_count', 'number of layers');
  const embeddingLength = required('embedding_length', 'width of the residual stream');
  const headCount = required('attention.head_count', 'number of attention heads');
  const headCountKv = withDefault('attention.head_count_kv', headCount, 'uint');
  const headDim = metadata.uint(key('attention.key_length')) ?? embeddingLength / Math.max(1, headCount);
  const headDimV = metadata.uint(key('attention.value_length')) ?? embeddingLength / Math.max(1, headCount);
  const expertCount = metadata.uint(key('expert_count')) ?? 0;
  const contextLength = required('context_length', 'context length that the model was trained for');
  const expertUsedCount = expertCount > 0 ? required('expert_used_count', 'experts used for a token') : 0;
  const feedForwardLength =
    expertCount > 0
      ? (metadata.uint(key('feed_forward_length')) ?? 0)
      : required('feed_forward_length', 'inner width of the feed-forward network');
  const vocabularySize = metadata.strings('tokenizer.ggml.tokens')?.length ?? metadata.uint(key('vocab_size'));
  if (vocabularySize === undefined) throw missing('tokenizer.ggml.tokens', 'the vocabulary');

  return {
    sourceName: metadata.sourceName,
    architecture,
    blockCount,
    contextLength,
    embeddingLength,
    feedForwardLength,
    headCount,
    headCountKv,
    headDim,
    headDimV,
    rmsEps: withDefault('attention.layer_norm_rms_epsilon', table.rmsEps, 'float'),
    ropeFreqBase: withDefault('rope.freq_base', table.ropeFreqBase, 'float'),
    ropeDims: metadata.uint(key('rope.dimension_count')) ?? headDim,
    ropeScaling: readRopeScaling(metadata, key, contextLength),
    ropeFinetuned: metadata.bool(key('rope.scaling.finetuned')),
    ropeOriginalContextLength: metadata.uint(key('rope.scaling.original_context_length')) ?? contextLength,
    attentionScale: metadata.float(key('attention.scale')) || 1 / Math.sqrt(headDim),
    expertCount,
    expertUsedCount,
    expertFeedForwardLength:
      expertCount > 0 && table.feedForwardOfUsedExperts
        ? withDefault('expert_feed_forward_length', feedForwardLength / expertUsedCount, 'uint')
        : (metadata.uint(key('expert_feed_forward_length')) ?? feedForwardLength),
    sharedExpertFeedForwardLength: metadata.uint(key('expert_shared_feed_forward_length')) ?? 0,
    slidingWindow: metadata.uint(key('attention.sliding_window')) ?? 0,
    slidingWindowPattern: readSlidingWindowPattern(metadata, key('attention.sliding_window_pattern'), blockCount),
    attentionSoftcapping: metadata.float(key('attn_logit_softcapping')),
    finalLogitSoftcapping: metadata.float(key('final_logit_softcapping')),
    embeddingScale: metadata.float(key('embedding_scale')) ?? 0,
    residualScale: metadata.float(key('residual_scale')) ?? 0,
    logitScale: metadata.float(key('logit_scale')) ?? 0,
    ropeFreqBaseSliding: metadata.float(key('rope.freq_base_swa')),
    vocabularySize,
    defaults,
  };
}

/** A number, or, as files of OLMo 3 have it, an array that says of every layer whether it has a window. */
function readSlidingWindowPattern(metadata: MetadataReader, key: string, blockCount: number): number | undefined {
  const windows = metadata.elements(key);
  if (windows === undefined) return metadata.uint(key);
  const full = Array.prototype.indexOf.call(windows, 0);
  // As the number has it: 0 where every layer has a window.
  const period = full + 1;
  const repeats = Array.from(windows).every(
    (window, layer) => (window !== 0) === (period === 0 || (layer + 1) % period !== 0),
  );
  if (windows.length === blockCount && repeats) return period;
  const found =
    windows.length === blockCount
      ? `sets layers apart in no regular way (the first without a window is layer ${full})`
      : `has ${windows.length} elements`;
  throw new AprError(
    'UNSUPPORTED',
    `${metadata.sourceName}: metadata "${key}" ${found}, expected one element for each of the ${blockCount} layers, ` +
      'with every n-th of them false',
    { key },
  );
}

function readRopeScaling(
  metadata: MetadataReader,
  key: (suffix: string) => string,
  contextLength: number,
): RopeScaling {
  const factor = metadata.float(key('rope.scaling.factor')) ?? metadata.float(key('rope.scale_linear')) ?? 0;
  // It counts without a type as well: files of Phi-3 have LongRoPE's factors and this, and no more.
  const attentionFactor = metadata.float(key('rope.scaling.attn_factor')) ?? 1;
  // A factor without a type means linear scaling, as older files are written.
  const type = metadata.string(key('rope.scaling.type')) ?? 'linear';
  switch (type) {
    case 'none':
      return { type: 'none', attentionFactor };
    case 'linear':
      return factor === 0 ? { type: 'none', attentionFactor } : { type: 'linear', factor, attentionFactor };
    case 'longrope':
      return { type: 'longrope', factor: factor === 0 ? 1 : factor, attentionFactor };
    case 'yarn':
      return {
        type: 'yarn',
        factor: factor === 0 ? 1 : factor,
        originalContextLength: metadata.uint(key('rope.scaling.original_context_length')) ?? contextLength,
        betaFast: metadata.float(key('rope.scaling.yarn_beta_fast')) ?? 32,
        betaSlow: metadata.float(key('rope.scaling.yarn_beta_slow')) ?? 1,
        extFactor: metadata.float(key('rope.scaling.yarn_ext_factor')) ?? 1,
        attentionFactor: attentionFactor * (metadata.float(key('rope.scaling.yarn_attn_factor')) ?? 1),
      };
    default:
      throw new AprError(
        'UNSUPPORTED',
        `${metadata.sourceName}: RoPE scaling "${type}" (${key('rope.scaling.type')}) is not supported; ` +
          'none, linear, yarn and longrope are, and Llama 3 frequencies through rope_freqs.weight',
        { key: key('rope.scaling.type'), found: type },
      );
  }
}
