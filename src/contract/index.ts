/** What a model file must fulfil before a byte is allocated for it. */

import { AprError } from '../errors.ts';
import { boundsFindings, type ContractHyperparameters } from './bounds.ts';
import type { Finding } from './finding.ts';
import { type ContractTensor, type ExpectedTensor, TYPE_RULE, tensorFindings } from './tensors.ts';
import { type ContractVocabulary, vocabularyFindings } from './vocabulary.ts';

export type { ContractHyperparameters } from './bounds.ts';
export type { Finding } from './finding.ts';
export {
  duplicateFinding,
  QualityCounter,
  type QualityFinding,
  qualityFindings,
  type TensorQuality,
} from './quality.ts';
export type { ContractTensor, ExpectedTensor } from './tensors.ts';
export type { ContractVocabulary } from './vocabulary.ts';

export interface ContractInput {
  readonly sourceName: string;
  /** The file's tensors by name. */
  readonly tensors: ReadonlyMap<string, ContractTensor>;
  /** Every tensor that the architecture computes with, and no other. */
  readonly expected: readonly ExpectedTensor[];
  /** Types that the backend multiplies. */
  readonly supportedTypes: ReadonlySet<string>;
  readonly hyperparameters: ContractHyperparameters;
  readonly vocabulary: ContractVocabulary;
}

/** Every broken rule. With a size out of bounds no shapes are compared, since they follow from it. */
export function checkContract(input: ContractInput): Finding[] {
  const bounds = boundsFindings(input.hyperparameters);
  if (bounds.some(({ obstacle }) => obstacle !== null)) return bounds;
  return [
    ...bounds,
    ...vocabularyFindings(input.vocabulary, input.hyperparameters.vocabularySize),
    ...tensorFindings(input.tensors, input.expected, input.supportedTypes),
  ];
}

/** Every rule on special tokens that the vocabulary breaks. */
export function checkVocabulary(vocabulary: ContractVocabulary): Finding[] {
  return vocabularyFindings(vocabulary, vocabulary.size);
}

/** Every hyperparameter out of bounds. */
export function checkBounds(hyperparameters: ContractHyperparameters): Finding[] {
  return boundsFindings(hyperparameters);
}

/**
 * Checks the hyperparameters alone. To be called before the list of expected tensors is made: its length is the
 * file's word until then.
 * @throws AprError CONTRACT
 */
export function assertBounds(sourceName: string, hyperparameters: ContractHyperparameters): void {
  refuse(sourceName, boundsFindings(hyperparameters));
}

/** @throws AprError CONTRACT, or UNSUPPORTED when only tensor types are not as expected */
export function assertContract(input: ContractInput): void {
  refuse(input.sourceName, checkContract(input));
}

/**
 * Throws the first finding, if there is one. With `skipContract` only findings that are obstacles count, and the
 * caller goes on with the others unfulfilled.
 * @throws AprError CONTRACT, or UNSUPPORTED when only tensor types stand in the way
 */
export function refuse(sourceName: string, findings: readonly Finding[], skipContract = false): void {
  const counted = skipContract ? findings.filter(({ obstacle }) => obstacle !== null) : findings;
  const first = counted[0];
  if (first === undefined) return;
  const more = counted.length > 1 ? ` (and ${counted.length - 1} more)` : '';
  const code = counted.every(({ rule }) => rule === TYPE_RULE) ? 'UNSUPPORTED' : 'CONTRACT';
  const { rule, tensor, key, found, expected } = first;
  let advice = '';
  if (skipContract) advice = `; --skip-contract cannot pass over it: ${first.obstacle}`;
  else if (counted.every(({ obstacle }) => obstacle === null)) advice = '; --skip-contract runs the model all the same';
  throw new AprError(code, `${sourceName}: ${first.message}${more} (${rule})${advice}`, {
    rule,
    ...(tensor === undefined ? {} : { tensor }),
    ...(key === undefined ? {} : { key }),
    found,
    expected,
    findings: counted.length,
  });
}
