/** Where models are kept and asked for: the variables that the Hugging Face hub's own tools read, and apr's cache. */

import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { AprError } from '../errors.ts';

export interface HubSettings {
  /** Folder of the hub's cache, shared with other tools: `HF_HUB_CACHE`, `HF_HOME/hub`, `~/.cache/huggingface/hub`. */
  readonly hubCache: string;
  /** Folder for files from any other address: `APR_CACHE`, `~/.cache/apr`. */
  readonly urlCache: string;
  /** `HF_ENDPOINT`, without a slash at its end. */
  readonly endpoint: string;
  /** Sent to the endpoint only: `HF_TOKEN`, or, to the hub itself, the one that `hf auth login` keeps. */
  readonly token: string | undefined;
  /** `HF_HUB_OFFLINE`. */
  readonly offline: boolean;
}

const HUB = 'https://huggingface.co';

/** @throws AprError USAGE for a variable whose value cannot be meant */
export function hubSettings(env: NodeJS.ProcessEnv = process.env): HubSettings {
  const home = env.HF_HOME || join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'huggingface');
  const endpoint = endpointOf(env.HF_ENDPOINT);
  return {
    hubCache: env.HF_HUB_CACHE || env.HUGGINGFACE_HUB_CACHE || join(home, 'hub'),
    urlCache: env.APR_CACHE || join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'apr'),
    endpoint,
    token: tokenOf(env, home, endpoint),
    offline: /^(1|true|yes|on)$/i.test(env.HF_HUB_OFFLINE ?? ''),
  };
}

function endpointOf(given: string | undefined): string {
  if (!given) return HUB;
  const problem = (what: string): AprError =>
    new AprError('USAGE', `HF_ENDPOINT is ${JSON.stringify(given)}, ${what}; expected an address such as ${HUB}`);
  let url: URL;
  try {
    url = new URL(given);
  } catch (cause) {
    throw problem(`which is no address (${(cause as Error).message})`);
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw problem(`with the scheme ${url.protocol}`);
  if (url.search !== '' || url.hash !== '') throw problem('with more than a host and a path');
  return url.href.replace(/\/+$/, '');
}

function tokenOf(env: NodeJS.ProcessEnv, home: string, endpoint: string): string | undefined {
  const given = (env.HF_TOKEN || env.HUGGING_FACE_HUB_TOKEN || '').trim();
  if (given !== '') return checked(given, 'HF_TOKEN');
  // Somebody who points apr at another server has not said that it may have this token.
  if (endpoint !== HUB || /^(1|true|yes|on)$/i.test(env.HF_HUB_DISABLE_IMPLICIT_TOKEN ?? '')) return undefined;
  const path = env.HF_TOKEN_PATH || join(home, 'token');
  let text: string;
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new AprError(
      'IO',
      `${path}: the token in it cannot be read: ${(cause as Error).message}`,
      { path },
      { cause },
    );
  }
  return text === '' ? undefined : checked(text, path);
}

function checked(token: string, where: string): string {
  if (/^[\x21-\x7e]{1,512}$/.test(token)) return token;
  throw new AprError('USAGE', `${where} is no token: expected letters, digits and the like, without spaces, as hf_…`);
}
