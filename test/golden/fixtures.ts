/** Models with values of llama.cpp: those of this repository, and the larger set beside it where there is one. */

import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { FIXTURES, SHARED } from '../repository.ts';

export type Scored = readonly [id: number, logprob: number];

/** One prompt on one file; how it is made stands in bench/peers/oracle.ts. */
export interface GoldenCase {
  readonly prompt: string;
  readonly tokens: readonly number[];
  readonly prompt_logprobs: readonly (readonly Scored[])[];
  readonly generated: readonly { readonly id: number; readonly top: readonly Scored[] }[];
  readonly text: string;
}

export interface GoldenModel {
  readonly name: string;
  readonly path: string;
  readonly vocab: number;
  readonly cases: readonly GoldenCase[];
}

/** Files of tensor types that have kernels: the suffix of a file says what it was quantised to. */
const SUPPORTED =
  /-(f32|f16|bf16|q[458]_0|q[45]_1|q[2-6]_k|q[345]_k_m|iq1_[sm]|iq[23]_xxs|iq2_xs|iq[23]_s|iq4_(nl|xs)|tq[12]_0|mxfp4_moe|q[12]_0)$/;

/** The repository's own models. */
export function committedModels(): GoldenModel[] {
  return modelsIn(join(FIXTURES, 'golden'), FIXTURES);
}

/** Models of ../shared whose types are supported and that the repository does not hold itself. */
export function sharedModels(): GoldenModel[] {
  if (SHARED === undefined) return [];
  const models = join(SHARED, 'models');
  const own = new Set(committedModels().map(({ name }) => name));
  return modelsIn(join(SHARED, 'golden'), models).filter(({ name }) => !own.has(name));
}

export function committedModel(name: string): GoldenModel {
  const model = committedModels().find((candidate) => candidate.name === name);
  if (model === undefined) throw new Error(`no golden values for ${name} in models-fixtures/golden`);
  return model;
}

function modelsIn(goldenFolder: string, modelFolder: string): GoldenModel[] {
  return readdirSync(goldenFolder)
    .filter((file) => file.endsWith('.json'))
    .map((file) => basename(file, '.json'))
    .filter((name) => SUPPORTED.test(name))
    .sort()
    .map((name) => {
      const golden = JSON.parse(readFileSync(join(goldenFolder, `${name}.json`), 'utf8')) as Omit<GoldenModel, 'name'>;
      return { ...golden, name, path: join(modelFolder, `${name}.gguf`) };
    });
}
