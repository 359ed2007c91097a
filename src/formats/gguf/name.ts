/** Keys and tensor names. */

import { AprError } from '../../errors.ts';
import { printable } from '../printable.ts';
import type { HeaderReader } from './header-reader.ts';
import { decodeUtf8Strictly } from './metadata.ts';

/** The specification's limit for keys. It gives 64 for tensor names, which some files exceed. */
const MAX_NAME_BYTES = 65_535;

/**
 * A name at the cursor: valid UTF-8, not empty, and without control characters, so that messages can show it.
 * @throws AprError BAD_FORMAT
 */
export async function readName(reader: HeaderReader, what: string): Promise<string> {
  await reader.ensure(reader.sizeBytes, what);
  const length = reader.size();
  if (length > BigInt(reader.remaining)) throw reader.tooShort(what, length);
  if (length === 0n || length > BigInt(MAX_NAME_BYTES)) {
    throw bad(`${what} is ${length} bytes long, expected 1 to ${MAX_NAME_BYTES}`);
  }
  await reader.ensure(Number(length), what);
  const name = decodeUtf8Strictly(reader.take(Number(length)));
  if (name === undefined) throw bad(`${what} is not valid UTF-8`);
  if (/\p{C}/u.test(name)) throw bad(`${what} holds control characters: "${printable(name)}"`);
  return name;

  function bad(reason: string): AprError {
    return new AprError('BAD_FORMAT', `${reader.source.name}: ${reason}`);
  }
}
