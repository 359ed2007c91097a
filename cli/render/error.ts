/** Errors, as people and as programs read them. */

import { AprError } from '../../src/errors.ts';
import type { OutputStream } from '../environment.ts';
import { jsonLine } from './json.ts';
import { visible, visibleLine } from './terminal.ts';

/** Form of what goes to stdout. */
export type OutputForm = 'text' | 'json' | 'stream';

/** Status for a fault of apr itself, which no code of AprError stands for. */
const INTERNAL_STATUS = 1;

export function statusOf(error: unknown): number {
  return error instanceof AprError ? error.exitStatus : INTERNAL_STATUS;
}

/**
 * Text: one sentence on stderr. JSON: one document on stdout, or one event of the stream.
 * @returns the exit status
 */
export function renderError(
  error: unknown,
  form: OutputForm,
  verbose: boolean,
  { stdout, stderr }: { readonly stdout: OutputStream; readonly stderr: OutputStream },
): number {
  const status = statusOf(error);
  const body = errorBody(error);
  if (form === 'text') {
    stderr.write(`apr: ${visibleLine(body.error.message)}\n`);
  } else {
    stdout.write(jsonLine(form === 'stream' ? { event: 'error', ...body } : body));
  }
  if (verbose) stderr.write(`${visible(trace(error))}\n`);
  return status;
}

/** An error as documents have it. */
export function errorBody(error: unknown) {
  const known = error instanceof AprError;
  const reason = error instanceof Error ? error.message : String(error);
  const message = known ? reason : `internal error: ${reason}; please report it with what --verbose prints`;
  const details = known && Object.keys(error.details).length > 0 ? { details: error.details } : {};
  return { error: { code: known ? error.code : 'INTERNAL', message, exit_status: statusOf(error), ...details } };
}

function trace(error: unknown): string {
  const lines: string[] = [];
  for (let at: unknown = error, depth = 0; at !== undefined && depth < 8; depth++) {
    lines.push(`${depth === 0 ? '' : 'caused by '}${at instanceof Error ? (at.stack ?? at.message) : String(at)}`);
    at = at instanceof Error ? at.cause : undefined;
  }
  return lines.join('\n');
}
