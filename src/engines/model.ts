/** From a parsed file to a checked model: architecture, hyperparameters, handles to its tensors, RoPE frequencies. */

import { dequantize } from '../backends/reference/dequantize.ts';
import { type ContractVocabulary, checkBounds, checkContract, type Finding, refuse } from '../contract/index.ts';
import { AprError } from '../errors.ts';
import type { ModelFile, TensorInfo } from '../formats/model-file.ts';
import type { Weight } from '../graph/command.ts';
import type { Architecture, ExpectedTensor, Model } from '../models/architecture.ts';
import { type Hyperparameters, readHyperparameters } from '../models/hyperparameters.ts';
import { architectureOf } from '../models/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import { vocabularyOf } from './tokenizer.ts';

/** KV cache positions when nobody says how many and the file allows more. */
const DEFAULT_CONTEXT = 4096;
const MAX_CONTEXT = 2 ** 24;
/** Kernels take the rows of a matrix in groups of this many. */
const ROW_ALIGNMENT = 16;

export interface PreparedModel {
  readonly architecture: Architecture;
  readonly model: Model;
  /** Tensors that a backend loads, in the order of the blocks. */
  readonly weights: readonly Weight[];
  /** Rules of the contract that the file breaks and that were passed over. */
  readonly passedOver: readonly Finding[];
}

export interface PrepareOptions {
  /** Positions of the KV cache; 0 for the file's. Default: the file's, at most {@link DEFAULT_CONTEXT}. */
  readonly contextLength?: number | undefined;
  /** Pass over findings that leave something to compute. Default false. */
  readonly skipContract?: boolean | undefined;
}

export interface Examination {
  readonly architecture: Architecture;
  readonly hyperparameters: Hyperparameters;
  /** Empty when a size is out of bounds: a list of tensors for four billion layers would not come back. */
  readonly expected: readonly ExpectedTensor[];
  /** Every rule of the contract that the file breaks. */
  readonly findings: readonly Finding[];
}

/**
 * Holds the file against the contract of its architecture.
 * @param vocabulary of the tokenizer; absent, it is taken as what the metadata says
 * @throws AprError UNSUPPORTED for the architecture, BAD_FORMAT for metadata that cannot be read
 */
export function examineModel(
  file: ModelFile,
  vocabulary: ContractVocabulary | undefined,
  supportedTypes: ReadonlySet<string>,
): Examination {
  // Before its hyperparameters: another architecture may not have them at all.
  const name = file.metadata.string('general.architecture');
  if (name !== undefined) architectureOf(name, file.source.name);
  const read = readHyperparameters(file.metadata);
  const architecture = architectureOf(read.architecture, file.source.name);
  const hyperparameters = architecture.adjust?.(read) ?? read;
  const bounds = checkBounds(hyperparameters);
  if (bounds.some(({ obstacle }) => obstacle !== null))
    return { architecture, hyperparameters, expected: [], findings: bounds };
  const expected = architecture.tensors(hyperparameters);
  const findings = checkContract({
    sourceName: file.source.name,
    tensors: file.tensors,
    expected,
    supportedTypes,
    hyperparameters,
    vocabulary: vocabulary ?? { size: hyperparameters.vocabularySize, specialTokens: {} },
  });
  return { architecture, hyperparameters, expected, findings };
}

/**
 * Checks the file against the contract of its architecture.
 * @throws AprError CONTRACT, UNSUPPORTED, BAD_FORMAT
 */
export async function prepareModel(
  file: ModelFile,
  tokenizer: Tokenizer,
  supportedTypes: ReadonlySet<string>,
  { contextLength: asked, skipContract = false }: PrepareOptions = {},
): Promise<PreparedModel> {
  const examined = examineModel(file, vocabularyOf(tokenizer), supportedTypes);
  const { architecture, hyperparameters, expected, findings } = examined;
  refuse(file.source.name, findings, skipContract);
  const present = expected.filter(({ name }) => (file.tensors.get(name)?.byteLength ?? 0) > 0);
  const handles = new Map(present.map((tensor) => [tensor.name, handleOf(tensor)]));
  const vectors = new Map<string, Float32Array>();
  for (const { name } of present.filter(({ setup }) => setup)) vectors.set(name, await readVector(file, name));
  const contextLength = chooseContextLength(hyperparameters, asked);
  const weight = (name: string): Weight => {
    const handle = handles.get(name);
    if (handle === undefined) throw new AprError('CONTRACT', `${file.source.name}: tensor ${name} is missing`);
    return handle;
  };
  const model: Model = {
    hyperparameters,
    contextLength,
    ropes: architecture.ropes(hyperparameters, vectors, contextLength),
    weight,
    optional: (name) => handles.get(name),
    rows: (name, firstRow, rows) => {
      if (firstRow % ROW_ALIGNMENT === 0) return { ...weight(name), firstRow, rows };
      const message = `${file.source.name}: tensor ${name} is cut at row ${firstRow}, expected a multiple of ${ROW_ALIGNMENT}`;
      throw new AprError('UNSUPPORTED', message, { tensor: name, found: firstRow });
    },
  };
  const weights = present.filter((tensor) => !tensor.setup).map(({ name }) => handles.get(name) as Weight);
  return { architecture, model, weights, passedOver: findings };
}

function handleOf({ name, shape, kind }: ExpectedTensor): Weight {
  const [width = 1, rows = 1, experts = 1] = shape;
  return { kind: 'weight', name, width, rows, experts, firstRow: 0, vector: kind === 'vector' };
}

function chooseContextLength(
  { contextLength: trained, sourceName, architecture }: Hyperparameters,
  asked: number | undefined,
): number {
  if (asked === undefined) return Math.min(trained, DEFAULT_CONTEXT);
  if (!Number.isInteger(asked) || asked < 0 || asked > MAX_CONTEXT) {
    const message = `the context length is ${asked}, expected a whole number from 0 (the file's) to ${MAX_CONTEXT}`;
    throw new AprError('USAGE', message);
  }
  if (asked !== 0) return asked;
  if (trained <= MAX_CONTEXT) return trained;
  // Only with the contract skipped.
  const key = `${architecture}.context_length`;
  const message = `${sourceName}: metadata ${key} is ${trained}, more than the ${MAX_CONTEXT} that a KV cache can have; give the context length (-c)`;
  throw new AprError('CONTRACT', message, { key, found: trained, expected: MAX_CONTEXT });
}

/** A vector of the file, of a type that the contract lets vectors have, as f32. */
async function readVector(file: ModelFile, name: string): Promise<Float32Array> {
  const info = file.tensors.get(name) as TensorInfo;
  const bytes = await file.source.read(info.offset, info.byteLength);
  const values = new Float32Array(info.byteLength / info.type.blockBytes);
  dequantize(info.type, new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0, values.length, values);
  return values;
}
