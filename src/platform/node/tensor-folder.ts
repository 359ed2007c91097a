/** Folders that saved activations are written to and read from. */

import { randomBytes } from 'node:crypto';
import {
  appendFileSync,
  closeSync,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs';
import { mkdir, rename, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { AprError } from '../../errors.ts';

/** Appends to files of a folder that nobody sees before {@link commit}. */
interface NewFolder {
  append(file: string, bytes: Uint8Array): void;
  commit(): Promise<void>;
  discard(): Promise<void>;
}

interface ExistingFolder {
  readonly name: string;
  size(file: string): number | undefined;
  read(file: string, offset: number, length: number): Uint8Array;
}

/** @throws AprError OVERWRITE when there is something at `path` already, NOT_FOUND without its parent, IO */
export async function createTensorFolder(path: string): Promise<NewFolder> {
  const empty = refuseExisting(path);
  const target = resolve(path);
  const temporary = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString('hex')}.part`);
  try {
    await mkdir(temporary);
  } catch (cause) {
    if (codeOf(cause) !== 'ENOENT' && codeOf(cause) !== 'ENOTDIR') throw failed(path, cause);
    const message = `${path}: there is no folder ${dirname(path)} to write it to`;
    throw new AprError('NOT_FOUND', message, { path }, { cause });
  }
  const remove = (): void => rmSync(temporary, { recursive: true, force: true });
  // An interrupt ends the process without another turn of the event loop.
  process.once('exit', remove);
  let done = false;
  return {
    append: (file, bytes) => {
      try {
        appendFileSync(join(temporary, file), bytes);
      } catch (cause) {
        throw failed(path, cause);
      }
    },
    commit: async () => {
      try {
        if (empty) await rmdir(target);
        await rename(temporary, target);
      } catch (cause) {
        throw failed(path, cause);
      }
      done = true;
      process.off('exit', remove);
    },
    discard: async () => {
      if (done) return;
      done = true;
      process.off('exit', remove);
      await rm(temporary, { recursive: true, force: true });
    },
  };
}

/** Undefined when there is no folder of that name. @throws AprError IO */
export function openTensorFolder(path: string): ExistingFolder | undefined {
  if (!lookAt(path)?.isDirectory()) return undefined;
  const at = (file: string): string => join(path, file);
  return {
    name: path,
    size: (file) => {
      const found = lookAt(at(file));
      // Opening a pipe would wait for somebody who writes to it.
      if (found === undefined || found.isFile()) return found?.size;
      const message = `${at(file)}: is a folder, pipe, socket or device, expected a file`;
      throw new AprError('BAD_FORMAT', message, { path: at(file) });
    },
    read: (file, offset, length) => {
      let descriptor: number | undefined;
      try {
        descriptor = openSync(at(file), 'r');
        const { size } = fstatSync(descriptor);
        const bytes = new Uint8Array(Math.max(0, Math.min(length, size - offset)));
        for (let done = 0; done < bytes.length; ) {
          const count = readSync(descriptor, bytes, done, bytes.length - done, offset + done);
          if (count === 0) throw new Error('it ended while it was read');
          done += count;
        }
        return bytes;
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new AprError('IO', `${at(file)}: cannot be read: ${reason}`, { path: at(file) }, { cause });
      } finally {
        if (descriptor !== undefined) closeSync(descriptor);
      }
    },
  };
}

/** True when there is an empty folder in its place. */
function refuseExisting(path: string): boolean {
  const found = lookAt(path);
  if (found === undefined) return false;
  if (found.isDirectory() && readdirSync(path).length === 0) return true;
  const what = found.isDirectory() ? 'is a folder with something in it' : 'exists already';
  throw new AprError('OVERWRITE', `${path}: ${what}, expected the name of a new or an empty folder`, { path });
}

function lookAt(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new AprError('IO', `${path}: cannot be looked at: ${reason}`, { path }, { cause });
  }
}

function failed(path: string, cause: unknown): AprError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new AprError('IO', `${path}: cannot be written: ${reason}`, { path }, { cause });
}

function codeOf(cause: unknown): unknown {
  return cause instanceof Error && 'code' in cause ? cause.code : undefined;
}
