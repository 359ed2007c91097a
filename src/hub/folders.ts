/** Looking into folders that may not be there. */

import { type Dirent, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AprError } from '../errors.ts';

/** Deeper than any repository nests its files. */
const MAX_DEPTH = 8;

/** What is in the folder; nothing where there is none. @throws AprError IO */
export function entries(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return [];
    throw new AprError('IO', `${folder}: cannot be read: ${message}`, { path: folder }, { cause: error });
  }
}

/** Paths of the files in the folder and below, with `/` between; links that lead nowhere are none. */
export function filesUnder(root: string, depth = 0): string[] {
  if (depth > MAX_DEPTH) return [];
  return entries(root).flatMap((entry) => {
    if (entry.isDirectory())
      return filesUnder(join(root, entry.name), depth + 1).map((path) => `${entry.name}/${path}`);
    return statSync(join(root, entry.name), { throwIfNoEntry: false })?.isFile() ? [entry.name] : [];
  });
}

/** The text of a file. @throws AprError IO */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EISDIR') return undefined;
    throw new AprError('IO', `${path}: cannot be read: ${(error as Error).message}`, { path }, { cause: error });
  }
}
