/** `apr pull REF` */

import { AprError } from '../../src/errors.ts';
import { isRepositoryName, type ModelReference, referenceOf, SHORT_NAMES } from '../../src/hub/index.ts';
import type { Environment } from '../environment.ts';
import { pullModel } from '../fetch-model.ts';
import { nearest } from '../nearest.ts';
import { type OptionValues, quote } from '../options.ts';
import type { OutputForm } from '../render/error.ts';
import { jsonLine } from '../render/json.ts';
import { visibleLine, write } from '../render/terminal.ts';
import type { PULL_OPTIONS } from './pull-options.ts';

/** @throws AprError for everything that goes wrong */
export async function pull(
  positionals: readonly string[],
  values: OptionValues<typeof PULL_OPTIONS>,
  form: OutputForm,
  { stdout, stderr }: Environment,
): Promise<void> {
  const [text, surplus] = positionals;
  if (text === undefined || surplus !== undefined) {
    const message = `found ${positionals.length} arguments, expected one reference: apr pull hf://ORG/REPO`;
    throw new AprError('USAGE', message, { found: positionals.length, expected: 1 });
  }
  const { received, ...model } = await pullModel(readReference(text), values, stderr);
  if (form === 'json') await write(stdout, jsonLine({ ...model, received_bytes: received }));
  else await write(stdout, `${visibleLine(model.path)}\n`);
}

/**
 * A reference where nothing else can be meant, so that `org/repo` is one too.
 * @throws AprError USAGE
 */
export function readReference(text: string): ModelReference {
  const reference = referenceOf(text) ?? (isRepositoryName(text) ? referenceOf(`hf://${text}`) : undefined);
  if (reference !== undefined) return reference;
  const near = nearest(text, SHORT_NAMES);
  const advice = near === undefined ? `or a short name: ${SHORT_NAMES.join(', ')}` : `or did you mean ${quote(near)}?`;
  const message = `${quote(text)} is no reference; expected hf://ORG/REPO, hf://ORG/REPO:QUANTISATION, hf://ORG/REPO/FILE, https://…, ${advice}`;
  throw new AprError('USAGE', message, { found: text });
}
