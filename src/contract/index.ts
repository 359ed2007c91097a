/** What a model file must fulfil before a byte is allocated for it. */

import { AprError } from '../errors.ts';
import { boundsFindings, type ContractHyperparameters } from './bounds.ts';
import type { Finding } from './finding.ts';
import { type ContractTensor, type ExpectedTensor, tensorFindings } from './tensors.ts';
import { type ContractVocabulary, vocabularyFindings } from './vocabulary.ts';

export type { Finding } from './finding.ts';

export interface ContractInput {
  readonly sourceName: string;
  readonly tensors: ReadonlyMap<string, ContractTensor>;
  readonly expected: readonly ExpectedTensor[];
  /** Types that the backend multiplies. */
  readonly supportedTypes: ReadonlySet<string>;
  readonly hyperparameters: ContractHyperparameters;
  readonly vocabulary: ContractVocabulary;
}

/** Every broken rule: bounds first, since shapes follow from hyperparameters. */
export function checkContract(input: ContractInput): Finding[] {
  return [
    ...boundsFindings(input.hyperparameters),
    ...vocabularyFindings(input.vocabulary, input.hyperparameters.vocabularySize),
    ...tensorFindings(input.tensors, input.expected, input.supportedTypes),
  ];
}

/** @throws AprError CONTRACT, or UNSUPPORTED when only tensor types stand in the way */
export function assertContract(input: ContractInput): void {
  const findings = checkContract(input);
  const first = findings[0];
  if (first === undefined) return;
  const more = findings.length > 1 ? ` (and ${findings.length - 1} more)` : '';
  const code = findings.every(({ rule }) => rule === 'TYPE-SUPPORTED') ? 'UNSUPPORTED' : 'CONTRACT';
  throw new AprError(code, `${input.sourceName}: ${first.message}${more}`, {
    rule: first.rule,
    found: first.found,
    expected: first.expected,
    findings: findings.length,
  });
}
