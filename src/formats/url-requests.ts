/** Requests for ranges of a file, and the checks of what a server answers. */

import { AprError } from '../errors.ts';

/** Bytes `start … end − 1`. */
export interface RequestedRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Asks for a range, or without one for the whole. An answer of any status is an answer.
 * @throws AprError IO when there is none, ABORTED
 */
export async function fetchAnswer(
  url: string,
  name: string,
  range: RequestedRange | undefined,
  signal?: AbortSignal,
  method: 'GET' | 'HEAD' = 'GET',
): Promise<Response> {
  try {
    return await fetch(url, {
      method,
      // A cache would let the requests for ranges of one address wait for one another.
      ...(range === undefined
        ? {}
        : { headers: { range: `bytes=${range.start}-${range.end - 1}` }, cache: 'no-store' as const }),
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (cause) {
    throw requestFailed(name, cause, signal);
  }
}

export function requestFailed(
  name: string,
  cause: unknown,
  signal: AbortSignal | undefined,
  received?: number,
): AprError {
  if (signal?.aborted) return new AprError('ABORTED', `loading ${name} was aborted`, {}, { cause });
  const reasons: string[] = [];
  // Node hides the reason behind "fetch failed"; a browser tells none to a page, be it a name, a port or CORS.
  for (let error: unknown = cause; error instanceof Error && reasons.length < 3; error = error.cause) {
    reasons.push(error.message);
  }
  const when = received === undefined ? '' : ` after ${received} bytes`;
  const message = `${name}: the request failed${when} (${reasons.join(': ') || String(cause)}); check the address, the connection, and that the server lets this page read it (CORS)`;
  return new AprError('IO', message, { passing: true }, { cause });
}

export function statusError(name: string, { status, statusText }: Response): AprError {
  const answer = `${status}${statusText === '' ? '' : ` ${statusText}`}`;
  if (status === 404 || status === 410) {
    return new AprError('NOT_FOUND', `${name}: the server has no such file (${answer})`, { status });
  }
  const [reason, passing] =
    status === 401 || status === 403
      ? ['it may need a sign-in or have expired', false]
      : status === 429 || status >= 500
        ? ['try again later', true]
        : ['expected 200 or 206', false];
  return new AprError('IO', `${name}: the server answered ${answer}; ${reason}`, { status, passing });
}

/** Size of the whole file from the answer to a request for its first bytes. @throws AprError IO, ABORTED */
export async function sizeFrom(
  response: Response,
  url: string,
  name: string,
  signal: AbortSignal | undefined,
): Promise<number> {
  const size = contentRange(response)?.size;
  if (size !== undefined) return size;
  // Another origin does not show Content-Range unless it is told to, but always Content-Length.
  const head = await fetchAnswer(url, name, undefined, signal, 'HEAD');
  const length = Number(head.headers.get('content-length') ?? Number.NaN);
  if (head.ok && Number.isSafeInteger(length) && length > 0) return length;
  const message = `${name}: the server sends ranges, but does not say how long the file is; let it expose the header Content-Range (Access-Control-Expose-Headers)`;
  throw new AprError('IO', message);
}

export interface ExpectedAnswer {
  readonly start: number;
  /** Of the whole file. */
  readonly size: number;
  readonly etag: string | undefined;
}

/**
 * Reads a 206 answer into `target`, which it must fill exactly; not a byte more is taken.
 * @throws AprError IO for an answer that is too short or is none to a range, BAD_FORMAT when it is of another file
 */
export async function readRangeInto(
  target: Uint8Array,
  response: Response,
  name: string,
  expected: ExpectedAnswer,
): Promise<void> {
  const { start, size, etag } = expected;
  const refuse = async (error: AprError): Promise<never> => {
    await response.body?.cancel();
    throw error;
  };
  if (response.status !== 206) {
    const message = `${name}: the server answered ${response.status} to a request for a range, although it had sent ranges before; load it again`;
    return refuse(new AprError('IO', message, { status: response.status }));
  }
  const found = contentRange(response);
  const foundEtag = response.headers.get('etag') ?? undefined;
  const other = found?.size !== undefined && found.size !== size;
  if (other || (etag !== undefined && foundEtag !== undefined && etag !== foundEtag)) {
    const what = other
      ? `it has ${found.size} bytes now and had ${size}`
      : `its version is ${foundEtag} and was ${etag}`;
    return refuse(
      new AprError('BAD_FORMAT', `${name}: changed on the server while it was loaded: ${what}; load it again`),
    );
  }
  if (found !== undefined && found.start !== start) {
    const message = `${name}: the server sent bytes from ${found.start} where those from ${start} were asked for`;
    return refuse(new AprError('IO', message, { found: found.start, expected: start }));
  }
  const reader = response.body?.getReader();
  let done = 0;
  try {
    while (done < target.length) {
      const result = reader && (await readChunk(reader));
      if (result === undefined || result.done) break;
      const { value } = result;
      target.set(value.length > target.length - done ? value.subarray(0, target.length - done) : value, done);
      done += value.length;
    }
  } catch (cause) {
    throw requestFailed(name, cause, undefined, done);
  }
  if (done < target.length) {
    const message = `${name}: the server sent ${done} bytes from byte ${start} where ${target.length} were asked for`;
    throw new AprError('IO', message, { passing: true, found: done, expected: target.length });
  }
  // Seeing the end keeps the connection for the next request; a server that goes on is cut off.
  if (reader !== undefined && !(await readChunk(reader)).done) await reader.cancel();
}

/** A server that sends nothing for so long has forgotten us. */
const STALL_MS = 30_000;

/** The next bytes of a body. @throws Error when none come for {@link STALL_MS}, or what the stream fails with */
export async function readChunk(
  reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>,
): Promise<ReadableStreamReadResult<Uint8Array<ArrayBuffer>>> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stalled = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing came for ${STALL_MS / 1000} s`)), STALL_MS);
  });
  try {
    return await Promise.race([reader.read(), stalled]);
  } catch (error) {
    reader.cancel().catch(() => {}); // it has failed already
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** `bytes FIRST-LAST/SIZE`; undefined where the header is absent or hidden. */
function contentRange(response: Response): { readonly start: number; readonly size: number | undefined } | undefined {
  const match = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(response.headers.get('content-range') ?? '');
  if (match === null) return undefined;
  const size = Number(match[2]);
  return { start: Number(match[1]), size: Number.isSafeInteger(size) ? size : undefined };
}
