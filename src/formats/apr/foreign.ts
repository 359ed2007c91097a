/**
 * Metadata of .apr files that other programs wrote: names of Hugging Face's configurations and dotted tokenizer keys
 * become the GGUF keys that the rest of this program reads.
 */

import { AprError } from '../../errors.ts';
import type { MetadataEntry } from '../gguf/metadata.ts';
import type { MetadataTypeName } from '../metadata.ts';
import { printable } from '../printable.ts';
import { packStrings } from './strings.ts';
import { isObject, type Json, kindOf } from './typed-json.ts';

type JsonObject = { readonly [key: string]: Json };

/** GGUF's names of architectures, by other spellings without punctuation. */
const ALIASES: Readonly<Record<string, string>> = {
  mistral: 'llama',
  mixtral: 'llama',
  llamaforcausallm: 'llama',
  mistralforcausallm: 'llama',
  qwen2forcausallm: 'qwen2',
  qwen3forcausallm: 'qwen3',
  qwen3moeforcausallm: 'qwen3moe',
};

/** Order of the rows of Q and K: 0 pairs neighbours (NORM), 2 pairs halves (NEOX). Weights are as the pairs ask for. */
export const ROPE_TYPES: Readonly<Record<string, 0 | 2>> = {
  llama: 0,
  qwen2: 2,
  qwen2moe: 2,
  qwen3: 2,
  qwen3moe: 2,
  gemma3: 2,
  phi3: 2,
};

/** .apr's names of numbers, behind what GGUF keys end with. */
export const HYPERPARAMETERS: readonly (readonly [apr: string, gguf: string, type: 'uint32' | 'float32'])[] = [
  ['hidden_size', 'embedding_length', 'uint32'],
  ['num_layers', 'block_count', 'uint32'],
  ['num_heads', 'attention.head_count', 'uint32'],
  ['num_kv_heads', 'attention.head_count_kv', 'uint32'],
  ['intermediate_size', 'feed_forward_length', 'uint32'],
  ['max_position_embeddings', 'context_length', 'uint32'],
  ['vocab_size', 'vocab_size', 'uint32'],
  ['head_dim', 'attention.key_length', 'uint32'],
  ['rope_theta', 'rope.freq_base', 'float32'],
  ['rms_norm_eps', 'attention.layer_norm_rms_epsilon', 'float32'],
  ['num_experts', 'expert_count', 'uint32'],
  ['num_experts_per_tok', 'expert_used_count', 'uint32'],
  ['moe_intermediate_size', 'expert_feed_forward_length', 'uint32'],
];

/** Without these nothing can be computed. */
const REQUIRED = ['hidden_size', 'num_layers', 'num_heads', 'intermediate_size'] as const;

/** Names of tokenizer kinds, and what GGUF calls them. */
const TOKENIZERS: Readonly<Record<string, string>> = {
  bpe: 'gpt2',
  gpt2: 'gpt2',
  llama: 'llama',
  spm: 'llama',
  sentencepiece: 'llama',
};

const NORMAL = 1;
const CONTROL = 3;

/** @throws AprError BAD_FORMAT naming key, found and expected; UNSUPPORTED for rows of Q and K in another order */
export function foreignMetadata(sourceName: string, root: JsonObject): Map<string, MetadataEntry> {
  const entries = new Map<string, MetadataEntry>();
  const bad = (key: string, found: Json, expected: string): AprError => {
    const message = `${sourceName}: metadata "${printable(key)}" is ${kindOf(found)}, expected ${expected}`;
    return new AprError('BAD_FORMAT', message, { key, found: kindOf(found), expected });
  };
  const own = (key: string): Json => (Object.hasOwn(root, key) ? root[key]! : null);
  const text = (key: string): string | undefined => {
    const value = own(key);
    if (value !== null && typeof value !== 'string') throw bad(key, value, 'a string');
    return value ?? undefined;
  };
  const set = (key: string, type: MetadataTypeName, value: MetadataEntry['value'] | undefined): void => {
    if (value !== undefined) entries.set(key, { type, value });
  };

  const declared = text('architecture') ?? text('model_type');
  if (declared === undefined) throw bad('architecture', null, "the name of the model's architecture");
  const plain = declared.toLowerCase().replace(/[^a-z0-9]/g, '');
  const architecture = Object.hasOwn(ALIASES, plain) ? ALIASES[plain]! : plain;
  set('general.architecture', 'string', architecture);
  for (const key of ['name', 'description', 'author', 'license', 'version']) set(`general.${key}`, 'string', text(key));

  for (const key of REQUIRED) if (own(key) === null) throw bad(key, null, 'a whole number');
  for (const [key, suffix, type] of HYPERPARAMETERS) {
    const value = own(key);
    if (value === null) continue;
    const whole = type === 'uint32';
    const fits = typeof value === 'number' && (whole ? Number.isInteger(value) && value >= 0 && value < 2 ** 32 : true);
    if (!fits) throw bad(key, value, whole ? 'a whole number below 2^32' : 'a number');
    set(`${architecture}.${suffix}`, type, whole ? value : Math.fround(value));
    if (key === 'head_dim') set(`${architecture}.attention.value_length`, type, value);
  }
  refuseOtherRope(sourceName, architecture, own('rope_type'), bad);
  readTokenizer(own, text, set, bad);
  return entries;
}

function refuseOtherRope(
  sourceName: string,
  architecture: string,
  ropeType: Json,
  bad: (key: string, found: Json, expected: string) => AprError,
): void {
  if (ropeType === null) return;
  if (ropeType !== 0 && ropeType !== 2) throw bad('rope_type', ropeType, '0 (neighbours) or 2 (halves)');
  const expected = Object.hasOwn(ROPE_TYPES, architecture) ? ROPE_TYPES[architecture] : undefined;
  if (expected === undefined || expected === ropeType) return;
  const message =
    `${sourceName}: metadata "rope_type" is ${ropeType}, expected ${expected} for architecture ${architecture}; ` +
    'the rows of Q and K are in another order, convert the model from its GGUF file';
  throw new AprError('UNSUPPORTED', message, { key: 'rope_type', found: ropeType, expected });
}

function readTokenizer(
  own: (key: string) => Json,
  text: (key: string) => string | undefined,
  set: (key: string, type: MetadataTypeName, value: MetadataEntry['value'] | undefined) => void,
  bad: (key: string, found: Json, expected: string) => AprError,
): void {
  set('tokenizer.chat_template', 'string', text('tokenizer.chat_template') ?? text('chat_template'));
  const tokens = stringList('tokenizer.vocabulary', own, bad);
  if (tokens === undefined) return;
  set('tokenizer.ggml.tokens', 'array', packStrings(tokens));
  const model = text('tokenizer.model_type') ?? 'bpe';
  set('tokenizer.ggml.model', 'string', Object.hasOwn(TOKENIZERS, model) ? TOKENIZERS[model] : model);
  set('tokenizer.ggml.pre', 'string', text('tokenizer.pre_type'));
  const merges = stringList('tokenizer.merges', own, bad);
  if (merges !== undefined) set('tokenizer.ggml.merges', 'array', packStrings(merges));

  // The format has no types of tokens: those that it names, and what looks like <|…|>, are control tokens.
  const types = new Int32Array(tokens.length).fill(NORMAL);
  const special = own('special_tokens');
  const named = isObject(special) ? Object.values(special).filter((each) => typeof each === 'string') : [];
  const control = new Set<string>(named);
  tokens.forEach((token, id) => {
    if (control.has(token) || /^<\|[^|<>\s]+\|>$/.test(token)) types[id] = CONTROL;
  });
  for (const name of ['bos', 'eos'] as const) {
    const key = `tokenizer.${name}_token_id`;
    const id = own(key);
    if (id === null) continue;
    if (typeof id !== 'number' || !Number.isInteger(id) || id < 0 || id >= tokens.length) {
      throw bad(key, id, `an id below the vocabulary's ${tokens.length}`);
    }
    set(`tokenizer.ggml.${name}_token_id`, 'uint32', id);
    types[id] = CONTROL;
  }
  set('tokenizer.ggml.token_type', 'array', { kind: 'numbers', length: types.length, values: types });
}

function stringList(
  key: string,
  own: (key: string) => Json,
  bad: (key: string, found: Json, expected: string) => AprError,
): readonly string[] | undefined {
  const value = own(key);
  if (value === null) return undefined;
  if (!Array.isArray(value)) throw bad(key, value, 'an array of strings');
  for (const each of value as readonly Json[]) if (typeof each !== 'string') throw bad(key, each, 'strings only');
  return value as readonly string[];
}
