/** A file that is being written: under a temporary name until it is whole. */

import { randomBytes } from 'node:crypto';
import { existsSync, type Stats, unlinkSync } from 'node:fs';
import { type FileHandle, link, lstat, open, rename, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { AprError } from '../../errors.ts';
import type { ByteSink } from '../../formats/byte-sink.ts';

export interface FileSink extends ByteSink {
  /**
   * Puts the file in its place.
   * @throws AprError OVERWRITE when a file has come there meanwhile, IO
   */
  commit(): Promise<void>;
  /** Removes what was written; after {@link commit} it does nothing. */
  discard(): Promise<void>;
}

export interface FileSinkOptions {
  /** Replace an existing file. */
  readonly force: boolean;
}

/** @throws AprError OVERWRITE when the file exists and `force` is not set, NOT_FOUND without its folder, IO */
export async function createFileSink(path: string, { force }: FileSinkOptions): Promise<FileSink> {
  await refuseExisting(path, force);
  // In the same folder, since a file can be renamed within one file system only.
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.part`);
  let handle: FileHandle;
  try {
    handle = await open(temporary, 'wx');
  } catch (cause) {
    if ((codeOf(cause) === 'ENOENT' || codeOf(cause) === 'ENOTDIR') && !existsSync(dirname(path))) {
      throw new AprError(
        'NOT_FOUND',
        `${path}: there is no folder ${dirname(path)} to write it to`,
        { path },
        { cause },
      );
    }
    throw failed(path, cause);
  }
  // An interrupt ends the process without another turn of the event loop.
  const removeAtExit = (): void => {
    try {
      unlinkSync(temporary);
    } catch {
      // Nothing more can be done about it, and nobody is left to tell.
    }
  };
  process.once('exit', removeAtExit);

  let open_ = true;
  const close = async (): Promise<void> => {
    if (!open_) return;
    open_ = false;
    await handle.close();
  };
  let done = false;
  return {
    write: async (bytes) => {
      try {
        for (let at = 0; at < bytes.length; ) {
          at += (await handle.write(bytes, at, bytes.length - at, null)).bytesWritten;
        }
      } catch (cause) {
        throw failed(path, cause);
      }
    },
    commit: async () => {
      try {
        await handle.sync();
        await close();
        if (force) await rename(temporary, path);
        else await placeNew(temporary, path);
      } catch (cause) {
        if (codeOf(cause) === 'EEXIST') throw overwrite(path);
        throw cause instanceof AprError ? cause : failed(path, cause);
      }
      done = true;
      process.off('exit', removeAtExit);
    },
    discard: async () => {
      if (done) return;
      done = true;
      process.off('exit', removeAtExit);
      await close();
      await unlink(temporary).catch((cause: unknown) => {
        if (codeOf(cause) !== 'ENOENT') throw failed(path, cause);
      });
    },
  };
}

/** A link is refused where the name is taken, at once and whoever took it; renaming would replace. */
async function placeNew(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path);
  } catch (cause) {
    if (codeOf(cause) === 'EEXIST') throw cause;
    // No links on this file system: look, then rename.
    await refuseExisting(path, false);
    await rename(temporary, path);
    return;
  }
  await unlink(temporary);
}

async function refuseExisting(path: string, force: boolean): Promise<void> {
  let stats: Stats;
  try {
    stats = await lstat(path);
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT' || codeOf(cause) === 'ENOTDIR') return;
    throw failed(path, cause);
  }
  if (!stats.isFile() && !stats.isSymbolicLink() && !stats.isDirectory()) {
    // Renaming would put a plain file in the place of a device or pipe.
    throw new AprError('OVERWRITE', `${path}: is a device or pipe, expected the name of a file`, { path });
  }
  if (stats.isDirectory())
    throw new AprError('OVERWRITE', `${path}: is a directory, expected the name of a new file`, { path });
  if (!force) throw overwrite(path);
}

function overwrite(path: string): AprError {
  return new AprError('OVERWRITE', `${path}: exists already; --force replaces it`, { path });
}

function failed(path: string, cause: unknown): AprError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new AprError('IO', `${path}: cannot be written: ${reason}`, { path }, { cause });
}

function codeOf(cause: unknown): unknown {
  return cause instanceof Error && 'code' in cause ? cause.code : undefined;
}
