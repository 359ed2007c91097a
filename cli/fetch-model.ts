/** A model that is elsewhere: found on this disk, or fetched under the user's eyes. */

import {
  cachedModel,
  type ModelReference,
  type PulledModel,
  type PullOptions,
  pull,
  showReference,
} from '../src/hub/index.ts';
import type { OutputStream } from './environment.ts';
import { showDownload } from './render/download.ts';
import { visibleLine } from './render/terminal.ts';
import { showBytes } from './render/units.ts';

export interface FetchValues {
  readonly offline?: true;
  readonly verify?: true;
  readonly quiet?: true;
}

/**
 * The model of the reference: at once where this disk has it, as `apr run` wants it.
 * @throws AprError
 */
export async function fetchModel(
  reference: ModelReference,
  values: FetchValues,
  stderr: OutputStream,
): Promise<{ readonly path: string }> {
  return cachedModel(reference) ?? (await pullModel(reference, values, stderr));
}

/**
 * The model of the reference as the server has it now.
 * @throws AprError
 */
export async function pullModel(
  reference: ModelReference,
  { offline, verify, quiet }: FetchValues,
  stderr: OutputStream,
): Promise<PulledModel> {
  const bar = quiet || stderr.isTTY !== true ? undefined : showDownload(stderr);
  const note = (text: string): void => {
    if (quiet) return;
    bar?.clear();
    stderr.write(`apr: ${visibleLine(text)}\n`);
  };
  const options: PullOptions = {
    ...(offline === undefined ? {} : { offline }),
    ...(verify === undefined ? {} : { verify }),
    ...(bar === undefined ? {} : { onProgress: bar.update }),
    onNote: note,
  };
  let model: PulledModel;
  try {
    model = await pull(reference, options);
  } finally {
    bar?.clear();
  }
  const { received, size, quantisation, others } = model;
  const name = showReference(reference);
  // Of what was named to the letter there is nothing to say but that it came.
  const chosen =
    reference.kind === 'hub' &&
    reference.file === undefined &&
    reference.quantisation === undefined &&
    others.length > 0
      ? `, ${quantisation ?? model.reference} of ${[quantisation, ...others].filter(Boolean).join(', ')}`
      : '';
  if (received > 0) note(`fetched ${name}${chosen}: ${showBytes(size)}`);
  else if (chosen !== '') note(`${name}${chosen}: was here already`);
  return model;
}
