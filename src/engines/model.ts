/** From a parsed file to a checked model: architecture, hyperparameters, handles to its tensors, RoPE frequencies. */

import { assertBounds, assertContract } from '../contract/index.ts';
import { AprError } from '../errors.ts';
import type { ModelFile, TensorInfo } from '../formats/model-file.ts';
import type { Weight } from '../graph/command.ts';
import { ropeParameters } from '../graph/rope.ts';
import type { Architecture, ExpectedTensor, Model } from '../models/architecture.ts';
import { type Hyperparameters, readHyperparameters } from '../models/hyperparameters.ts';
import { architectureOf } from '../models/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';

export interface PreparedModel {
  readonly architecture: Architecture;
  readonly model: Model;
  /** Tensors that a backend loads, in the order of the blocks. */
  readonly weights: readonly Weight[];
}

/**
 * Checks the file against the contract of its architecture.
 * @throws AprError CONTRACT, UNSUPPORTED, BAD_FORMAT
 */
export async function prepareModel(
  file: ModelFile,
  tokenizer: Tokenizer,
  supportedTypes: ReadonlySet<string>,
): Promise<PreparedModel> {
  const hyperparameters = readHyperparameters(file.metadata);
  const architecture = architectureOf(hyperparameters.architecture, file.source.name);
  // A list of expected tensors for four billion layers would not come back.
  assertBounds(file.source.name, hyperparameters);
  const expected = architecture.tensors(hyperparameters);
  assertContract({
    sourceName: file.source.name,
    tensors: file.tensors,
    expected,
    supportedTypes,
    hyperparameters,
    vocabulary: { size: tokenizer.vocabularySize, specialTokens: tokenizer.declaredSpecialTokens },
  });
  const present = expected.filter(({ name }) => (file.tensors.get(name)?.byteLength ?? 0) > 0);
  const handles = new Map(present.map((tensor) => [tensor.name, handleOf(tensor)]));
  const factors = await readVector(file, 'rope_freqs.weight');
  const { ropeDims, ropeFreqBase, ropeScaling } = hyperparameters;
  const model: Model = {
    hyperparameters,
    rope: ropeParameters(architecture.ropePairing, ropeDims, ropeFreqBase, ropeScaling, factors),
    weight: (name) => {
      const handle = handles.get(name);
      if (handle === undefined) throw new AprError('CONTRACT', `${file.source.name}: tensor ${name} is missing`);
      return handle;
    },
    optional: (name) => handles.get(name),
  };
  const weights = present.filter((tensor) => !tensor.setup).map(({ name }) => handles.get(name) as Weight);
  return { architecture, model, weights };
}

function handleOf({ name, shape }: ExpectedTensor): Weight {
  const [width = 1, rows = 1, experts = 1] = shape;
  return { kind: 'weight', name, width, rows, experts };
}

/** An f32 vector of the file, undefined when the file has none of that name. */
async function readVector(file: ModelFile, name: string): Promise<Float32Array | undefined> {
  const info: TensorInfo | undefined = file.tensors.get(name);
  if (info === undefined) return undefined;
  if (info.type.name !== 'F32') {
    const message = `${file.source.name}: tensor ${name} is ${info.type.name}, expected F32`;
    throw new AprError('UNSUPPORTED', message, { tensor: name, found: info.type.name });
  }
  const bytes = await file.source.read(info.offset, info.byteLength);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Float32Array.from({ length: info.byteLength / 4 }, (_, i) => view.getFloat32(i * 4, true));
}

export type { Hyperparameters };
