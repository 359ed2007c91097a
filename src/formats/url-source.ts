/**
 * A model behind an address: read range by range where the server can do that (RFC 9110, section 14), or else fetched
 * as a whole first. Everything that a server says about sizes is checked against what it sends.
 */

import { AprError } from '../errors.ts';
import { blobSource } from './blob-source.ts';
import { type ByteSource, checkRange, type UrlLocator } from './byte-source.ts';
import { partNames } from './gguf/split.ts';
import { memorySource } from './memory-source.ts';
import { partsSource } from './parts-source.ts';
import { MODEL_MAGICS } from './signature.ts';
import { fetchAnswer, readChunk, readRangeInto, requestFailed, sizeFrom, statusError } from './url-requests.ts';

export interface UrlSourceOptions {
  /** Aborts the requests of opening, and a download of the whole file. */
  readonly signal?: AbortSignal;
  /** Told now and then how much is there, while a server without ranges sends the whole file; `total` if it says so. */
  readonly onDownload?: (bytes: number, total: number | undefined) => void;
}

/** Bytes of the first request: the header of most models without its vocabulary, and all of a page of HTML. */
const FIRST_BYTES = 1 << 16;
/** A downloaded file is handed to the browser in pieces of this size, which it may keep on disk. */
const PIECE_BYTES = 16 << 20;

/**
 * Opens the file; of a model that is split over several (`NAME-00001-of-00003.gguf`) all of them, whichever is named.
 * @throws AprError NOT_FOUND (404, 410), IO for any other failure of the network or the server, BAD_FORMAT when its
 *   answers contradict one another, ABORTED
 */
export async function openUrlSource(address: URL, options: UrlSourceOptions = {}): Promise<ByteSource> {
  const names = partNames(address.pathname);
  if (names === undefined) return openOne(address, options);
  const parts: ByteSource[] = [];
  for (const [i, name] of names.entries()) {
    const url = new URL(address.href);
    url.pathname = name;
    try {
      parts.push(await openOne(url, options));
    } catch (error) {
      if (!(error instanceof AprError) || error.code !== 'NOT_FOUND') throw error;
      const message = `${error.message}; it is part ${i + 1} of the ${names.length} that ${address.href} belongs to`;
      throw new AprError('NOT_FOUND', message, { part: i + 1, parts: names.length }, { cause: error });
    }
  }
  return partsSource(address.href, parts);
}

async function openOne(address: URL, options: UrlSourceOptions): Promise<ByteSource> {
  const name = address.protocol === 'data:' ? 'model in a data: URL' : address.href;
  if (address.protocol !== 'http:' && address.protocol !== 'https:') {
    // Always whole, and without a server's promises: data: and blob:.
    const response = await fetchAnswer(address.href, name, undefined, options.signal);
    if (!response.ok) throw statusError(name, response);
    return downloaded(name, response, options);
  }
  const response = await fetchAnswer(address.href, name, { start: 0, end: FIRST_BYTES }, options.signal);
  // An empty file has no first byte.
  if (response.status === 416) return memorySource(name, new Uint8Array(0));
  if (!response.ok) throw statusError(name, response);
  if (response.status !== 206) return downloaded(name, response, options);
  const size = await sizeFrom(response, address.href, name, options.signal);
  const head = new Uint8Array(Math.min(FIRST_BYTES, size));
  await readRangeInto(head, response, name, { start: 0, size, etag: undefined });
  const locator: UrlLocator = {
    kind: 'url',
    url: response.url === '' ? address.href : response.url,
    origin: address.href,
    size,
    etag: response.headers.get('etag') ?? undefined,
  };
  return new UrlSource(name, locator, head);
}

class UrlSource implements ByteSource {
  readonly name: string;
  readonly size: number;
  readonly locator: UrlLocator;
  readonly #head: Uint8Array;

  constructor(name: string, locator: UrlLocator, head: Uint8Array) {
    this.name = name;
    this.size = locator.size;
    this.locator = locator;
    this.#head = head;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    checkRange(this, offset, length);
    const bytes = new Uint8Array(length);
    const known = this.#head.subarray(offset, offset + length);
    bytes.set(known);
    if (known.length < length)
      await readUrl(this.locator, this.name, bytes.subarray(known.length), offset + known.length);
    return bytes;
  }

  async close(): Promise<void> {}
}

/**
 * Fills `target`, which may be shared memory, with the file's bytes from `offset` on. Failures that pass by themselves
 * (a connection that breaks, a server that is overloaded) are tried again twice.
 * @throws AprError IO, BAD_FORMAT when the file has changed since it was opened
 */
export async function readUrl(locator: UrlLocator, name: string, target: Uint8Array, offset: number): Promise<void> {
  if (target.length === 0) return;
  const range = { start: offset, end: offset + target.length };
  let { url } = locator;
  for (let attempt = 1; ; attempt++) {
    try {
      const response = await fetchAnswer(url, name, range);
      if (!response.ok && url !== locator.origin && [401, 403, 404, 410].includes(response.status)) {
        // Signed addresses behind a redirect expire.
        url = locator.origin;
        continue;
      }
      if (!response.ok) throw statusError(name, response);
      await readRangeInto(target, response, name, { ...locator, start: offset });
      return;
    } catch (error) {
      const passing = error instanceof AprError && error.details.passing === true;
      if (!passing || attempt >= 3) throw error;
      await new Promise((resolve) => setTimeout(resolve, 250 * 4 ** (attempt - 1)));
    }
  }
}

/** The whole answer, kept where the browser keeps large files; an answer that is no model is not waited for. */
async function downloaded(name: string, response: Response, options: UrlSourceOptions): Promise<ByteSource> {
  const { signal, onDownload } = options;
  // With a content coding, Content-Length counts the coded bytes, and the body that we see is decoded.
  const coded = response.headers.has('content-encoding');
  const declared = coded ? Number.NaN : Number(response.headers.get('content-length') ?? Number.NaN);
  const total = Number.isSafeInteger(declared) && declared > 0 ? declared : undefined;
  const reader = response.body?.getReader();
  const pieces: Blob[] = [];
  let chunks: Uint8Array<ArrayBuffer>[] = [];
  let [held, received] = [0, 0];
  let recognised = false;
  for (;;) {
    if (reader === undefined) break;
    const result = await readChunk(reader).catch((cause: unknown) => {
      throw requestFailed(name, cause, signal, received);
    });
    if (result.done) break;
    chunks.push(result.value);
    held += result.value.length;
    received += result.value.length;
    if (!recognised && received >= 4) {
      const magic = String.fromCharCode(...joined(chunks).subarray(0, 4));
      recognised = MODEL_MAGICS.includes(magic);
      // What it is instead, is told from some hundred bytes.
      if (!recognised && received >= 512) {
        await reader?.cancel();
        return memorySource(name, joined(chunks));
      }
    }
    if (held >= PIECE_BYTES) {
      pieces.push(new Blob(chunks));
      [chunks, held] = [[], 0];
    }
    onDownload?.(received, total);
  }
  if (total !== undefined && received !== total) {
    const message = `${name}: the connection ended after ${received} of ${total} bytes; load it again`;
    throw new AprError('IO', message, { received, expected: total });
  }
  if (!recognised) return memorySource(name, joined(chunks));
  return blobSource(name, new Blob([...pieces, ...chunks]));
}

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}
