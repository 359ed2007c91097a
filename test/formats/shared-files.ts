/** The models and vocabularies beside the repository, for tests that are skipped without them. */

import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The folder `shared/` beside the repository, with a slash at its end; undefined where there is none. */
export function sharedFolder(): string | undefined {
  // From a build's test/formats/ up to the repository; builds lie at different depths.
  for (let up = '../../'; up.length <= 3 * 8; up += '../') {
    if (!existsSync(fileURLToPath(new URL(`${up}package.json`, import.meta.url)))) continue;
    const folder = fileURLToPath(new URL(`${up}../shared/`, import.meta.url));
    return existsSync(folder) ? folder : undefined;
  }
  return undefined;
}

/** Paths of the GGUF files in one of its folders; none where there is no such folder. */
export function sharedFiles(kind: 'models' | 'vocab'): string[] {
  const folder = sharedFolder();
  if (folder === undefined) return [];
  const names = readdirSync(`${folder}${kind}`).filter((name) => name.endsWith('.gguf'));
  return names.map((name) => `${folder}${kind}/${name}`);
}
