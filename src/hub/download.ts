/**
 * One file from a server to the disk: under another name until it is whole and known to be right, and continued where it
 * was left, be it by a cut connection or by an ended process.
 */

import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, readFile, rename, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AprError } from '../errors.ts';
import { describeBytes, MODEL_MAGICS } from '../formats/signature.ts';
import { connectionError, type RequestOptions, readChunk, request, statusError } from './http.ts';
import type { Digest } from './repository.ts';
import { type RetryOptions, withRetries } from './retry.ts';
import { showSize } from './sizes.ts';

export interface FileToDownload {
  /** In messages. */
  readonly name: string;
  readonly address: string;
  /** Where the whole file goes. */
  readonly target: string;
  /** Where it grows; beside it, with `.json` behind, what is known about it. */
  readonly part: string;
  /** Bytes; undefined where only the server can tell. */
  readonly size: number | undefined;
  readonly digest: Digest | undefined;
}

export interface DownloadOptions extends RequestOptions {
  readonly retry: RetryOptions;
  /** Bytes on disk, of how many. */
  readonly onBytes?: (bytes: number, total: number | undefined) => void;
  /** Told what a person would want to know meanwhile. */
  readonly onNote?: (note: string) => void;
}

export interface Downloaded {
  /** Bytes of the file. */
  readonly size: number;
  /** Bytes that came over the network. */
  readonly received: number;
  readonly etag: string | undefined;
}

/** What is kept beside a part. */
export interface PartRecord {
  readonly name: string;
  readonly address: string;
  readonly size: number | null;
  readonly etag: string | null;
}

/** As many bytes tell an HTML page from a model. */
const HEAD_BYTES = 512;

/** @throws AprError; whatever it is, what came so far stays for the next attempt unless it cannot be right */
export async function download(file: FileToDownload, options: DownloadOptions): Promise<Downloaded> {
  try {
    await mkdir(dirname(file.target), { recursive: true });
    await mkdir(dirname(file.part), { recursive: true });
    const done = await grow(file, options);
    await rename(file.part, file.target);
    await rm(recordPath(file.part), { force: true });
    return done;
  } catch (error) {
    throw error instanceof AprError ? error : diskError(file, error);
  }
}

/** Lets the part grow until it is whole and right. */
async function grow(file: FileToDownload, options: DownloadOptions): Promise<Downloaded> {
  const handle = await open(file.part, 'a+');
  try {
    const done = await new GrowingFile(file, handle, options).complete();
    await handle.sync();
    return done;
  } finally {
    const { size } = await handle.stat();
    await handle.close();
    // Nothing to go on with.
    if (size === 0) await discardPart(file.part);
  }
}

async function discardPart(part: string): Promise<void> {
  await rm(part, { force: true });
  await rm(recordPath(part), { force: true });
}

export function recordPath(part: string): string {
  return `${part}.json`;
}

/**
 * The digest of a file on disk.
 * @param onBytes told how many were read
 */
export async function digestOf(
  path: string,
  algorithm: Digest['algorithm'],
  signal?: AbortSignal,
  onBytes?: (bytes: number) => void,
): Promise<string> {
  const hash = newHash(algorithm, (await stat(path)).size);
  await hashInto(hash, path, signal, onBytes);
  return hash.digest('hex');
}

class GrowingFile {
  readonly #file: FileToDownload;
  readonly #handle: FileHandle;
  readonly #options: DownloadOptions;
  #size: number | undefined;
  #etag: string | undefined;
  #at = 0;
  #received = 0;
  #hash: Hash | undefined;

  constructor(file: FileToDownload, handle: FileHandle, options: DownloadOptions) {
    this.#file = file;
    this.#handle = handle;
    this.#options = options;
    this.#size = file.size;
  }

  async complete(): Promise<Downloaded> {
    await this.#takeUp();
    let before = this.#at;
    if (this.#size === undefined || this.#at < this.#size) {
      await withRetries(
        this.#options.retry,
        this.#options.signal,
        () => this.#attempt(),
        () => {
          const progressed = this.#at > before;
          before = this.#at;
          return progressed;
        },
      );
    }
    await this.#verify();
    return { size: this.#at, received: this.#received, etag: this.#etag };
  }

  /** Goes on with what there is of the file. */
  async #takeUp(): Promise<void> {
    const { size: there } = await this.#handle.stat();
    const { name, part, digest } = this.#file;
    if (there === 0) return this.#startOver();
    const record = await readRecord(part);
    // Without a digest only the server's tag says that the rest belongs to what is there.
    const continues = digest !== undefined || (record?.etag != null && record.address === this.#file.address);
    if (!continues || (this.#size !== undefined && there > this.#size)) return this.#startOver();
    if (digest === undefined) {
      this.#etag = record?.etag ?? undefined;
      this.#size ??= record?.size ?? undefined;
    }
    this.#options.onNote?.(`${name}: going on after ${showSize(there)}`);
    await this.#startOver(there);
    if (this.#hash !== undefined) await hashInto(this.#hash, part, this.#options.signal);
    this.#options.onBytes?.(this.#at, this.#size);
  }

  async #startOver(at = 0): Promise<void> {
    if (at === 0) await this.#handle.truncate(0);
    this.#at = at;
    const { digest, size } = this.#file;
    this.#hash = digest === undefined ? undefined : newHash(digest.algorithm, size ?? 0);
  }

  async #attempt(): Promise<void> {
    const { name, address } = this.#file;
    const from = this.#at;
    const validator = this.#etag === undefined ? {} : { 'if-range': this.#etag };
    const headers = from === 0 ? {} : { range: `bytes=${from}-`, ...validator };
    const response = await request(address, name, { ...this.#options, headers });
    try {
      const reader = (response.body as ReadableStream<Uint8Array> | null)?.getReader();
      const head = await this.#check(response, reader);
      await this.#receive(response, reader, head);
    } finally {
      // What is left of an answer that was not wanted to its end.
      if (response.body?.locked === false) await response.body.cancel();
    }
  }

  /**
   * Holds the answer against what is expected, before anything on the disk is touched.
   * @returns the first bytes where they had to be looked at
   */
  async #check(
    response: Response,
    reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
  ): Promise<readonly Uint8Array[]> {
    const { name, digest } = this.#file;
    const refuse = async (error: AprError): Promise<never> => {
      await reader?.cancel().catch(() => {}); // it has failed already
      throw error;
    };
    const from = this.#at;
    if (response.status === 416 && from > 0) {
      await this.#startOver();
      const message = `${name}: the server has no bytes after ${from}; starting over`;
      return refuse(new AprError('IO', message, { passing: true, status: 416 }));
    }
    if (!response.ok) return refuse(statusError(name, response, this.#options.token !== undefined));
    const encoding = response.headers.get('content-encoding') ?? 'identity';
    if (encoding !== 'identity') {
      return refuse(new AprError('IO', `${name}: the server sends it compressed (${encoding}), although asked not to`));
    }
    const range = contentRange(response);
    const partial = response.status === 206;
    if (partial && (range === undefined || range.start !== from)) {
      const message = `${name}: the server sent bytes from ${range?.start ?? 'an unknown place'} where those from ${from} were asked for`;
      return refuse(new AprError('IO', message));
    }
    const start = partial ? from : 0;
    const length = contentLength(response);
    // Another file than the one that was begun, or a server that cannot go on: what it says now counts.
    if (!partial && digest === undefined) this.#size = this.#etag = undefined;
    const total = range?.size ?? (length === undefined ? undefined : start + length);
    if (this.#size !== undefined && total !== undefined && total !== this.#size) {
      const message = `${name}: the server says that it is ${total} bytes long, expected ${this.#size}`;
      const error = new AprError('IO', message, { found: total, expected: this.#size });
      // An error page in its place is the better explanation.
      const head = partial ? [] : await readHead(reader, this.#options.stallMs).catch(() => []);
      return refuse(noModel(name, head, total) ?? error);
    }
    const head = partial ? [] : await this.#head(response, reader);
    const page = partial ? undefined : noModel(name, head, total ?? 0);
    if (page !== undefined) return refuse(page);
    this.#size ??= total;
    const etag = response.headers.get('etag') ?? undefined;
    if (digest === undefined && etag !== undefined && !etag.startsWith('W/')) this.#etag = etag;
    await this.#checkSpace(start).catch(refuse);
    if (start === 0 && from > 0) {
      this.#options.onNote?.(`${name}: the server cannot go on after ${showSize(from)}; starting over`);
      await this.#startOver();
    }
    const record: PartRecord = {
      name,
      address: this.#file.address,
      size: this.#size ?? null,
      etag: this.#etag ?? null,
    };
    await writeFile(recordPath(this.#file.part), JSON.stringify(record));
    return head;
  }

  async #head(
    response: Response,
    reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
  ): Promise<readonly Uint8Array[]> {
    try {
      return await readHead(reader, this.#options.stallMs);
    } catch (cause) {
      throw this.#broken(response, cause);
    }
  }

  async #receive(
    response: Response,
    reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
    head: readonly Uint8Array[],
  ): Promise<void> {
    for (const chunk of head) await this.#append(chunk);
    try {
      while (reader !== undefined) {
        const { done, value } = await readChunk(reader, this.#options.stallMs);
        if (done) break;
        await this.#append(value);
      }
    } catch (cause) {
      reader?.cancel().catch(() => {}); // it has failed already
      if (cause instanceof AprError || (cause as NodeJS.ErrnoException).syscall === 'write') throw cause;
      throw this.#broken(response, cause);
    }
    if (this.#size !== undefined && this.#at < this.#size) {
      throw this.#broken(response, new Error(`it ended after ${this.#at} of ${this.#size} bytes`));
    }
  }

  async #append(chunk: Uint8Array): Promise<void> {
    const { name } = this.#file;
    if (this.#size !== undefined && this.#at + chunk.length > this.#size) {
      throw new AprError('IO', `${name}: the server sends more than the ${this.#size} bytes that it is long`);
    }
    for (let done = 0; done < chunk.length; ) {
      done += (await this.#handle.write(chunk, done, chunk.length - done, null)).bytesWritten;
    }
    this.#hash?.update(chunk);
    this.#at += chunk.length;
    this.#received += chunk.length;
    this.#options.onBytes?.(this.#at, this.#size);
  }

  #broken(response: Response, cause: unknown): AprError {
    const host = new URL(response.url || this.#file.address).host;
    return connectionError(this.#file.name, host, cause, this.#options.signal, { received: this.#at });
  }

  async #checkSpace(start: number): Promise<void> {
    if (this.#size === undefined) return;
    const { bavail, bsize } = await statfs(dirname(this.#file.part));
    const needed = this.#size - start;
    const free = bavail * bsize + (start === 0 ? this.#at : 0);
    if (needed <= free) return;
    const message = `${this.#file.name}: takes ${showSize(needed)} more, and ${dirname(this.#file.part)} has ${showSize(free)} left; make room, or set HF_HUB_CACHE to a folder on another disk`;
    throw new AprError('IO', message, { found: free, expected: needed });
  }

  async #verify(): Promise<void> {
    const { name, digest, part } = this.#file;
    if (digest === undefined || this.#hash === undefined) return;
    const found = this.#hash.digest('hex');
    if (found === digest.value) return;
    await discardPart(part);
    const what = digest.algorithm === 'sha256' ? 'SHA-256' : 'git hash';
    const message = `${name}: what came is not the file that the hub lists: its ${what} is ${found}, expected ${digest.value}; it was removed, pull it again`;
    throw new AprError('BAD_FORMAT', message, { found, expected: digest.value });
  }
}

async function readRecord(part: string): Promise<PartRecord | undefined> {
  try {
    return JSON.parse(await readFile(recordPath(part), 'utf8')) as PartRecord;
  } catch {
    // Absent or half written: then nothing is known about the part, and that is handled.
    return undefined;
  }
}

function newHash(algorithm: Digest['algorithm'], size: number): Hash {
  // Git hashes a header before the content: https://git-scm.com/book/en/v2/Git-Internals-Git-Objects
  return algorithm === 'sha256' ? createHash('sha256') : createHash('sha1').update(`blob ${size}\0`);
}

async function hashInto(
  hash: Hash,
  path: string,
  signal?: AbortSignal,
  onBytes?: (bytes: number) => void,
): Promise<void> {
  let bytes = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
    if (signal?.aborted) throw new AprError('ABORTED', 'the download was interrupted');
    hash.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    onBytes?.(bytes);
  }
}

async function readHead(
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
  stallMs: number,
): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for (let length = 0; reader !== undefined && length < HEAD_BYTES; ) {
    const { done, value } = await readChunk(reader, stallMs);
    if (done) break;
    chunks.push(value);
    length += value.length;
  }
  return chunks;
}

/** The error for an answer that does not begin as a model does. */
function noModel(name: string, head: readonly Uint8Array[], size: number): AprError | undefined {
  const first = new Uint8Array(Buffer.concat(head).subarray(0, HEAD_BYTES));
  if (first.length === 0) {
    return size === 0 ? new AprError('BAD_FORMAT', `${name}: the server sent an empty file`) : undefined;
  }
  const text = String.fromCharCode(...first.subarray(0, 4));
  if (MODEL_MAGICS.some((magic) => magic.startsWith(text))) return undefined;
  const message = `${name}: what the server sends is no model: ${describeBytes(first, size)}`;
  return new AprError('BAD_FORMAT', message);
}

/** `bytes FIRST-LAST/SIZE` */
function contentRange(response: Response): { readonly start: number; readonly size: number | undefined } | undefined {
  const match = /^bytes (\d{1,16})-\d{1,16}\/(\d{1,16}|\*)$/.exec(response.headers.get('content-range') ?? '');
  if (match === null || response.status !== 206) return undefined;
  return { start: Number(match[1]), size: match[2] === '*' ? undefined : Number(match[2]) };
}

function contentLength(response: Response): number | undefined {
  const text = response.headers.get('content-length') ?? '';
  return /^\d{1,16}$/.test(text) ? Number(text) : undefined;
}

function diskError({ name, part }: FileToDownload, cause: unknown): AprError {
  const { code, message } = cause as NodeJS.ErrnoException;
  const reason = code === 'ENOSPC' ? `the disk of ${dirname(part)} is full` : message;
  return new AprError('IO', `${name}: cannot be written: ${reason}`, { path: part }, { cause });
}
