/** Arguments of a command that are no options. */

import { AprError } from '../src/errors.ts';
import { quote } from './options.ts';
import { SOURCE_EXPECTED } from './source.ts';

/**
 * The model of a command that takes nothing else.
 * @param usage as the command is written, such as `apr inspect SOURCE`
 * @throws AprError USAGE
 */
export function onlySource(positionals: readonly string[], usage: string): string {
  const [source, surplus] = positionals;
  if (source === undefined) {
    throw new AprError('USAGE', `SOURCE is missing, expected ${SOURCE_EXPECTED}: ${usage}`);
  }
  if (surplus !== undefined) {
    const message = `found ${positionals.length} arguments, ${quote(surplus)} behind SOURCE; expected SOURCE alone: ${usage}`;
    throw new AprError('USAGE', message, { found: positionals.length, expected: 1 });
  }
  return source;
}
