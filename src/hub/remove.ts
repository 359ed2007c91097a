/** Taking models off this disk, and what is left of downloads that were never completed. */

import { existsSync, realpathSync, statSync } from 'node:fs';
import { rm, rmdir, unlink } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';
import { type CachedModel, REPOSITORY_PREFIX, SOURCE_RECORD } from './cache.ts';
import { recordPath } from './download.ts';
import { entries, filesUnder, readIfThere } from './folders.ts';
import type { HubSettings } from './settings.ts';

/**
 * Deletes the files of a model: its links, and the bytes that nothing else links to; then what is empty.
 * @returns bytes that were freed
 */
export async function removeModel(settings: HubSettings, { files }: CachedModel): Promise<number> {
  let freed = 0;
  for (const { path, size } of files) {
    const bytes = realpathSync(path);
    await rm(path);
    if (bytes === realpathOr(dirname(path), basename(path))) freed += size;
    else {
      const repository = dirname(dirname(bytes));
      const inCache = !relative(realpathSync(settings.hubCache), bytes).startsWith('..');
      if (inCache && basename(dirname(bytes)) === 'blobs' && !isLinked(repository, bytes)) {
        await rm(bytes);
        freed += size;
      }
    }
    await prune(dirname(path), settings);
  }
  return freed;
}

/** A download that was never completed. */
export interface UnfinishedPart {
  readonly path: string;
  /** Bytes so far. */
  readonly size: number;
  /** What it belongs to. */
  readonly name: string;
}

export function unfinishedParts(settings: HubSettings): UnfinishedPart[] {
  const folders = [
    ...entries(settings.hubCache)
      .filter(({ name }) => name.startsWith(REPOSITORY_PREFIX))
      .map(({ name }) => join(settings.hubCache, name, 'blobs')),
    ...entries(join(settings.urlCache, 'urls')).map(({ name }) => join(settings.urlCache, 'urls', name)),
  ];
  return folders.flatMap((folder) =>
    entries(folder)
      .filter(({ name }) => name.endsWith('.apr.incomplete'))
      .map(({ name }) => {
        const path = join(folder, name);
        return { path, size: statSync(path).size, name: partName(path) };
      }),
  );
}

/** Being written, as far as one can tell. */
const FRESH_MS = 60_000;

/**
 * Removes them, but for those that are being written right now.
 * @returns what was removed
 */
export async function removeUnfinished(settings: HubSettings): Promise<UnfinishedPart[]> {
  const parts = unfinishedParts(settings).filter(({ path }) => Date.now() - statSync(path).mtimeMs > FRESH_MS);
  for (const { path } of parts) {
    await rm(path, { force: true });
    await rm(recordPath(path), { force: true });
    await prune(dirname(path), settings);
  }
  return parts;
}

function partName(part: string): string {
  try {
    const { name } = JSON.parse(readIfThere(recordPath(part)) ?? '{}') as { name?: unknown };
    return typeof name === 'string' ? name : basename(part);
  } catch {
    return basename(part); // the record was cut short; the name is only for people
  }
}

function realpathOr(folder: string, name: string): string {
  return join(realpathSync(folder), name);
}

function isLinked(repository: string, bytes: string): boolean {
  const root = join(repository, 'snapshots');
  return filesUnder(root).some((path) => realpathSync(join(root, path)) === bytes);
}

/** Removes empty folders from here up to the cache, and the refs of snapshots that are no more. */
async function prune(folder: string, settings: HubSettings): Promise<void> {
  let at = folder;
  const roots = [settings.hubCache, join(settings.urlCache, 'urls')];
  while (roots.some((root) => at.startsWith(root + sep))) {
    if (existsSync(join(at, SOURCE_RECORD)) && entries(at).length === 1) await unlink(join(at, SOURCE_RECORD));
    if (basename(at).startsWith(REPOSITORY_PREFIX) && dirname(at) === settings.hubCache) {
      await pruneRepository(at);
    }
    if (!existsSync(at)) {
      at = dirname(at);
      continue;
    }
    if (entries(at).length > 0) return;
    await rmdir(at);
    at = dirname(at);
  }
}

async function pruneRepository(folder: string): Promise<void> {
  const refs = join(folder, 'refs');
  for (const revision of filesUnder(refs)) {
    const commit = readIfThere(join(refs, revision))?.trim() ?? '';
    if (!existsSync(join(folder, 'snapshots', commit))) await unlink(join(refs, revision));
  }
  for (const name of ['blobs', 'snapshots', 'refs', '.no_exist']) {
    if (existsSync(join(folder, name)) && entries(join(folder, name)).length === 0) await rmdir(join(folder, name));
  }
}
