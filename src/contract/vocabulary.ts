/** Vocabulary and special tokens. */

import type { Finding } from './finding.ts';

export interface ContractVocabulary {
  readonly size: number;
  /** Declared ids by their metadata keys. */
  readonly specialTokens: Readonly<Record<string, number>>;
}

export function vocabularyFindings(vocabulary: ContractVocabulary, vocabularySize: number): Finding[] {
  const findings: Finding[] = [];
  for (const [key, id] of Object.entries(vocabulary.specialTokens)) {
    if (id < vocabularySize) continue;
    findings.push({
      rule: 'OBLIG-SPECIAL-TOKEN-WITHIN-VOCAB',
      found: String(id),
      expected: `an id below the vocabulary size ${vocabularySize}`,
      message: `${key} is ${id}, expected an id below the vocabulary size ${vocabularySize}`,
    });
  }
  return findings;
}
