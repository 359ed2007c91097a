/** Requests to a hub or file server: redirects, time limits, and what went wrong in a sentence. */

import { AprError, type AprErrorDetails } from '../errors.ts';

export interface RequestOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent to the origin of the first address only: the servers that it redirects to have no business with it. */
  readonly token?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** A server that says nothing for so long has forgotten us, ms. */
  readonly stallMs: number;
}

const MAX_REDIRECTS = 10;

/**
 * Sends a GET request and follows redirects. An answer of any status is an answer.
 * @throws AprError IO, with the detail `passing` where another attempt may help; ABORTED
 */
export async function request(address: string, name: string, options: RequestOptions): Promise<Response> {
  const origin = new URL(address).origin;
  let url = new URL(address);
  for (let redirects = 0; ; redirects++) {
    const response = await answer(url, name, origin, options);
    if (![301, 302, 303, 307, 308].includes(response.status)) return response;
    const location = response.headers.get('location');
    await response.body?.cancel();
    if (location === null) throw new AprError('IO', `${name}: the server redirects (${response.status}) to nowhere`);
    if (redirects === MAX_REDIRECTS) {
      throw new AprError('IO', `${name}: the server redirects more than ${MAX_REDIRECTS} times, perhaps in a circle`);
    }
    const next = URL.canParse(location, url) ? new URL(location, url) : undefined;
    if (next === undefined || (next.protocol !== 'https:' && next.protocol !== 'http:')) {
      throw new AprError(
        'IO',
        `${name}: the server redirects to ${JSON.stringify(location.slice(0, 200))}, which is no address`,
      );
    }
    if (url.protocol === 'https:' && next.protocol === 'http:') {
      const message = `${name}: the server redirects from https to http (${next.host}), where anybody on the way could change the file`;
      throw new AprError('IO', message);
    }
    url = next;
  }
}

async function answer(url: URL, name: string, origin: string, options: RequestOptions): Promise<Response> {
  const { headers, token, signal, stallMs } = options;
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(new Error(`no answer for ${stallMs / 1000} s`)), stallMs);
  try {
    return await fetch(url, {
      redirect: 'manual',
      headers: {
        'user-agent': 'apr',
        // Compressed answers have other lengths and ranges than the file.
        'accept-encoding': 'identity',
        ...headers,
        ...(token === undefined || url.origin !== origin ? {} : { authorization: `Bearer ${token}` }),
      },
      signal: signal === undefined ? limit.signal : AbortSignal.any([signal, limit.signal]),
    });
  } catch (cause) {
    throw connectionError(name, url.host, limit.signal.aborted ? limit.signal.reason : cause, signal);
  } finally {
    clearTimeout(timer);
  }
}

/** The error of a connection that could not be made, or ended early. */
export function connectionError(
  name: string,
  host: string,
  cause: unknown,
  signal: AbortSignal | undefined,
  details: AprErrorDetails = {},
): AprError {
  if (signal?.aborted) return new AprError('ABORTED', `${name}: the download was interrupted`, {}, { cause });
  const reasons: string[] = [];
  // fetch hides the reason behind "fetch failed", or "terminated" behind which "other side closed" stands.
  for (let error: unknown = cause; error instanceof Error && reasons.length < 3; error = error.cause) {
    const codes = (error as NodeJS.ErrnoException).code;
    reasons.push(error.message || (codes ?? error.name));
  }
  const text = reasons.filter((reason) => !/^(fetch failed|terminated)$/.test(reason)).at(-1) ?? reasons.at(-1);
  const unknown = codeOf(cause) === 'ENOTFOUND';
  const advice = unknown ? '; check the address, and that this machine is online' : '';
  const message = `${name}: the connection to ${host} failed (${text ?? String(cause)})${advice}`;
  return new AprError('IO', message, { ...details, passing: true, unknownHost: unknown }, { cause });
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return (error as NodeJS.ErrnoException).code ?? codeOf(error.cause);
}

/** The error that an answer's status stands for. */
export function statusError(name: string, response: Response, hasToken: boolean): AprError {
  const { status, statusText } = response;
  const said = response.headers.get('x-error-message');
  const answered = `the server answered ${status}${statusText === '' ? '' : ` ${statusText}`}${
    said === null ? '' : ` (${said.slice(0, 200)})`
  }`;
  const token = hasToken
    ? 'the token may have no right to it: ask for access on its page'
    : 'it may be private, or its terms must be accepted on its page first; then give a token: HF_TOKEN=hf_…';
  if (status === 404 || status === 410) {
    return new AprError('NOT_FOUND', `${name}: there is no such file or repository; ${answered}`, { status });
  }
  if (status === 401 || status === 403) {
    return new AprError('IO', `${name}: ${answered}; ${token}`, { status, passing: false });
  }
  const passing = status === 408 || status === 429 || status >= 500;
  const wait = retryAfterMs(response);
  const reason = status === 429 ? 'it asks for fewer requests' : passing ? 'it may pass' : 'expected 200 or 206';
  return new AprError('IO', `${name}: ${answered}; ${reason}`, {
    status,
    passing,
    ...(wait === undefined ? {} : { retryAfterMs: wait }),
  });
}

/** RFC 9110, 10.2.3: seconds, or a date. */
function retryAfterMs(response: Response): number | undefined {
  const text = response.headers.get('retry-after')?.trim();
  if (text === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, Math.ceil(ms)) : undefined;
}

/**
 * The next bytes of a body.
 * @throws Error when none come for `stallMs`, or what the stream fails with
 */
export async function readChunk(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  stallMs: number,
): Promise<ReadableStreamReadResult<Uint8Array>> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stalled = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing came for ${stallMs / 1000} s`)), stallMs);
  });
  try {
    return await Promise.race([reader.read(), stalled]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The body of an answer as text.
 * @throws AprError IO when it is longer than `limit` bytes or the connection fails
 */
export async function readText(
  response: Response,
  name: string,
  limit: number,
  { signal, stallMs }: RequestOptions,
): Promise<string> {
  const reader = (response.body as ReadableStream<Uint8Array> | null)?.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    while (reader !== undefined) {
      const { done, value } = await readChunk(reader, stallMs);
      if (done) break;
      length += value.length;
      if (length > limit) throw new AprError('IO', `${name}: the server's answer is longer than ${limit} bytes`);
      chunks.push(value);
    }
  } catch (cause) {
    reader?.cancel().catch(() => {}); // it has failed already
    if (cause instanceof AprError) throw cause;
    throw connectionError(name, new URL(response.url).host, cause, signal);
  }
  return Buffer.concat(chunks).toString('utf8');
}
