/** The tokenizer of a file, without its weights. */

import { type ContractVocabulary, checkVocabulary, refuse } from '../contract/index.ts';
import { openModel } from '../formats/open-model.ts';
import type { Platform } from '../platform/platform.ts';
import { createTokenizer, type Tokenizer } from '../tokenizer/index.ts';

/** The tokenizer as the contract looks at it. */
export function vocabularyOf(tokenizer: Tokenizer): ContractVocabulary {
  return {
    size: tokenizer.vocabularySize,
    specialTokens: tokenizer.declaredSpecialTokens,
    undeclared: tokenizer.undeclaredSpecialTokens,
  };
}

/**
 * Reads the vocabulary of a model file, or of a file that holds nothing else.
 * @throws AprError NOT_FOUND, BAD_FORMAT, UNSUPPORTED, CONTRACT, IO
 */
export async function openTokenizer(platform: Platform, source: string): Promise<Tokenizer> {
  const bytes = await platform.openSource(source);
  try {
    const tokenizer = createTokenizer((await openModel(bytes)).metadata);
    refuse(bytes.name, checkVocabulary(vocabularyOf(tokenizer)));
    return tokenizer;
  } finally {
    await bytes.close();
  }
}
