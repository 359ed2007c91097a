/** Vocabulary and special tokens. */

import { type Finding, keyFinding } from './finding.ts';

export interface ContractVocabulary {
  /** Tokens that the tokenizer has. */
  readonly size: number;
  /** Declared ids by their metadata keys. */
  readonly specialTokens: Readonly<Record<string, number>>;
  /** Metadata keys that ask for a token to be added, with the key that should say which and is absent. */
  readonly undeclared?: Readonly<Record<string, string>>;
}

/** @param vocabularySize of the hyperparameters, which the embedding's and the head's rows are checked against */
export function vocabularyFindings(vocabulary: ContractVocabulary, vocabularySize: number): Finding[] {
  const findings: Finding[] = [];
  if (vocabulary.size !== vocabularySize) {
    const expected = `the vocabulary size of the model, ${vocabularySize}`;
    const found = `a vocabulary of ${vocabulary.size}`;
    const obstacle = 'ids of one would be looked up in the other';
    findings.push(keyFinding('OBLIG-APR-VOCAB-EMBED-CONSISTENT', 'tokenizer.ggml.tokens', found, expected, obstacle));
  }
  for (const [key, id] of Object.entries(vocabulary.specialTokens)) {
    if (Number.isInteger(id) && id >= 0 && id < vocabulary.size) continue;
    const expected = `an id below the vocabulary size ${vocabulary.size}`;
    // The tokenizer takes it as not declared.
    findings.push(keyFinding('OBLIG-SPECIAL-TOKEN-WITHIN-VOCAB', key, id, expected, null));
  }
  for (const [key, idKey] of Object.entries(vocabulary.undeclared ?? {})) {
    findings.push(keyFinding('SPECIAL-TOKEN-DECLARED', key, 'true', `${idKey}, which is missing, beside it`, null));
  }
  return findings;
}
