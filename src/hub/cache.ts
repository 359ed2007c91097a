/**
 * Models on this disk: the cache of the Hugging Face hub, whose layout other tools share
 * (https://huggingface.co/docs/hub/local-cache), and a folder for files from any other address.
 *
 * ```
 * models--ORG--NAME/blobs/DIGEST                      the bytes
 *                   snapshots/COMMIT/PATH             a link to them
 *                   refs/REVISION                     the commit that a branch or tag was at
 * .locks/models--ORG--NAME/DIGEST.apr.lock
 * urls/HASH OF THE ADDRESS/NAME, source.json
 * ```
 */

import { createHash, randomBytes } from 'node:crypto';
import { realpathSync, statSync } from 'node:fs';
import { mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { AprError } from '../errors.ts';
import { chooseModel, type ModelChoice, modelsAmong } from './choose.ts';
import { entries, filesUnder, readIfThere } from './folders.ts';
import { type HubReference, isInnerPath, showReference, type UrlReference } from './reference.ts';
import type { Digest } from './repository.ts';
import type { HubSettings } from './settings.ts';

/** A model that is on this disk, whole. */
export interface CachedModel {
  /** Its name for `apr run` and `apr rm`. */
  readonly reference: string;
  /** Of the first file, to open it by. */
  readonly path: string;
  readonly files: readonly CachedFile[];
  readonly quantisation: string | undefined;
  readonly commit: string | undefined;
  /** Branch, tag or commit by which it is named. */
  readonly revision: string | undefined;
}

export interface CachedFile {
  readonly path: string;
  /** Bytes. */
  readonly size: number;
}

export const REPOSITORY_PREFIX = 'models--';
export const SOURCE_RECORD = 'source.json';

export function repositoryFolder({ hubCache }: HubSettings, repository: string): string {
  return join(hubCache, REPOSITORY_PREFIX + repository.replaceAll('/', '--'));
}

export function blobPath(settings: HubSettings, repository: string, { value }: Digest): string {
  return join(repositoryFolder(settings, repository), 'blobs', value);
}

/** Not the name that Python's tools use, since they would append to what is being written. */
export function partPath(target: string): string {
  return `${target}.apr.incomplete`;
}

export function lockPath(settings: HubSettings, repository: string, { value }: Digest): string {
  return join(settings.hubCache, '.locks', REPOSITORY_PREFIX + repository.replaceAll('/', '--'), `${value}.apr.lock`);
}

export function snapshotPath(settings: HubSettings, repository: string, commit: string, path: string): string {
  return join(repositoryFolder(settings, repository), 'snapshots', commit, ...path.split('/'));
}

/** The commit that a revision was at when it was last asked for. */
export function cachedCommit(settings: HubSettings, { repository, revision }: HubReference): string | undefined {
  const folder = repositoryFolder(settings, repository);
  if (/^[0-9a-f]{40}$/.test(revision)) return revision;
  const text = readIfThere(join(folder, 'refs', ...revision.split('/')))?.trim();
  return text !== undefined && /^[0-9a-f]{40}$/.test(text) ? text : undefined;
}

/**
 * The model of the reference, as it was last pulled.
 * @returns undefined where it is not there, or not whole
 * @throws AprError USAGE when several are there and none is the most wanted
 */
export function findCached(settings: HubSettings, reference: HubReference): CachedModel | undefined {
  const commit = cachedCommit(settings, reference);
  if (commit === undefined) return undefined;
  const { repository, file, quantisation } = reference;
  const root = join(repositoryFolder(settings, repository), 'snapshots', commit);
  const paths = filesUnder(root);
  let choice: ModelChoice | undefined;
  if (file !== undefined) choice = modelsAmong(paths).find((model) => model.paths.includes(file));
  else {
    try {
      choice = chooseModel(`the cache of ${showReference(reference)}`, paths, quantisation);
    } catch (error) {
      if (!(error instanceof AprError) || error.code !== 'NOT_FOUND') throw error;
    }
  }
  return choice && cachedModel(settings, reference, commit, choice);
}

function cachedModel(
  settings: HubSettings,
  { repository, revision }: HubReference,
  commit: string,
  { paths, quantisation }: ModelChoice,
): CachedModel {
  const files = paths.map((path) => {
    const whole = snapshotPath(settings, repository, commit, path);
    return { path: whole, size: statSync(whole).size };
  });
  const reference = showReference({ kind: 'hub', repository, revision, file: paths[0]! });
  return { reference, path: files[0]!.path, files, quantisation, commit, revision };
}

/**
 * All models in the hub's cache that apr could run, each once: by its branch or tag, or else by its commit.
 * @param only of this repository
 */
export function listHubCache(settings: HubSettings, only?: string): CachedModel[] {
  const models: CachedModel[] = [];
  for (const { name } of entries(settings.hubCache)) {
    if (!name.startsWith(REPOSITORY_PREFIX)) continue;
    // The hub allows no "--" in names, so that this reads back what was written.
    const repository = name.slice(REPOSITORY_PREFIX.length).replace('--', '/');
    if (!repository.includes('/') || (only !== undefined && repository !== only)) continue;
    const folder = join(settings.hubCache, name);
    const revisions = new Map<string, string>();
    for (const revision of filesUnder(join(folder, 'refs'))) {
      const commit = readIfThere(join(folder, 'refs', revision))?.trim();
      if (commit !== undefined && (revision === 'main' || !revisions.has(commit))) revisions.set(commit, revision);
    }
    const seen = new Set<string>();
    const commits = entries(join(folder, 'snapshots')).map((entry) => entry.name);
    commits.sort((a, b) => Number(revisions.has(b)) - Number(revisions.has(a)));
    for (const commit of commits) {
      if (!/^[0-9a-f]{40}$/.test(commit)) continue;
      const reference: HubReference = { kind: 'hub', repository, revision: revisions.get(commit) ?? commit };
      for (const choice of modelsAmong(filesUnder(join(folder, 'snapshots', commit)))) {
        const model = cachedModel(settings, reference, commit, choice);
        // A file that did not change between two commits is one file.
        const bytes = realpathSync(model.path);
        if (!seen.has(bytes)) models.push(model);
        seen.add(bytes);
      }
    }
  }
  return models;
}

/** Links the bytes into the snapshot, or moves them there where the file system has no links. */
export async function placeInSnapshot(blob: string, path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${randomBytes(6).toString('hex')}.link`;
  try {
    await symlink(relative(dirname(path), blob), temporary);
  } catch (error) {
    // Windows without developer mode, FAT and the like.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EPERM' && code !== 'EACCES' && code !== 'ENOSYS' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP')
      throw error;
    await rename(blob, path);
    return;
  }
  await rename(temporary, path);
}

export async function writeRef(
  settings: HubSettings,
  { repository, revision }: HubReference,
  commit: string,
): Promise<void> {
  if (/^[0-9a-f]{40}$/.test(revision)) return;
  const path = join(repositoryFolder(settings, repository), 'refs', ...revision.split('/'));
  if (readIfThere(path)?.trim() === commit) return;
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${randomBytes(6).toString('hex')}`;
  await writeFile(temporary, commit);
  await rename(temporary, path);
}

/** The folder that a file from this address is kept in. */
export function urlFolder({ urlCache }: HubSettings, { url }: UrlReference): string {
  return join(urlCache, 'urls', createHash('sha256').update(url.href).digest('hex').slice(0, 32));
}

/** A name for a file from this address, the last part of its path where that can be one. */
export function urlFileName(url: URL): string {
  let name: string;
  try {
    name = decodeURIComponent(basename(url.pathname));
  } catch {
    name = basename(url.pathname);
  }
  return /\.(gguf|apr)$/i.test(name) && isInnerPath(name) && !name.includes('/') && name.length < 200
    ? name
    : 'model.gguf';
}

/** What is known about the files from an address. */
export interface SourceRecord {
  readonly url: string;
  readonly files: readonly { readonly name: string; readonly size: number; readonly etag: string | null }[];
}

export function findCachedUrl(settings: HubSettings, reference: UrlReference): CachedModel | undefined {
  return readUrlFolder(urlFolder(settings, reference));
}

export function listUrlCache({ urlCache }: HubSettings): CachedModel[] {
  const root = join(urlCache, 'urls');
  return entries(root).flatMap(({ name }) => readUrlFolder(join(root, name)) ?? []);
}

function readUrlFolder(folder: string): CachedModel | undefined {
  const text = readIfThere(join(folder, SOURCE_RECORD));
  if (text === undefined) return undefined;
  let record: SourceRecord;
  try {
    record = JSON.parse(text) as SourceRecord;
  } catch {
    // It is written at the end and at once; whatever this is, it is no model of ours.
    return undefined;
  }
  const files: CachedFile[] = [];
  for (const { name, size } of record.files) {
    const path = join(folder, name);
    if (statSync(path, { throwIfNoEntry: false })?.size !== size) return undefined;
    files.push({ path, size });
  }
  const [choice] = modelsAmong(record.files.map(({ name }) => name));
  const first = files[0];
  if (first === undefined) return undefined;
  return {
    reference: record.url,
    path: first.path,
    files,
    quantisation: choice?.quantisation,
    commit: undefined,
    revision: undefined,
  };
}
