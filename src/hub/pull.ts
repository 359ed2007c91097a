/** A reference becomes a file on this disk. */

import { statSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { AprError } from '../errors.ts';
import { partNames } from '../formats/gguf/split.ts';
import {
  blobPath,
  type CachedModel,
  findCached,
  findCachedUrl,
  lockPath,
  partPath,
  placeInSnapshot,
  SOURCE_RECORD,
  type SourceRecord,
  snapshotPath,
  urlFileName,
  urlFolder,
  writeRef,
} from './cache.ts';
import { chooseModel, modelsAmong, names, quantisationOf } from './choose.ts';
import { type DownloadOptions, digestOf, download, type FileToDownload } from './download.ts';
import { lock } from './lock.ts';
import {
  type HubReference,
  type ModelReference,
  parseReference,
  showReference,
  type UrlReference,
} from './reference.ts';
import { listRepository, type RepositoryFile } from './repository.ts';
import type { RetryOptions } from './retry.ts';
import { type HubSettings, hubSettings } from './settings.ts';
import { shortName } from './short-names.ts';

/** How far a download is. */
export interface PullProgress {
  /** File that is being fetched, its number among how many. */
  readonly file: string;
  readonly number: number;
  readonly of: number;
  /** Bytes of all files that are on the disk. */
  readonly bytes: number;
  /** Undefined where the server does not say. */
  readonly total: number | undefined;
}

export interface PullOptions {
  /** Asks nobody: what is not on this disk is not found. */
  readonly offline?: boolean;
  /** Reads what is there already and compares its digest. */
  readonly verify?: boolean;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: PullProgress) => void;
  /** Told what a person would want to know meanwhile, a sentence at a time. */
  readonly onNote?: (note: string) => void;
  /** From the environment by default. */
  readonly settings?: HubSettings;
  /** A server that sends nothing for so long is given up, ms; 30,000 by default. */
  readonly stallMs?: number;
  readonly retry?: Partial<RetryOptions>;
}

export interface PulledModel {
  /** Its full name, by which it is found again. */
  readonly reference: string;
  /** The model file; of a split model its first part. */
  readonly path: string;
  readonly files: readonly { readonly path: string; readonly size: number; readonly sha256: string | null }[];
  /** Bytes of all files. */
  readonly size: number;
  readonly quantisation: string | null;
  /** Other quantisations that the repository has. */
  readonly others: readonly string[];
  readonly commit: string | null;
  /** Bytes that came over the network now. */
  readonly received: number;
}

const STALL_MS = 30_000;
const RETRY: RetryOptions = { attempts: 5, delayMs: 1000, patienceMs: 120_000 };

/** The reference that a text is, a short name included; undefined for what can only be a path. @throws AprError USAGE */
export function referenceOf(text: string, settings: HubSettings = hubSettings()): ModelReference | undefined {
  return parseReference(shortName(text) ?? text, [new URL(settings.endpoint).host]);
}

/**
 * The model of the reference that is on this disk.
 * @throws AprError USAGE when several are there and none is the most wanted
 */
export function cachedModel(reference: ModelReference, settings: HubSettings = hubSettings()): CachedModel | undefined {
  return reference.kind === 'hub' ? findCached(settings, reference) : findCachedUrl(settings, reference);
}

/**
 * Fetches the model unless this disk has it as the server has it now, and says where it is.
 * @throws AprError NOT_FOUND, USAGE when the choice is the user's, IO, BAD_FORMAT for what is no model or not the one
 *   that the hub lists, ABORTED; what came so far stays for the next attempt
 */
export async function pull(reference: ModelReference, options: PullOptions = {}): Promise<PulledModel> {
  const settings = options.settings ?? hubSettings();
  if (options.offline === true || settings.offline) return offline(reference, settings, options);
  return reference.kind === 'hub'
    ? pullFromHub(reference, settings, options)
    : pullFromUrl(reference, settings, options);
}

/** @throws AprError NOT_FOUND */
function offline(reference: ModelReference, settings: HubSettings, options: PullOptions): PulledModel {
  const cached = cachedModel(reference, settings);
  if (cached !== undefined) return asPulled(cached);
  const why = options.offline === true ? '--offline' : 'HF_HUB_OFFLINE';
  const where = reference.kind === 'hub' ? settings.hubCache : settings.urlCache;
  const message = `${showReference(reference)}: is not on this disk (${where}), and ${why} forbids to fetch it; leave that out, or see "apr list"`;
  throw new AprError('NOT_FOUND', message, { offline: true });
}

function asPulled({ reference, path, files, quantisation, commit }: CachedModel, received = 0): PulledModel {
  return {
    reference,
    path,
    files: files.map((file) => ({ ...file, sha256: null })),
    size: sum(files),
    quantisation: quantisation ?? null,
    others: [],
    commit: commit ?? null,
    received,
  };
}

async function pullFromHub(reference: HubReference, settings: HubSettings, options: PullOptions): Promise<PulledModel> {
  const { repository, revision } = reference;
  const { endpoint, token } = settings;
  const transport = transportOf(options, token);
  const listing = await listRepository(endpoint, reference, transport, transport.retry);
  const where = showReference({ kind: 'hub', repository, revision });
  const choice =
    reference.file === undefined
      ? chooseModel(where, listing.paths, reference.quantisation)
      : modelOfFile(where, listing.paths, reference.file);
  const files = choice.paths.map((path) => listing.files.get(path)!);
  const total = sum(files);
  let before = 0;
  let received = 0;
  const paths: string[] = [];
  for (const [i, file] of files.entries()) {
    const progress = (bytes: number): void =>
      options.onProgress?.({ file: file.path, number: i + 1, of: files.length, bytes: before + bytes, total });
    const address = `${endpoint}/${repository}/resolve/${listing.commit}/${file.path.split('/').map(encodeURIComponent).join('/')}`;
    const path = snapshotPath(settings, repository, listing.commit, file.path);
    received += await fetchBlob(settings, repository, file, path, address, options, {
      ...transport,
      onBytes: progress,
    });
    paths.push(path);
    before += file.size;
  }
  await writeRef(settings, reference, listing.commit);
  return {
    reference: showReference({ kind: 'hub', repository, revision, file: choice.paths[0]! }),
    path: paths[0]!,
    files: files.map(({ size, digest }, i) => ({
      path: paths[i]!,
      size,
      sha256: digest.algorithm === 'sha256' ? digest.value : null,
    })),
    size: total,
    quantisation: choice.quantisation ?? null,
    others: names(modelsAmong(listing.paths)).filter((name) => name !== choice.quantisation),
    commit: listing.commit,
    received,
  };
}

/** All parts, when the file is one of a split model. @throws AprError NOT_FOUND */
function modelOfFile(
  where: string,
  paths: readonly string[],
  file: string,
): { readonly paths: readonly string[]; readonly quantisation: string | undefined } {
  if (!/\.(gguf|apr)$/i.test(file)) {
    throw new AprError('USAGE', `${file}: is no model file, expected one that ends in .gguf or .apr`, { found: file });
  }
  const wanted = partNames(file) ?? [file];
  const absent = wanted.find((path) => !paths.includes(path));
  if (absent === undefined) return { paths: wanted, quantisation: quantisationOf(file) };
  const models = modelsAmong(paths).map((model) => model.paths[0]!);
  const shown = models.slice(0, 20).join(', ') + (models.length > 20 ? ` and ${models.length - 20} more` : '');
  const message = `${where} has no file ${absent}; its models are ${shown === '' ? 'none' : shown}`;
  throw new AprError('NOT_FOUND', message, { found: absent, expected: models });
}

/** @returns bytes that came over the network */
async function fetchBlob(
  settings: HubSettings,
  repository: string,
  file: RepositoryFile,
  path: string,
  address: string,
  { verify, signal, onNote }: PullOptions,
  transport: DownloadOptions,
): Promise<number> {
  const { size, digest } = file;
  const blob = blobPath(settings, repository, digest);
  const name = basename(file.path);
  const release = await lock(lockPath(settings, repository, digest), {
    signal,
    onWait: (holder) => onNote?.(`${name}: ${holder} is fetching it; waiting`),
  });
  try {
    // In the snapshot it may be a file of its own, where links are not possible.
    for (const there of [path, blob]) {
      const found = statSync(there, { throwIfNoEntry: false });
      if (found === undefined) continue;
      const reason = await whyWrong(there, found.size, file, verify === true, transport);
      if (reason === undefined) {
        transport.onBytes?.(size, size);
        if (there === blob) await placeInSnapshot(blob, path);
        return 0;
      }
      onNote?.(`${name}: ${reason}; fetching it again`);
      await rm(blob, { force: true });
      await rm(there, { force: true });
    }
    const wanted: FileToDownload = { name, address, target: blob, part: partPath(blob), size, digest };
    const { received } = await download(wanted, transport);
    await placeInSnapshot(blob, path);
    return received;
  } finally {
    release();
  }
}

/** Why a file on this disk is not the one that the hub lists. */
async function whyWrong(
  path: string,
  found: number,
  { size, digest }: RepositoryFile,
  verify: boolean,
  { signal, onBytes }: DownloadOptions,
): Promise<string | undefined> {
  if (found !== size) return `${path} has ${found} bytes, expected ${size}`;
  if (!verify) return undefined;
  const value = await digestOf(path, digest.algorithm, signal, (bytes) => onBytes?.(bytes, size));
  return value === digest.value ? undefined : `${path} has the digest ${value}, expected ${digest.value}`;
}

async function pullFromUrl(reference: UrlReference, settings: HubSettings, options: PullOptions): Promise<PulledModel> {
  const addresses = urlsOf(reference.url);
  const first: UrlReference = { kind: 'url', url: addresses[0]! };
  const folder = urlFolder(settings, first);
  const transport = transportOf(options, undefined);
  const release = await lock(join(settings.urlCache, 'urls', `${basename(folder)}.lock`), {
    signal: options.signal,
    onWait: (holder) => options.onNote?.(`${first.url.href}: ${holder} is fetching it; waiting`),
  });
  try {
    const cached = findCachedUrl(settings, first);
    if (cached !== undefined) return asPulled(cached);
    const record: { name: string; size: number; etag: string | null }[] = [];
    let before = 0;
    let received = 0;
    for (const [i, url] of addresses.entries()) {
      const name = urlFileName(url);
      const target = join(folder, name);
      const onBytes = (bytes: number, total: number | undefined): void =>
        options.onProgress?.({
          file: name,
          number: i + 1,
          of: addresses.length,
          bytes: before + bytes,
          total: addresses.length === 1 ? total : undefined,
        });
      const file = { name, address: url.href, target, part: partPath(target), size: undefined, digest: undefined };
      const done = await download(file, { ...transport, onBytes });
      record.push({ name, size: done.size, etag: done.etag ?? null });
      before += done.size;
      received += done.received;
    }
    const source: SourceRecord = { url: first.url.href, files: record };
    await writeFile(join(folder, SOURCE_RECORD), JSON.stringify(source));
    return asPulled(findCachedUrl(settings, first)!, received);
  } finally {
    release();
  }
}

/** All parts, when the address is that of one of a split model. */
function urlsOf(url: URL): URL[] {
  return (partNames(url.pathname) ?? [url.pathname]).map((pathname) => {
    const part = new URL(url.href);
    part.pathname = pathname;
    return part;
  });
}

function transportOf({ signal, onNote, stallMs, retry }: PullOptions, token: string | undefined): DownloadOptions {
  return {
    token,
    signal,
    stallMs: stallMs ?? STALL_MS,
    ...(onNote === undefined ? {} : { onNote }),
    retry: {
      ...RETRY,
      onRetry: ({ message }, waitMs) => onNote?.(`${message}; trying again in ${Math.ceil(waitMs / 1000)} s`),
      ...retry,
    },
  };
}

function sum(files: readonly { readonly size: number }[]): number {
  return files.reduce((bytes, { size }) => bytes + size, 0);
}
