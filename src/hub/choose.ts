/** Which of many files is the model that is wanted. */

import { AprError } from '../errors.ts';
import { partNames } from '../formats/gguf/split.ts';

/** A model among the files of a repository or folder. */
export interface ModelChoice {
  /** Its files, of a split model all parts in order. */
  readonly paths: readonly string[];
  /** What the name says, such as `Q4_K_M`. */
  readonly quantisation: string | undefined;
}

/**
 * From the most to the least wanted: four bits first, since they cost little quality and fit most machines, then what is
 * closer to the original, then what is further from it.
 */
const PREFERENCE = [
  ...[
    'Q4_K_M',
    'UD-Q4_K_XL',
    'Q4_K_L',
    'Q4_K_S',
    'Q4_K',
    'Q4',
    'Q4_0',
    'IQ4_NL',
    'IQ4_XS',
    'MXFP4',
    'MXFP4_MOE',
    'Q4_1',
  ],
  ...['Q5_K_M', 'UD-Q5_K_XL', 'Q5_K_L', 'Q5_K_S', 'Q5_K', 'Q5_0', 'Q5_1', 'Q6_K', 'Q6_K_L', 'UD-Q6_K_XL'],
  ...['Q8_0', 'UD-Q8_K_XL', 'Q3_K_L', 'Q3_K_M', 'UD-Q3_K_XL', 'IQ3_M', 'IQ3_S', 'Q3_K_S', 'Q3_K', 'IQ3_XS', 'IQ3_XXS'],
  ...['BF16', 'F16', 'FP16', 'Q2_K', 'F32', 'FP32'],
];

/** What `-` or `.` sets apart at the end of a name: `Q4_K_M`, `IQ4_XS`, `UD-Q4_K_XL`, `BF16`, `MXFP4_MOE`. */
const QUANTISATION = /(?:^|[-._/])((?:UD-)?(?:I?Q\d(?:_[A-Z0-9]+)*|TQ\d_\d|MXFP4(?:_MOE)?|B?F16|FP16|F32|FP32))$/i;

/** Files beside a model that are none: image encoders, importance matrices, vocabularies. */
const NO_MODEL = /(^|[-._/])(mmproj|imatrix|vocab|lora)([-._]|$)/i;

/** The models among these files; of a split model whose parts are not all there, none. */
export function modelsAmong(paths: readonly string[]): ModelChoice[] {
  const there = new Set(paths);
  const models: ModelChoice[] = [];
  for (const path of [...there].sort()) {
    if (!/\.(gguf|apr)$/i.test(path) || NO_MODEL.test(path.slice(path.lastIndexOf('/') + 1))) continue;
    const parts = partNames(path);
    if (parts === undefined) models.push({ paths: [path], quantisation: quantisationOf(path) });
    else if (parts[0] === path && parts.every((part) => there.has(part))) {
      models.push({ paths: parts, quantisation: quantisationOf(path) });
    }
  }
  return models;
}

/** Undefined where the name does not say. */
export function quantisationOf(path: string): string | undefined {
  const stem = path.replace(/\.(gguf|apr)$/i, '').replace(/-\d{5}-of-\d{5}$/, '');
  return QUANTISATION.exec(stem)?.[1]?.toUpperCase();
}

/**
 * The model of that quantisation, or else the most wanted one.
 * @param where it was looked for, for messages
 * @param paths all files there
 * @throws AprError NOT_FOUND when there is none, USAGE when the choice is the user's
 */
export function chooseModel(where: string, paths: readonly string[], quantisation?: string): ModelChoice {
  const models = modelsAmong(paths);
  if (models.length === 0) throw noModel(where, paths);
  const rank = ({ quantisation: own }: ModelChoice): number => {
    const index = own === undefined ? -1 : PREFERENCE.indexOf(own);
    return index < 0 ? PREFERENCE.length : index;
  };
  const wanted = quantisation?.toUpperCase();
  let chosen = models.filter((model) => wanted === undefined || model.quantisation === wanted);
  if (chosen.length === 0) chosen = models.filter((model) => model.quantisation === `UD-${wanted}`);
  if (chosen.length === 0) {
    const message = `${where} has no ${wanted}; it has ${listed(models)}`;
    throw new AprError('NOT_FOUND', message, { found: wanted ?? '', expected: names(models) });
  }
  const best = Math.min(...chosen.map(rank));
  const bests = chosen.filter((model) => rank(model) === best);
  if (bests.length === 1) return bests[0]!;
  const message = `${where} has several models to choose from, name one of them: ${some(bests.map(({ paths }) => paths[0]!))}`;
  throw new AprError('USAGE', message, { expected: bests.map(({ paths }) => paths[0]!) });
}

/** The quantisations there are, the most wanted first. */
export function names(models: readonly ModelChoice[]): string[] {
  const all = [...new Set(models.map((model) => model.quantisation ?? model.paths[0]!))];
  const rank = (name: string): number => (PREFERENCE.indexOf(name) + PREFERENCE.length + 1) % (PREFERENCE.length + 1);
  return all.sort((a, b) => rank(a) - rank(b));
}

function listed(models: readonly ModelChoice[]): string {
  return some(names(models));
}

function some(list: readonly string[]): string {
  const shown = list.slice(0, 20);
  return shown.length === list.length ? shown.join(', ') : `${shown.join(', ')} and ${list.length - shown.length} more`;
}

function noModel(where: string, paths: readonly string[]): AprError {
  const kinds: readonly (readonly [RegExp, string])[] = [
    [/-\d{5}-of-\d{5}\.gguf$/i, 'parts of a split GGUF model, and not all of them'],
    [/\.safetensors$/i, 'safetensors; look for a repository of the same model with GGUF in its name'],
    [
      /\.(bin|pt|pth|onnx)$/i,
      'weights in another format; look for a repository of the same model with GGUF in its name',
    ],
  ];
  const kind = kinds.find(([pattern]) => paths.some((path) => pattern.test(path)))?.[1];
  const found = kind ?? (paths.length === 0 ? 'no files' : `${paths.length} other files`);
  return new AprError('NOT_FOUND', `${where} has no GGUF or .apr model; found ${found}`, { found });
}
