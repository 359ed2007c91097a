/** Vocabulary and special tokens. */

import { type Finding, keyFinding } from './finding.ts';

export interface ContractVocabulary {
  /** Tokens that the tokenizer has. */
  readonly size: number;
  /** Declared ids by their metadata keys. */
  readonly specialTokens: Readonly<Record<string, number>>;
}

/** @param vocabularySize of the hyperparameters, which the embedding's and the head's rows are checked against */
export function vocabularyFindings(vocabulary: ContractVocabulary, vocabularySize: number): Finding[] {
  const findings: Finding[] = [];
  if (vocabulary.size !== vocabularySize) {
    const expected = `the vocabulary size of the model, ${vocabularySize}`;
    const found = `a vocabulary of ${vocabulary.size}`;
    findings.push(keyFinding('OBLIG-APR-VOCAB-EMBED-CONSISTENT', 'tokenizer.ggml.tokens', found, expected));
  }
  for (const [key, id] of Object.entries(vocabulary.specialTokens)) {
    if (Number.isInteger(id) && id >= 0 && id < vocabulary.size) continue;
    const expected = `an id below the vocabulary size ${vocabulary.size}`;
    findings.push(keyFinding('OBLIG-SPECIAL-TOKEN-WITHIN-VOCAB', key, id, expected));
  }
  return findings;
}
