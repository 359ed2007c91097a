/** Documents of `--json` as they were once looked at and found right. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { ROOT } from '../repository.ts';
import type { Result } from './command.ts';

/** The document in `test/cli/golden/`. */
export function golden(name: string): unknown {
  return JSON.parse(readFileSync(join(ROOT, 'test', 'cli', 'golden', `${name}.json`), 'utf8'));
}

/**
 * Asserts that the command printed one document on stdout, nothing else anywhere, and that it is the golden one.
 * @param blank makes what depends on the machine the same everywhere
 */
export function assertGolden(
  { status, stdout, stderr }: Result,
  name: string,
  blank?: (document: never) => void,
): void {
  assert.equal([status, stderr], [0, '']);
  assert.match(stdout, /^\{[^\n]*\}\n$/);
  const document = JSON.parse(stdout);
  blank?.(document as never);
  assert.equal(document, golden(name));
}
