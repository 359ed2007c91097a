/** What SOURCE may be. */

import { join } from 'node:path';
import { AprError } from '../src/errors.ts';
import { packageRoot } from './package.ts';

/** Names of the models that come with the package. */
export const MODEL_ALIASES: Readonly<Record<string, string>> = {
  demo: 'models-fixtures/demo-qwen3moe-q4_k_m.gguf',
};

/**
 * Path of the model file.
 * @throws AprError USAGE for a source that is not a local file
 */
export function resolveSource(source: string): string {
  if (Object.hasOwn(MODEL_ALIASES, source)) return join(packageRoot(), MODEL_ALIASES[source] as string);
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(source)?.[1];
  if (scheme !== undefined) {
    throw new AprError(
      'USAGE',
      `SOURCE is ${JSON.stringify(source)}, but this version does not read ${scheme}:// addresses; ` +
        'download the GGUF file and give its path',
      { option: 'SOURCE', found: source, expected: 'path of a GGUF file' },
    );
  }
  if (source === '') throw new AprError('USAGE', 'SOURCE is empty, expected the path of a GGUF file or "demo"');
  return source;
}
