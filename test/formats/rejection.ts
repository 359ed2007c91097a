/** Asserts on errors: their code, and that the message names the culprit. */

import * as assert from 'uvu/assert';
import { AprError, type AprErrorCode } from '../../src/errors.ts';

/** The error that `run` ends with; fails when there is none, or one of another kind. */
export async function rejection(
  run: () => unknown,
  code: AprErrorCode,
  ...fragments: readonly (string | RegExp)[]
): Promise<AprError> {
  let error: unknown;
  try {
    await run();
  } catch (thrown) {
    error = thrown;
  }
  assert.ok(
    error instanceof AprError,
    `expected an AprError ${code}, got ${error === undefined ? 'none' : String(error)}`,
  );
  assert.is(error.code, code, error.message);
  for (const fragment of fragments) {
    if (typeof fragment === 'string')
      assert.ok(error.message.includes(fragment), `"${fragment}" not in: ${error.message}`);
    else assert.match(error.message, fragment);
  }
  return error;
}

/** Asserts that nothing of a file's escape sequences is left: whoever shows the message need not expect them. */
export function assertPrintable({ message }: AprError): void {
  assert.not.match(message, /[\0-\x1f\x7f-\x9f]/);
}
