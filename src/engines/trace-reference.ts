/** The run that a trace is held against: another file, another backend, or saved tensors. */

import type { Engine, EngineOptions } from '../engine.ts';
import { AprError } from '../errors.ts';
import type { PassObserver } from '../graph/observer.ts';
import type { Platform } from '../platform/platform.ts';
import { CollectedRows, type ReferenceTensors } from '../trace/reference.ts';
import { RowObserver, type RowSink } from '../trace/rows.ts';
import { isRouting } from '../trace/stages.ts';
import { SavedTensors, type TensorFolder, type TensorFolderReader } from '../trace/tensors.ts';
import {
  isChosen,
  type ModelShape,
  readShape,
  type TraceInput,
  type TraceOptions,
  type Window,
} from './trace-input.ts';

const BACKEND_PREFIX = 'backend:';

/** What the platform lends for saved tensors. */
export interface TensorFolders {
  create(path: string): Promise<TensorFolder>;
  /** Undefined when there is no folder of that name. */
  open(path: string): TensorFolderReader | undefined;
}

/** The run that this one is held against. */
export interface Reference {
  readonly tensors: ReferenceTensors;
  /** Has the activations of this window ready. */
  advance(window: Window): Promise<void>;
}

/**
 * @param open loads a model; whoever gave it disposes of the engine at the latest
 * @throws AprError USAGE, CONTRACT when the reference cannot be compared with this model, and what loading throws
 */
export async function openReference(
  platform: Platform,
  folders: TensorFolders,
  open: (path: string, more: EngineOptions) => Promise<Engine>,
  source: string,
  options: TraceOptions,
  { ids, windows, range, shape }: TraceInput,
): Promise<Reference | undefined> {
  const { reference, signal } = options;
  if (reference === undefined) return undefined;
  const backend = reference.startsWith(BACKEND_PREFIX) ? reference.slice(BACKEND_PREFIX.length) : undefined;
  if (backend !== undefined && backend !== 'reference' && backend !== 'cpu') {
    const message =
      `the reference is ${JSON.stringify(reference)}, expected backend:reference or backend:cpu, a model file, or a ` +
      'folder of saved tensors';
    throw new AprError('USAGE', message, { option: 'reference', found: reference });
  }
  const saved = backend === undefined ? folders.open(reference) : undefined;
  if (saved !== undefined) return { tensors: new SavedTensors(saved, ids), advance: async () => {} };
  if (backend === undefined)
    checkShape(reference, await readShape(platform, reference), options.modelName ?? source, shape);
  const engine = await (backend === undefined
    ? open(reference, { modelName: reference })
    : open(source, { backend, modelName: reference }));
  const rows = new CollectedRows();
  // The router's choice is needed to compare what its experts compute.
  const kept: RowSink = { take: (found) => void ((isChosen(found, options) || isRouting(found)) && rows.take(found)) };
  const observer = new RowObserver(range, [kept]);
  if (options.tokens === 'all') {
    const advance = async (window: Window): Promise<void> => {
      rows.clear();
      await runWindow(engine, ids, window, observer, signal);
    };
    return { tensors: rows, advance };
  }
  // One token's activations are small: the reference goes before the model comes, and never are both in memory.
  for (const window of windows) await runWindow(engine, ids, window, observer, signal);
  await engine.dispose();
  return { tensors: rows, advance: async () => {} };
}

function checkShape(reference: string, found: ModelShape, source: string, expected: ModelShape): void {
  for (const [key, what] of [
    ['architecture', 'the architecture'],
    ['blockCount', 'the number of layers'],
    ['embeddingLength', 'the width'],
    ['headCount', 'the number of heads'],
    ['vocabularySize', 'the vocabulary size'],
  ] as const) {
    if (found[key] === expected[key]) continue;
    const message = `${reference}: ${what} is ${found[key]}, expected ${expected[key]} as in ${source}, to compare the two`;
    throw new AprError('CONTRACT', message, { key, found: found[key], expected: expected[key] });
  }
}

/** One window of the prompt. */
export async function runWindow(
  engine: Engine,
  ids: readonly number[],
  { end, observed }: Window,
  observer: PassObserver,
  signal: AbortSignal | undefined,
): Promise<void> {
  // What was computed before lies in the KV cache.
  const events = engine.generate({
    prompt: ids.slice(0, end),
    maxTokens: 0,
    ...(observed ? { observer } : {}),
    ...(signal === undefined ? {} : { signal }),
  });
  for await (const _ of events);
}
