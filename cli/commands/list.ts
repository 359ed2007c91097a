/** `apr list` */

import { statSync } from 'node:fs';
import { AprError } from '../../src/errors.ts';
import { type CachedModel, hubSettings, listHubCache, listUrlCache, unfinishedParts } from '../../src/hub/index.ts';
import type { Environment } from '../environment.ts';
import type { OptionValues } from '../options.ts';
import type { OutputForm } from '../render/error.ts';
import { jsonLine } from '../render/json.ts';
import { styleOf } from '../render/style.ts';
import { columns } from '../render/table.ts';
import { visibleLine, write } from '../render/terminal.ts';
import { plural, showBytes } from '../render/units.ts';
import type { LIST_OPTIONS } from './list-options.ts';

/** @throws AprError USAGE, IO */
export async function list(
  positionals: readonly string[],
  values: OptionValues<typeof LIST_OPTIONS>,
  form: OutputForm,
  { stdout, stderr }: Environment,
): Promise<void> {
  if (positionals.length > 0) {
    throw new AprError('USAGE', `found ${positionals.length} arguments, expected none: apr list`, { expected: 0 });
  }
  const settings = hubSettings();
  const models = [...listHubCache(settings), ...listUrlCache(settings)].map(entryOf);
  models.sort((a, b) => b.modified.localeCompare(a.modified) || a.reference.localeCompare(b.reference));
  const unfinished = unfinishedParts(settings);
  if (form === 'json') {
    const folders = { hub_cache: settings.hubCache, url_cache: settings.urlCache };
    await write(stdout, jsonLine({ models, unfinished, ...folders }));
    return;
  }
  if (models.length > 0) {
    const rows = models.map(({ reference, quantisation, size, modified }) => [
      visibleLine(reference),
      quantisation ?? '',
      showBytes(size),
      modified.slice(0, 10),
    ]);
    const [head, ...lines] = columns([['model', 'type', 'size', 'fetched'], ...rows], [2]);
    await write(stdout, `${styleOf(stdout).bold(head!)}\n${lines.map((line) => `${line}\n`).join('')}`);
  }
  if (values.quiet) return;
  if (models.length === 0) {
    stderr.write(`no models in ${visibleLine(settings.hubCache)}; "apr pull qwen3-0.6b" fetches one\n`);
  }
  if (unfinished.length > 0) {
    const size = unfinished.reduce((sum, part) => sum + part.size, 0);
    const names = visibleLine(unfinished.map(({ name }) => name).join(', '));
    stderr.write(
      `${plural(unfinished.length, 'unfinished download')}, ${showBytes(size)}: ${names}; "apr pull" goes on with it, "apr rm --unfinished" removes it\n`,
    );
  }
}

function entryOf({ reference, path, files, quantisation, commit }: CachedModel): {
  readonly reference: string;
  readonly path: string;
  readonly files: number;
  readonly size: number;
  readonly quantisation: string | null;
  readonly commit: string | null;
  readonly modified: string;
} {
  return {
    reference,
    path,
    files: files.length,
    size: files.reduce((sum, { size }) => sum + size, 0),
    quantisation: quantisation ?? null,
    commit: commit ?? null,
    modified: statSync(path).mtime.toISOString(),
  };
}
