/** Models that come with the package, by the names under which every command and function takes them. */

import { fileURLToPath } from 'node:url';

/** Name to path within the package. */
const FILES: Readonly<Record<string, string>> = {
  demo: 'models-fixtures/demo-qwen3moe-q4_k_m.gguf',
};

export const BUNDLED_MODELS: readonly string[] = Object.keys(FILES);

/** Path of the model of that name; undefined for another name, which is a path itself. */
export function bundledModelPath(name: string): string | undefined {
  // Compiled, this file lies in dist/src/platform/node/ of the package.
  return Object.hasOwn(FILES, name) ? fileURLToPath(new URL(`../../../../${FILES[name]}`, import.meta.url)) : undefined;
}
