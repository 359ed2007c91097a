/** What SOURCE may be. */

import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { AprError } from '../src/errors.ts';
import { BUNDLED_MODELS, bundledModelPath } from '../src/platform/node/bundled-models.ts';
import { nearest } from './nearest.ts';
import { quote } from './options.ts';

/**
 * Path of the model file.
 * @throws AprError USAGE for a source that is not a local file
 */
export function resolveSource(source: string): string {
  const bundled = bundledModelPath(source);
  if (bundled !== undefined) return bundled;
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(source)?.[1];
  if (scheme !== undefined) {
    throw new AprError(
      'USAGE',
      `SOURCE is ${JSON.stringify(source)}, but this version does not read ${scheme}:// addresses; ` +
        'download the model file and give its path',
      { option: 'SOURCE', found: source, expected: 'path of a model file' },
    );
  }
  if (source === '') throw new AprError('USAGE', 'SOURCE is empty, expected the path of a model file or "demo"');
  return source;
}

/** False where there certainly is nothing; what else may be wrong with a path, opening it says. */
export function sourceExists(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

/** The error of opening `source`, with what may have been meant where there is no such file. */
export function withAdvice(error: unknown, source: string): unknown {
  if (!(error instanceof AprError) || error.code !== 'NOT_FOUND') return error;
  const near = neighbour(source);
  const advice =
    near === undefined
      ? 'expected the path of a GGUF or .apr file, or "demo"; this version downloads nothing'
      : `did you mean ${quote(near)}?`;
  return new AprError('NOT_FOUND', `${error.message}; ${advice}`, error.details, { cause: error });
}

/** A name that was perhaps meant: an alias, or a file in the same folder. */
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
  return near === undefined ? undefined : join(folder, near);
}
