/** What a model file is, read from its header alone. */

import { createChatTemplate } from '../chat/index.ts';
import { AprError } from '../errors.ts';
import type { ModelFile } from '../formats/model-file.ts';
import { openModel } from '../formats/open-model.ts';
import { type Hyperparameters, readHyperparameters } from '../models/hyperparameters.ts';
import { architectureOf } from '../models/index.ts';
import type { Platform } from '../platform/platform.ts';
import { createTokenizer, type Tokenizer } from '../tokenizer/index.ts';

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
  /** Undefined where the file cannot be understood that far; `problems` says why. */
  readonly hyperparameters: Omit<Hyperparameters, 'sourceName' | 'defaults'> | undefined;
  /** Metadata keys that the file lacks, with the values that running it takes from the table of its architecture. */
  readonly defaults: Readonly<Record<string, number>>;
  readonly tokenizer: TokenizerInspection | undefined;
  readonly chat_template: 'file' | 'built-in' | 'none' | undefined;
  /** Why parts of this are missing: what running the file would refuse. */
  readonly problems: readonly string[];
  /** Keys with scalar values as they are, arrays by their length. */
  readonly metadata?: Readonly<Record<string, string | number | boolean>>;
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
}

/** @throws AprError NOT_FOUND, BAD_FORMAT, UNSUPPORTED, IO for a file whose header cannot be read */
export async function inspectFile(
  platform: Pick<Platform, 'openSource'>,
  source: string,
  options: InspectOptions = {},
): Promise<Inspection> {
  const bytes = await platform.openSource(source);
  try {
    const file = await openModel(bytes);
    const problems: string[] = [];
    /** The result, or undefined with the reason among the problems. */
    const attempt = <T>(read: () => T): T | undefined => {
      try {
        return read();
      } catch (error) {
        if (!(error instanceof AprError)) throw error;
        problems.push(error.message);
        return undefined;
      }
    };
    const hyperparameters = attempt(() => {
      const name = file.metadata.string('general.architecture');
      const architecture = name === undefined ? undefined : architectureOf(name, source);
      const read = readHyperparameters(file.metadata);
      return architecture?.adjust?.(read) ?? read;
    });
    const tokenizer = attempt(() => createTokenizer(file.metadata));
    const template =
      tokenizer === undefined
        ? undefined
        : attempt(() => createChatTemplate(file.metadata, tokenizer)?.origin ?? 'none');
    const { sourceName: _, defaults = {}, ...known } = hyperparameters ?? {};
    return {
      model: source,
      format: file.format,
      format_version: file.version,
      file_bytes: bytes.size,
      name: attempt(() => file.metadata.string('general.name')),
      architecture: attempt(() => file.metadata.string('general.architecture')),
      ...countTensors(file),
      hyperparameters: hyperparameters === undefined ? undefined : (known as Inspection['hyperparameters']),
      defaults,
      tokenizer: tokenizer === undefined ? undefined : describeTokenizer(file, tokenizer),
      chat_template: template,
      problems,
      ...(options.metadata === true ? { metadata: listMetadata(file) } : {}),
    };
  } finally {
    await bytes.close();
  }
}

function countTensors(file: ModelFile): Pick<Inspection, 'parameters' | 'tensors' | 'tensor_types'> {
  const types: Record<string, TensorTypeCount> = {};
  let parameters = 0;
  for (const { type, shape, byteLength } of file.tensors.values()) {
    const count = shape.reduce((product, size) => product * size, 1);
    const before = types[type.name] ?? { tensors: 0, values: 0, bytes: 0 };
    types[type.name] = {
      tensors: before.tensors + 1,
      values: before.values + count,
      bytes: before.bytes + byteLength,
    };
    parameters += count;
  }
  return { parameters, tensors: file.tensors.size, tensor_types: types };
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

function listMetadata({ metadata }: ModelFile): Record<string, string | number | boolean> {
  const list: Record<string, string | number | boolean> = {};
  for (const key of metadata.keys()) {
    const value = metadata.value(key)!;
    if (typeof value === 'bigint') list[key] = value.toString();
    else list[key] = typeof value === 'object' ? `${value.length} ${value.kind}` : value;
  }
  return list;
}
