/**
 * What a repository of the hub holds: `GET /api/models/ORG/NAME/revision/REVISION?blobs=true`
 * (https://huggingface.co/docs/hub/api). Everything in the answer is checked: it becomes names of files.
 */

import { AprError } from '../errors.ts';
import { type RequestOptions, readText, request, statusError } from './http.ts';
import { type HubReference, isInnerPath, showReference } from './reference.ts';
import { type RetryOptions, withRetries } from './retry.ts';

/** How the bytes of a file are known: SHA-256 of large files, git's SHA-1 of a blob for small ones. */
export interface Digest {
  readonly algorithm: 'sha256' | 'git-sha1';
  /** Lower-case hexadecimal; the name of the file in the cache. */
  readonly value: string;
}

export interface RepositoryFile {
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  readonly digest: Digest;
}

export interface RepositoryListing {
  /** Full hash. */
  readonly commit: string;
  /** Everything in it. */
  readonly paths: readonly string[];
  /** What could be models, by path. */
  readonly files: ReadonlyMap<string, RepositoryFile>;
}

const MAX_LISTING_BYTES = 64 << 20;

/** @throws AprError NOT_FOUND, IO, BAD_FORMAT for an answer that is no listing, ABORTED */
export async function listRepository(
  endpoint: string,
  reference: HubReference,
  options: RequestOptions,
  retry: RetryOptions,
): Promise<RepositoryListing> {
  const { repository, revision } = reference;
  const name = showReference({ kind: 'hub', repository, revision });
  const address = `${endpoint}/api/models/${repository}/revision/${encodeURIComponent(revision)}?blobs=true`;
  const text = await withRetries(retry, options.signal, async () => {
    const response = await request(address, name, options);
    if (response.ok) return readText(response, name, MAX_LISTING_BYTES, options);
    await response.body?.cancel();
    throw missing(name, statusError(name, response, options.token !== undefined), options.token !== undefined);
  });
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    const looks = /^\s*</.test(text) ? 'an HTML page, perhaps of a proxy or a sign-in' : 'no JSON';
    const message = `${name}: ${new URL(address).host} answered with ${looks}, expected the list of the repository's files`;
    throw new AprError('BAD_FORMAT', message, {}, { cause });
  }
  return readListing(json, name);
}

/** The hub answers 401 for a repository that does not exist, so as not to tell who has private ones. */
function missing(name: string, error: AprError, hasToken: boolean): AprError {
  if (error.details.status !== 401 || hasToken) return error;
  const message = `${name}: there is no such repository, or it is private; check its name, or give a token: HF_TOKEN=hf_…`;
  return new AprError('NOT_FOUND', message, error.details);
}

function readListing(json: unknown, name: string): RepositoryListing {
  const problem = (what: string): AprError =>
    new AprError('BAD_FORMAT', `${name}: the server's list of files ${what}; it is perhaps no Hugging Face hub`);
  const { sha, siblings } = (json ?? {}) as { sha?: unknown; siblings?: unknown };
  if (typeof sha !== 'string' || !/^[0-9a-f]{40}$/.test(sha)) throw problem('names no commit');
  if (!Array.isArray(siblings)) throw problem('holds no files');
  const paths: string[] = [];
  const files = new Map<string, RepositoryFile>();
  for (const entry of siblings as unknown[]) {
    const { rfilename: path, size, blobId, lfs } = (entry ?? {}) as Record<string, unknown>;
    if (typeof path !== 'string') throw problem('has an entry without a name');
    paths.push(path);
    // Whatever else a repository holds may be named as it likes.
    if (!/\.(gguf|apr)$/i.test(path)) continue;
    if (!isInnerPath(path))
      throw problem(`names a file ${JSON.stringify(path.slice(0, 100))}, which no file may be called`);
    const large = (lfs ?? undefined) as { sha256?: unknown; size?: unknown } | undefined;
    const digest: Digest =
      large === undefined
        ? { algorithm: 'git-sha1', value: String(blobId) }
        : { algorithm: 'sha256', value: String(large.sha256) };
    const bytes = large?.size ?? size;
    if (!Number.isSafeInteger(bytes) || (bytes as number) < 0) throw problem(`does not say how long ${path} is`);
    if (!(large === undefined ? /^[0-9a-f]{40}$/ : /^[0-9a-f]{64}$/).test(digest.value)) {
      throw problem(`gives no ${large === undefined ? 'git hash' : 'SHA-256'} of ${path}`);
    }
    files.set(path, { path, size: bytes as number, digest });
  }
  return { commit: sha, paths, files };
}
