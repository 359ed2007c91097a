/** A file that a command writes beside its answer. */

import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readSync, statSync, unlinkSync } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { AprError } from '../src/errors.ts';

export interface OutputFile {
  /** Puts the file in its place, over an older one. @throws AprError IO */
  commit(text: string): Promise<void>;
  /** Leaves nothing behind; after {@link commit} it does nothing. */
  discard(): Promise<void>;
}

/** First bytes of model files: GGUF, and `.apr` of either version. */
const MODEL_MAGIC: ReadonlySet<string> = new Set(['GGUF', 'APR\0', 'APR2', 'APR1', 'APRN']);

/**
 * Tables, traces and pages are made again in a moment, models are not: none is written over, be it the one that is run,
 * a further part of it, or another.
 * @throws AprError USAGE
 */
export function refuseModel(option: string, output: string | undefined, ...models: readonly string[]): void {
  if (output === undefined) return;
  const there = statSync(output, { throwIfNoEntry: false });
  if (there === undefined) return;
  const isSource = models.some((model) => {
    const source = statSync(model, { throwIfNoEntry: false });
    return source?.ino === there.ino && source.dev === there.dev;
  });
  if (!isSource && !(there.isFile() && MODEL_MAGIC.has(firstBytes(output)))) return;
  const what = isSource ? 'the model itself' : 'a model file';
  throw new AprError('USAGE', `${option} is ${output}, ${what}; give another file`, { option, found: output });
}

/** Of a file that cannot be read: nothing. It can still be replaced, which is for whoever writes to say. */
function firstBytes(path: string): string {
  const bytes = new Uint8Array(4);
  try {
    const descriptor = openSync(path, 'r');
    try {
      return String.fromCharCode(...bytes.subarray(0, readSync(descriptor, bytes)));
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return '';
  }
}

/** @throws AprError USAGE when two options would write to the same place */
export function refuseSame(outputs: Readonly<Record<string, string | undefined>>): void {
  const options = new Map<string, string>();
  for (const [option, output] of Object.entries(outputs)) {
    if (output === undefined) continue;
    const other = options.get(resolve(output));
    options.set(resolve(output), option);
    if (other === undefined) continue;
    const message = `${other} and ${option} are both ${output}; give each a name of its own`;
    throw new AprError('USAGE', message, { option, found: output });
  }
}

/**
 * Opens it under a temporary name, so that a place that cannot be written to is found before anything is computed.
 * @throws AprError NOT_FOUND without its folder, USAGE when a folder has its name, IO
 */
export async function openOutputFile(path: string): Promise<OutputFile> {
  const failed = (cause: unknown): AprError => {
    const reason = cause instanceof Error ? cause.message : String(cause);
    return new AprError('IO', `${path}: cannot be written: ${reason}`, { path }, { cause });
  };
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.part`);
  let handle: FileHandle;
  try {
    const there = statSync(path, { throwIfNoEntry: false });
    if (there !== undefined && !there.isFile() && !there.isDirectory()) {
      // Renaming would put a plain file in the place of a device or pipe.
      throw new AprError('USAGE', `${path}: is a device or pipe, expected the name of a file`, { path });
    }
    if (there?.isDirectory()) {
      throw new AprError('USAGE', `${path}: is a folder, expected the name of a file`, { path });
    }
    handle = await open(temporary, 'wx');
  } catch (cause) {
    if (cause instanceof AprError) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw failed(cause);
    const message = `${path}: there is no folder ${dirname(path)} to write it to`;
    throw new AprError('NOT_FOUND', message, { path }, { cause });
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
  let done = false;
  return {
    commit: async (text) => {
      try {
        await handle.writeFile(text);
        await handle.close();
        await rename(temporary, path);
      } catch (cause) {
        throw failed(cause);
      }
      done = true;
      process.off('exit', removeAtExit);
    },
    discard: async () => {
      if (done) return;
      done = true;
      process.off('exit', removeAtExit);
      await handle.close().catch(() => {});
      await rm(temporary, { force: true });
    },
  };
}
