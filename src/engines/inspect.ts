/** What a model file is, read from its header alone. */

import { createChatTemplate } from '../chat/index.ts';
import { checkVocabulary } from '../contract/index.ts';
import { AprError } from '../errors.ts';
import type { ModelFile } from '../formats/model-file.ts';
import { openModel } from '../formats/open-model.ts';
import { type Hyperparameters, readHyperparameters } from '../models/hyperparameters.ts';
import { architectureOf } from '../models/index.ts';
import type { Platform } from '../platform/platform.ts';
import { createTokenizer, type Tokenizer, type TokenType } from '../tokenizer/index.ts';
import { fileTypeName } from './file-type.ts';
import { estimateMemory, loadEstimator, type MemoryEstimate } from './memory-estimate.ts';
import { vocabularyOf } from './tokenizer.ts';

export interface TensorTypeCount {
  readonly tensors: number;
  readonly values: number;
  readonly bytes: number;
}

export interface Inspection {
  /** The source as it was given. */
  readonly model: string;
  readonly format: ModelFile['format'];
  readonly format_version: number;
  readonly file_bytes: number;
  readonly name: string | undefined;
  readonly architecture: string | undefined;
  readonly parameters: number;
  readonly tensors: number;
  readonly tensor_types: Readonly<Record<string, TensorTypeCount>>;
  /** What the file calls its mix of types, such as Q4_K_M; undefined where it does not say. */
  readonly file_type: string | undefined;
  /** Bits of tensor data for a parameter. */
  readonly bits_per_weight: number;
  /** Undefined where the file cannot be understood that far; `problems` says why. */
  readonly hyperparameters: Omit<Hyperparameters, 'sourceName' | 'defaults'> | undefined;
  /** Metadata keys that the file lacks, with the values that running it takes from the table of its architecture. */
  readonly defaults: Readonly<Record<string, number>>;
  readonly tokenizer: TokenizerInspection | undefined;
  readonly chat_template: 'file' | 'built-in' | 'none' | undefined;
  /** Undefined for a file that cannot be run; `problems` says why. */
  readonly memory: MemoryEstimate | undefined;
  /** Why parts of this are missing: what running the file would refuse. */
  readonly problems: readonly string[];
  /** Keys with scalar values as they are, arrays by their length. */
  readonly metadata?: Readonly<Record<string, string | number | boolean>>;
  /** All tokens by their ids. */
  readonly vocabulary?: readonly TokenEntry[];
  /** Jinja source of the chat template; null without one. */
  readonly chat_template_source?: string | null;
}

export interface TokenEntry {
  readonly id: number;
  /** As the file writes it. */
  readonly token: string;
  /** What it stands for in a text; a part of a character shows as U+FFFD. */
  readonly text: string;
  readonly type: TokenType;
}

export interface TokenizerInspection {
  readonly model: string;
  readonly pre: string | undefined;
  readonly vocabulary_size: number;
  readonly add_bos: boolean;
  readonly add_eos: boolean;
  /** Text and id of each declared special token, by its metadata key. */
  readonly special_tokens: Readonly<Record<string, { readonly id: number; readonly text: string }>>;
  readonly end_of_generation: readonly number[];
}

export interface InspectOptions {
  /** List all metadata too. Default false. */
  metadata?: boolean;
  /** List all tokens too. Default false. */
  vocabulary?: boolean;
  /** Add the source of the chat template. Default false. */
  template?: boolean;
  /** Positions to count the KV cache for. Default: what running the file takes; 0 is the file's. */
  contextLength?: number;
  /** Threads to count memory for. Default: the machine's. */
  threads?: number;
}

/** @throws AprError NOT_FOUND, BAD_FORMAT, UNSUPPORTED, IO for a file whose header cannot be read */
export async function inspectFile(
  platform: Platform,
  source: string,
  options: InspectOptions = {},
): Promise<Inspection> {
  const bytes = await platform.openSource(source);
  try {
    const file = await openModel(bytes);
    // Compiled by other threads, while this one reads the tokenizer.
    const kernels = settled(loadEstimator(platform));
    const problems: string[] = [];
    const note = (error: unknown): undefined => {
      if (!(error instanceof AprError) || error.code === 'USAGE') throw error;
      // Several parts may fail for one reason.
      if (!problems.includes(error.message)) problems.push(error.message);
    };
    /** The result, or undefined with the reason among the problems. */
    const attempt = <T>(read: () => T): T | undefined => {
      try {
        return read();
      } catch (error) {
        return note(error);
      }
    };
    const hyperparameters = attempt(() => {
      const name = file.metadata.string('general.architecture');
      const architecture = name === undefined ? undefined : architectureOf(name, source);
      const read = readHyperparameters(file.metadata);
      return architecture?.adjust?.(read) ?? read;
    });
    const tokenizer = attempt(() => createTokenizer(file.metadata));
    if (tokenizer !== undefined) {
      for (const { message } of checkVocabulary(vocabularyOf(tokenizer))) problems.push(`${bytes.name}: ${message}`);
    }
    const template =
      tokenizer === undefined
        ? undefined
        : attempt(() => createChatTemplate(file.metadata, tokenizer) ?? ('none' as const));
    const memory =
      hyperparameters === undefined || tokenizer === undefined
        ? undefined
        : await kernels.then((module) => estimateMemory(platform, file, tokenizer, module(), options)).catch(note);
    const { sourceName: _, defaults = {}, ...known } = hyperparameters ?? {};
    return {
      model: source,
      format: file.format,
      format_version: file.version,
      file_bytes: bytes.size,
      name: attempt(() => file.metadata.string('general.name')),
      architecture: attempt(() => file.metadata.string('general.architecture')),
      ...countTensors(file),
      file_type: attempt(() => fileTypeName(file.metadata)),
      hyperparameters: hyperparameters === undefined ? undefined : (known as Inspection['hyperparameters']),
      defaults,
      tokenizer: tokenizer === undefined ? undefined : describeTokenizer(file, tokenizer),
      chat_template: typeof template === 'object' ? template.origin : template,
      memory,
      problems,
      ...(options.metadata === true ? { metadata: listMetadata(file) } : {}),
      ...(options.vocabulary === true && tokenizer !== undefined
        ? { vocabulary: listVocabulary(file, tokenizer) }
        : {}),
      ...(options.template === true
        ? { chat_template_source: typeof template === 'object' ? template.source : null }
        : {}),
    };
  } finally {
    await bytes.close();
  }
}

/** A promise whose failure waits for whoever asks, instead of ending the process when nobody does. */
async function settled<T>(promise: Promise<T>): Promise<() => T> {
  try {
    const value = await promise;
    return () => value;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

type TensorCounts = Pick<Inspection, 'parameters' | 'tensors' | 'tensor_types' | 'bits_per_weight'>;

function countTensors(file: ModelFile): TensorCounts {
  const types: Record<string, TensorTypeCount> = {};
  let parameters = 0;
  let bytes = 0;
  for (const { type, shape, byteLength } of file.tensors.values()) {
    const count = shape.reduce((product, size) => product * size, 1);
    const before = types[type.name] ?? { tensors: 0, values: 0, bytes: 0 };
    types[type.name] = {
      tensors: before.tensors + 1,
      values: before.values + count,
      bytes: before.bytes + byteLength,
    };
    parameters += count;
    bytes += byteLength;
  }
  const byShare = Object.entries(types).sort(([, a], [, b]) => b.bytes - a.bytes);
  return {
    parameters,
    tensors: file.tensors.size,
    tensor_types: Object.fromEntries(byShare),
    bits_per_weight: parameters === 0 ? 0 : (8 * bytes) / parameters,
  };
}

function describeTokenizer({ metadata }: ModelFile, tokenizer: Tokenizer): TokenizerInspection {
  const pre = metadata.value('tokenizer.ggml.pre');
  const special = Object.entries(tokenizer.declaredSpecialTokens).filter(([, id]) => id < tokenizer.vocabularySize);
  return {
    model: tokenizer.model,
    pre: typeof pre === 'string' ? pre : undefined,
    vocabulary_size: tokenizer.vocabularySize,
    add_bos: tokenizer.addBos,
    add_eos: tokenizer.addEos,
    special_tokens: Object.fromEntries(special.map(([key, id]) => [key, { id, text: tokenizer.tokenText(id) }])),
    end_of_generation: tokenizer.endOfGenerationIds,
  };
}

function listVocabulary({ metadata }: ModelFile, tokenizer: Tokenizer): TokenEntry[] {
  const tokens = metadata.strings('tokenizer.ggml.tokens');
  return Array.from({ length: tokenizer.vocabularySize }, (_, id) => ({
    id,
    token: tokens?.at(id) ?? '',
    text: tokenizer.tokenText(id),
    type: tokenizer.typeOf(id),
  }));
}

function listMetadata({ metadata }: ModelFile): Record<string, string | number | boolean> {
  const list: Record<string, string | number | boolean> = {};
  for (const key of metadata.keys()) {
    const value = metadata.value(key)!;
    if (typeof value === 'bigint') list[key] = value.toString();
    else list[key] = typeof value === 'object' ? `${value.length} ${value.kind}` : value;
  }
  return list;
}
