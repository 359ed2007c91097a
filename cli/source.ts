/** What SOURCE may be: a file, a folder with a model in it, a bundled model, or a reference to one elsewhere. */

import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AprError } from '../src/errors.ts';
import { BUNDLED_MODELS, bundledModelPath } from '../src/platform/node/bundled-models.ts';
import type { Environment } from './environment.ts';
import { nearest } from './nearest.ts';
import { quote } from './options.ts';
import { visibleLine } from './render/terminal.ts';

export const SOURCE_EXPECTED = 'the path of a model file, "demo", or a reference such as hf://ORG/REPO';

/** What options say about it. */
export interface SourceValues {
  readonly offline?: true;
  readonly quiet?: true;
}

/**
 * Path of the model file; one that is elsewhere is fetched unless it has been already.
 * @throws AprError USAGE for what is no source, NOT_FOUND, and whatever fetching it may throw
 */
export async function resolveSource(
  source: string,
  values: SourceValues,
  { stderr }: Pick<Environment, 'stderr'>,
): Promise<string> {
  if (source === '') throw new AprError('USAGE', `SOURCE is empty, expected ${SOURCE_EXPECTED}`);
  const bundled = bundledModelPath(source);
  if (bundled !== undefined) return bundled;
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(source)?.[1]?.toLowerCase();
  if (scheme === 'file') return fileOf(source);
  const note = (text: string): void => {
    if (!values.quiet) stderr.write(`apr: ${visibleLine(text)}\n`);
  };
  const stats = scheme === undefined ? statsOf(source) : undefined;
  if (stats?.isDirectory()) return modelIn(source, note);
  // A path that exists goes before any reference that could be spelled like it.
  if (stats !== undefined) return source;
  const isReference = scheme !== undefined || /^(hf|huggingface)\.co\//i.test(source);
  // The short names are not worth loading for what is plainly a path.
  if (!isReference && /[/\\]|\.(gguf|apr)$/i.test(source)) return source;
  const { referenceOf } = await import('../src/hub/index.ts');
  const reference = referenceOf(source);
  if (reference === undefined) {
    if (scheme === undefined) return source;
    const message = `SOURCE is ${quote(source)}, and apr reads no ${scheme}:// addresses; expected ${SOURCE_EXPECTED}`;
    throw new AprError('USAGE', message, { option: 'SOURCE', found: source, expected: SOURCE_EXPECTED });
  }
  const { fetchModel } = await import('./fetch-model.ts');
  return (await fetchModel(reference, values, stderr)).path;
}

/** False where there certainly is nothing; what else may be wrong with a path, opening it says. */
export function sourceExists(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

export function isFolder(path: string): boolean {
  return statsOf(path)?.isDirectory() === true;
}

/** The error of opening `source`, with what may have been meant where there is no such file. */
export function withAdvice(error: unknown, source: string): unknown {
  if (!(error instanceof AprError) || error.code !== 'NOT_FOUND' || error.details.path === undefined) return error;
  const near = neighbour(source);
  const advice = near === undefined ? `expected ${SOURCE_EXPECTED}` : `did you mean ${quote(near)}?`;
  return new AprError('NOT_FOUND', `${error.message}; ${advice}`, error.details, { cause: error });
}

function fileOf(address: string): string {
  try {
    return fileURLToPath(address);
  } catch (cause) {
    const message = `SOURCE is ${quote(address)}, which is no address of a file: ${(cause as Error).message}`;
    throw new AprError('USAGE', message, { option: 'SOURCE', found: address }, { cause });
  }
}

function statsOf(path: string): ReturnType<typeof statSync> {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    // A name that no path can have, or a folder that may not be looked into: opening it says so.
    return undefined;
  }
}

/** The model in a folder; of several the one that "apr pull" would choose. */
async function modelIn(folder: string, note: (text: string) => void): Promise<string> {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch (cause) {
    throw new AprError('IO', `${folder}: cannot be read: ${(cause as Error).message}`, { path: folder }, { cause });
  }
  const { chooseModel, modelsAmong } = await import('../src/hub/index.ts');
  const { paths } = chooseModel(`the folder ${folder}`, names);
  const path = join(folder, paths[0]!);
  const { length } = modelsAmong(names);
  if (length > 1) note(`${folder}: ${length} models are in it, this is ${paths[0]}`);
  return path;
}

/** A name that was perhaps meant: an alias, a repository of the hub, or a file in the same folder. */
function neighbour(source: string): string | undefined {
  const alias = nearest(source, BUNDLED_MODELS);
  if (alias !== undefined) return alias;
  const folder = dirname(source);
  const models = existsSync(folder) ? readdirSync(folder).filter((name) => /\.(gguf|apr)$/i.test(name)) : [];
  const name = basename(source);
  const found = models.find(
    (model) => /\.(gguf|apr)$/i.exec(model)?.[0] === model.slice(name.length) && model.startsWith(name),
  );
  const near = found ?? nearest(name, models);
  if (near !== undefined) return join(folder, near);
  const isRepository = /^[A-Za-z0-9_][\w.-]*\/[A-Za-z0-9_][\w.-]*(:[\w.-]+)?$/.test(source) && !existsSync(folder);
  return isRepository && !/\.(gguf|apr)$/i.test(source) ? `hf://${source}` : undefined;
}
