/** A model file on disk. */

import { type FileHandle, open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { AprError } from '../../errors.ts';
import type { ByteSource } from '../../formats/byte-source.ts';

/** A single read must stay below 2^31 bytes. */
const MAX_READ = 1 << 30;

/** @throws AprError NOT_FOUND, BAD_FORMAT for a directory, IO */
export async function openFileSource(path: string): Promise<ByteSource> {
  let handle: FileHandle;
  try {
    handle = await open(path, 'r');
  } catch (cause) {
    throw openError(path, cause);
  }
  try {
    const stat = await handle.stat();
    if (stat.isDirectory()) throw new AprError('BAD_FORMAT', `${path}: is a directory, expected a GGUF file`);
    if (!stat.isFile()) throw new AprError('BAD_FORMAT', `${path}: is not a regular file, so its bytes cannot be read at random`);
    return new FileSource(path, stat.size, handle);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function openError(path: string, cause: unknown): AprError {
  const code = (cause as { code?: string }).code;
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    return new AprError('NOT_FOUND', `${path}: no such file`, { path }, { cause });
  }
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new AprError('IO', `${path}: cannot be opened: ${reason}`, { path }, { cause });
}

class FileSource implements ByteSource {
  readonly name: string;
  readonly size: number;
  readonly locator: { readonly kind: 'file'; readonly path: string };
  readonly #handle: FileHandle;
  #closed: Promise<void> | undefined;

  constructor(path: string, size: number, handle: FileHandle) {
    this.name = path;
    this.size = size;
    this.locator = { kind: 'file', path: resolve(path) };
    this.#handle = handle;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    if (offset + length > this.size) {
      throw new AprError('BAD_FORMAT', `${this.name}: bytes up to ${offset + length} were asked for, the file has ${this.size}`);
    }
    const bytes = new Uint8Array(length);
    for (let done = 0; done < length; ) {
      let count: number;
      try {
        const size = Math.min(length - done, MAX_READ);
        count = (await this.#handle.read(bytes, done, size, offset + done)).bytesRead;
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new AprError('IO', `${this.name}: reading failed: ${reason}`, {}, { cause });
      }
      if (count === 0) throw new AprError('BAD_FORMAT', `${this.name}: ends at byte ${offset + done}, while it is being read`);
      done += count;
    }
    return bytes;
  }

  close(): Promise<void> {
    this.#closed ??= this.#handle.close();
    return this.#closed;
  }
}
