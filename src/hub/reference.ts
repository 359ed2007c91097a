/** How a model elsewhere is named: on the Hugging Face hub, or by its address. */

import { AprError } from '../errors.ts';

/** A model in a repository of the hub. */
export interface HubReference {
  readonly kind: 'hub';
  /** `org/name` */
  readonly repository: string;
  /** Branch, tag or commit. */
  readonly revision: string;
  /** Path of the file within the repository; undefined leaves the choice to apr. */
  readonly file?: string;
  /** Quantisation that is wanted, such as `Q8_0`. */
  readonly quantisation?: string;
}

/** A model file at any other address. */
export interface UrlReference {
  readonly kind: 'url';
  readonly url: URL;
}

export type ModelReference = HubReference | UrlReference;

export const DEFAULT_REVISION = 'main';
const HUB_HOSTS: readonly string[] = ['huggingface.co', 'www.huggingface.co', 'hf.co'];
const FORM = 'hf://ORG/REPO, hf://ORG/REPO:Q4_K_M or hf://ORG/REPO/FILE.gguf, each with @REVISION behind it if need be';

/**
 * Reads `hf://org/repo[/file][@revision]`, `hf://org/repo:QUANTISATION`, `hf.co/org/repo…` and addresses of the hub's
 * pages, and any other `http(s)://` address.
 * @param hubHosts hosts that are the hub or a mirror of it, besides its own
 * @returns undefined for what looks like none of these, such as a path
 * @throws AprError USAGE for one that is not well formed
 */
export function parseReference(text: string, hubHosts: readonly string[] = []): ModelReference | undefined {
  const hub = /^(?:hf:\/\/|(?:hf|huggingface)\.co\/)(.*)$/is.exec(text)?.[1];
  if (hub !== undefined) return hubReference(text, hub);
  if (!/^https?:\/\//i.test(text)) return undefined;
  let url: URL;
  try {
    url = new URL(text);
  } catch (cause) {
    throw new AprError('USAGE', `${JSON.stringify(text)} is no address: ${(cause as Error).message}`, {}, { cause });
  }
  if (HUB_HOSTS.includes(url.hostname) || hubHosts.includes(url.host)) {
    const page = hubPage(text, url.pathname);
    if (page !== undefined) return page;
  }
  if (url.username !== '' || url.password !== '') {
    throw new AprError(
      'USAGE',
      'the address holds a user name or password, which would be kept beside the file; leave it out',
    );
  }
  url.hash = '';
  return { kind: 'url', url };
}

/** `org/repo`, which `apr pull` takes as a repository of the hub; elsewhere it could as well be a path. */
export function isRepositoryName(text: string): boolean {
  return isRepository(text.replace(/:[\w.-]+$/, ''));
}

/** The reference as it is written. */
export function showReference(reference: ModelReference): string {
  if (reference.kind === 'url') return reference.url.href;
  const { repository, file, quantisation, revision } = reference;
  const which = file === undefined ? (quantisation === undefined ? '' : `:${quantisation}`) : `/${file}`;
  return `hf://${repository}${which}${revision === DEFAULT_REVISION ? '' : `@${revision}`}`;
}

/** A path that stays within its folder on every system, as files of a repository must. */
export function isInnerPath(path: string): boolean {
  if (path === '' || path.length > 1024 || /[\0-\x1f\x7f\\:*?"<>|]/.test(path)) return false;
  // Windows drops dots and spaces at the end of a name, so that "x. " would be "x".
  return path.split('/').every((name) => name !== '' && name !== '.' && name !== '..' && !/[. ]$/.test(name));
}

function hubReference(text: string, rest: string): HubReference {
  const malformed = (what: string): AprError =>
    new AprError('USAGE', `${JSON.stringify(text)}: ${what}; expected ${FORM}`, { found: text });
  const parts = rest.replace(/[?#].*$/s, '').split('/');
  const org = parts[0] ?? '';
  // The revision stands behind the repository, as the hub's own tools write it, or at the end.
  const [, name = '', quantisation, early] = /^([^:@]*)(?::([^@]*))?(?:@(.*))?$/s.exec(parts[1] ?? '') ?? [];
  const path = parts.slice(2).join('/');
  const repository = `${org}/${name}`;
  if (!isRepository(repository)) throw malformed(`${JSON.stringify(repository)} is no repository`);
  let file: string | undefined;
  let revision = early;
  if (early !== undefined && /^refs$/.test(early) && path !== '') revision = `${early}/${path}`;
  else if (path !== '') {
    const at = path.indexOf('@');
    if (at >= 0) {
      if (early !== undefined) throw malformed('it names two revisions');
      revision = path.slice(at + 1);
    }
    file = at < 0 ? path : path.slice(0, at);
    if (!isInnerPath(file)) throw malformed(`${JSON.stringify(file)} is no path of a file in a repository`);
  }
  if (quantisation !== undefined && !/^[\w.-]+$/.test(quantisation)) {
    throw malformed(`${JSON.stringify(quantisation)} is no quantisation`);
  }
  if (quantisation !== undefined && file !== undefined) throw malformed('it names a file and a quantisation');
  if (revision !== undefined && !isRevision(revision)) throw malformed(`${JSON.stringify(revision)} is no revision`);
  return {
    kind: 'hub',
    repository,
    revision: revision ?? DEFAULT_REVISION,
    ...(file === undefined ? {} : { file }),
    // Ollama's word for "whichever is usual".
    ...(quantisation === undefined || quantisation === 'latest' ? {} : { quantisation }),
  };
}

/** The address of a repository's page, or of a file in it as the page links to it. */
function hubPage(text: string, pathname: string): HubReference | undefined {
  let parts: string[];
  try {
    parts = pathname
      .replace(/^\/+|\/+$/g, '')
      .split('/')
      .map(decodeURIComponent);
  } catch {
    return undefined;
  }
  const [org = '', name = '', view, revision, ...path] = parts;
  if (!isRepository(`${org}/${name}`) || /\.(gguf|apr)$/i.test(name)) return undefined;
  if (view === undefined) return hubReference(text, `${org}/${name}`);
  if (!['blob', 'resolve', 'raw', 'tree'].includes(view) || revision === undefined) return undefined;
  const file = view === 'tree' || path.length === 0 ? '' : `/${path.join('/')}`;
  return hubReference(text, `${org}/${name}${file}@${revision}`);
}

/** https://huggingface.co/docs/huggingface_hub: letters, digits, `-`, `_`, `.`; neither `--` nor `..`; 96 at most. */
function isRepository(text: string): boolean {
  return (
    /^[A-Za-z0-9_][\w.-]*\/[A-Za-z0-9_][\w.-]*$/.test(text) && !/--|\.\.|[.-](\/|$)/.test(text) && text.length <= 96
  );
}

/** What git allows and what is safe as a path under `refs/`. */
function isRevision(text: string): boolean {
  return isInnerPath(text) && !/[\s~^@]/.test(text) && text.length <= 200 && !text.startsWith('-');
}
