/** The tokenizer of a file, without its weights. */

import { openModel } from '../formats/open-model.ts';
import type { Platform } from '../platform/platform.ts';
import { createTokenizer, type Tokenizer } from '../tokenizer/index.ts';

/**
 * Reads the vocabulary of a model file, or of a file that holds nothing else.
 * @throws AprError NOT_FOUND, BAD_FORMAT, UNSUPPORTED, CONTRACT, IO
 */
export async function openTokenizer(platform: Platform, source: string): Promise<Tokenizer> {
  const bytes = await platform.openSource(source);
  try {
    return createTokenizer((await openModel(bytes)).metadata);
  } finally {
    await bytes.close();
  }
}
