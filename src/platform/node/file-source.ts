/** A model file on disk. */

import { type FileHandle, open, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { AprError } from '../../errors.ts';
import { type ByteSource, checkRange } from '../../formats/byte-source.ts';
import { partNames } from '../../formats/gguf/split.ts';
import { partsSource } from '../../formats/parts-source.ts';

/** A single read must stay below 2^31 bytes. */
const MAX_READ = 1 << 30;

/**
 * Opens the file for reading; of a model that is split over several files (`NAME-00001-of-00003.gguf`) all of them,
 * whichever is named.
 * @throws AprError NOT_FOUND, also for another part, BAD_FORMAT for a directory or device, IO
 */
export async function openFileSource(path: string): Promise<ByteSource> {
  const names = partNames(path);
  if (names === undefined) return openFile(path);
  const parts: ByteSource[] = [];
  try {
    // First the one that was named: without it the others are beside the point.
    await (await openFile(path)).close();
    for (const [i, name] of names.entries()) {
      parts.push(
        await openFile(name).catch((error: unknown) => {
          if (!(error instanceof AprError) || error.code !== 'NOT_FOUND') throw error;
          const message = `${name}: no such file; it is part ${i + 1} of the ${names.length} that ${path} belongs to`;
          throw new AprError('NOT_FOUND', message, { path: name, part: i + 1, parts: names.length }, { cause: error });
        }),
      );
    }
  } catch (error) {
    for (const part of parts) await part.close();
    throw error;
  }
  return partsSource(path, parts);
}

async function openFile(path: string): Promise<ByteSource> {
  try {
    // Looked at before it is opened: opening a named pipe would wait for somebody to write to it.
    const stats = await stat(path);
    if (stats.isDirectory()) {
      throw new AprError('BAD_FORMAT', `${path}: is a directory, expected a model file; name the .gguf file in it`, {
        path,
      });
    }
    if (!stats.isFile()) {
      const message = `${path}: is a pipe, socket or device, expected a file that can be read at any place`;
      throw new AprError('BAD_FORMAT', message, { path });
    }
    const handle = await open(path, 'r');
    try {
      return new FileSource(path, (await handle.stat()).size, handle);
    } catch (error) {
      await handle.close();
      throw error;
    }
  } catch (error) {
    throw error instanceof AprError ? error : openError(path, error);
  }
}

function openError(path: string, cause: unknown): AprError {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  // The last is a path that no file can have, since it holds a zero byte.
  if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ERR_INVALID_ARG_VALUE') {
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
    // Absolute, since a worker opens it later, when the current directory may be another.
    this.locator = { kind: 'file', path: resolve(path) };
    this.#handle = handle;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    checkRange(this, offset, length);
    const bytes = new Uint8Array(length);
    for (let done = 0; done < length; ) {
      const count = await this.#readOnce(bytes, done, offset);
      if (count === 0) {
        const message =
          `${this.name}: ends at byte ${offset + done} while it is being read; ` +
          `it had ${this.size} bytes when it was opened`;
        throw new AprError('BAD_FORMAT', message);
      }
      done += count;
    }
    return bytes;
  }

  close(): Promise<void> {
    this.#closed ??= this.#handle.close();
    return this.#closed;
  }

  /** Bytes read from `offset + done` on to `bytes[done …]`; the system may return fewer than asked for. */
  async #readOnce(bytes: Uint8Array, done: number, offset: number): Promise<number> {
    if (this.#closed !== undefined) throw new AprError('IO', `${this.name}: was read after it had been closed`);
    try {
      const { bytesRead } = await this.#handle.read(
        bytes,
        done,
        Math.min(bytes.length - done, MAX_READ),
        offset + done,
      );
      return bytesRead;
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new AprError('IO', `${this.name}: reading failed: ${reason}`, {}, { cause });
    }
  }
}
