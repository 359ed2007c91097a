/** `apr rm REF...` */

import { AprError } from '../../src/errors.ts';
import {
  type CachedModel,
  cachedModel,
  hubSettings,
  listHubCache,
  type ModelReference,
  removeModel,
  removeUnfinished,
  showReference,
} from '../../src/hub/index.ts';
import type { Environment } from '../environment.ts';
import type { OptionValues } from '../options.ts';
import type { OutputForm } from '../render/error.ts';
import { jsonLine } from '../render/json.ts';
import { visibleLine, write } from '../render/terminal.ts';
import { plural, showBytes } from '../render/units.ts';
import { readReference } from './pull.ts';
import type { RM_OPTIONS } from './rm-options.ts';

/** @throws AprError NOT_FOUND, before anything is removed; USAGE, IO */
export async function rm(
  positionals: readonly string[],
  values: OptionValues<typeof RM_OPTIONS>,
  form: OutputForm,
  { stdout, stderr }: Environment,
): Promise<void> {
  if (positionals.length === 0 && !values.unfinished) {
    throw new AprError('USAGE', 'no model is named, expected one that "apr list" shows: apr rm REF...');
  }
  const settings = hubSettings();
  // All of them first: a slip in one name removes nothing.
  const models = positionals.flatMap((text) => named(readReference(text), values.all === true));
  const removed: { readonly reference: string; readonly path: string }[] = [];
  let freed = 0;
  for (const model of new Map(models.map((each) => [each.path, each])).values()) {
    freed += await removeModel(settings, model);
    removed.push({ reference: model.reference, path: model.path });
  }
  const unfinished = values.unfinished ? await removeUnfinished(settings) : [];
  freed += unfinished.reduce((sum, { size }) => sum + size, 0);
  if (form === 'json') {
    await write(stdout, jsonLine({ removed, unfinished, freed_bytes: freed }));
    return;
  }
  if (values.quiet) return;
  for (const { reference } of removed) stderr.write(`removed ${visibleLine(reference)}\n`);
  if (values.unfinished) stderr.write(`removed ${plural(unfinished.length, 'unfinished download')}\n`);
  stderr.write(`${showBytes(freed)} are free again\n`);
}

/** What is on this disk of a reference. @throws AprError NOT_FOUND, USAGE when it could be several */
function named(reference: ModelReference, all: boolean): CachedModel[] {
  const settings = hubSettings();
  const name = showReference(reference);
  let models: readonly CachedModel[];
  if (reference.kind === 'hub' && reference.file === undefined && reference.quantisation === undefined) {
    const { repository, revision } = reference;
    models = listHubCache(settings, repository).filter((model) => revision === 'main' || model.revision === revision);
    if (models.length > 1 && !all) {
      const list = models.map((model) => model.reference);
      const message = `${name}: ${models.length} models are on this disk, name one of them or add --all: ${list.join(', ')}`;
      throw new AprError('USAGE', message, { expected: list });
    }
  } else {
    const model = cachedModel(reference, settings);
    models = model === undefined ? [] : [model];
  }
  if (models.length > 0) return [...models];
  throw new AprError('NOT_FOUND', `${name}: is not on this disk; "apr list" shows what is`, { reference: name });
}
