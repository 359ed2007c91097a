/** Two model files held side by side. */

import { AprError } from '../errors.ts';
import type { Metadata, MetadataValue } from '../formats/metadata.ts';
import type { ModelFile, TensorInfo } from '../formats/model-file.ts';
import { openModel } from '../formats/open-model.ts';
import type { Platform } from '../platform/platform.ts';
import { isDecodable, readStretches } from './tensor-values.ts';
import { tensorFilter } from './tensors.ts';

export interface MetadataDifference {
  readonly key: string;
  /** Null where the file has no such key; an array shows as its length and kind. */
  readonly a: string | number | boolean | null;
  readonly b: string | number | boolean | null;
  /** Of two arrays of one length: how many elements differ, and the first that does. */
  readonly elements?: { readonly count: number; readonly first: number; readonly a: string; readonly b: string };
}

export interface TensorSide {
  readonly dtype: string;
  /** ggml order: the row length first. */
  readonly shape: readonly number[];
}

/** How far the values of two tensors of one shape are from each other. */
export interface Distance {
  /** 1 for the same direction; of two tensors of zeros 1, of one 0. */
  readonly cosine: number;
  /** Norm of the difference over that of A; null where A is all zeros. */
  readonly relative_l2: number | null;
  readonly largest_difference: number;
  /** Values that are not the same. */
  readonly different: number;
  /** Values that are NaN or infinite on either side: left out of all but `different`. */
  readonly not_finite: number;
}

export interface TensorDifference {
  readonly name: string;
  /** Why it is listed; `values` also where the types differ as well. */
  readonly reason: 'only in a' | 'only in b' | 'shape' | 'type' | 'values';
  readonly a: TensorSide | null;
  readonly b: TensorSide | null;
  /** Null where nothing was computed: one side is missing, shapes differ, a type has no decoder, values were not read. */
  readonly distance: Distance | null;
}

export interface ModelDiff {
  /** The sources as they were given. */
  readonly a: string;
  readonly b: string;
  /** No difference was found in what was compared. */
  readonly same: boolean;
  /** Tensors that were compared, by their names in either file. */
  readonly compared: number;
  readonly metadata: readonly MetadataDifference[];
  readonly tensors: readonly TensorDifference[];
}

export interface DiffOptions {
  /** Compare the metadata. Default true. */
  metadata?: boolean;
  /** Read the tensors' data. Default true; false compares names, shapes and types. */
  values?: boolean;
  /** Tensors to compare; see `ListTensorsOptions.filter`. */
  filter?: string;
  /** From this cosine on, two tensors of one shape count as the same, also of different types. Default: exactly the same. */
  threshold?: number;
  /** Called before each tensor is compared. */
  onProgress?: (done: number, total: number) => void;
  signal?: AbortSignal;
}

/** @throws AprError NOT_FOUND, BAD_FORMAT, UNSUPPORTED, IO for either file; USAGE; ABORTED */
export async function diffFiles(
  platform: Pick<Platform, 'openSource'>,
  a: string,
  b: string,
  options: DiffOptions = {},
): Promise<ModelDiff> {
  const { threshold } = options;
  if (threshold !== undefined && !(threshold >= -1 && threshold <= 1)) {
    throw new AprError('USAGE', `threshold is ${threshold}, expected a cosine from -1 to 1`, { option: 'threshold' });
  }
  const first = await platform.openSource(a);
  try {
    const second = await platform.openSource(b);
    try {
      const [left, right] = [await openModel(first), await openModel(second)];
      const metadata = options.metadata === false ? [] : metadataDifferences(left.metadata, right.metadata);
      const matches = tensorFilter(options.filter);
      const names = [...new Set([...left.tensors.keys(), ...right.tensors.keys()])].filter(matches);
      const tensors: TensorDifference[] = [];
      for (const [done, name] of names.entries()) {
        options.onProgress?.(done, names.length);
        const difference = await compare(left, right, name, options);
        if (difference !== undefined) tensors.push(difference);
      }
      const same = metadata.length === 0 && tensors.length === 0;
      return { a, b, same, compared: names.length, metadata, tensors };
    } finally {
      await second.close();
    }
  } finally {
    await first.close();
  }
}

async function compare(
  left: ModelFile,
  right: ModelFile,
  name: string,
  { values = true, threshold, signal }: DiffOptions,
): Promise<TensorDifference | undefined> {
  const [a, b] = [left.tensors.get(name), right.tensors.get(name)];
  const sides = { name, a: sideOf(a), b: sideOf(b), distance: null };
  if (a === undefined || b === undefined) return { ...sides, reason: a === undefined ? 'only in b' : 'only in a' };
  if (a.shape.length !== b.shape.length || a.shape.some((size, i) => size !== b.shape[i])) {
    return { ...sides, reason: 'shape' };
  }
  const sameType = a.type === b.type;
  if (!values) return sameType ? undefined : { ...sides, reason: 'type' };
  if (sameType && (await sameBytes(left, a, right, b, signal))) return undefined;
  const reason = sameType ? 'values' : 'type';
  if (!isDecodable(a) || !isDecodable(b)) return { ...sides, reason };
  const distance = await measure(left, a, right, b, signal);
  if (threshold !== undefined && distance.cosine >= threshold && distance.not_finite === 0) return undefined;
  return { ...sides, reason: distance.different > 0 ? 'values' : reason, distance };
}

function sideOf(tensor: TensorInfo | undefined): TensorSide | null {
  return tensor === undefined ? null : { dtype: tensor.type.name, shape: tensor.shape };
}

async function sameBytes(
  left: ModelFile,
  a: TensorInfo,
  right: ModelFile,
  b: TensorInfo,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const others = readStretches(right, b, signal);
  for await (const { bytes } of readStretches(left, a, signal)) {
    const other = (await others.next()).value?.bytes;
    if (other === undefined || !equalBytes(bytes, other)) return false;
  }
  return true;
}

/** A plain loop over words: these are gigabytes. */
function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  const words = a.length >> 2;
  let from = 0;
  if (a.byteOffset % 4 === 0 && b.byteOffset % 4 === 0) {
    const [x, y] = [new Int32Array(a.buffer, a.byteOffset, words), new Int32Array(b.buffer, b.byteOffset, words)];
    for (let i = 0; i < words; i++) if (x[i] !== y[i]) return false;
    from = 4 * words;
  }
  for (let i = from; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

async function measure(
  left: ModelFile,
  a: TensorInfo,
  right: ModelFile,
  b: TensorInfo,
  signal: AbortSignal | undefined,
): Promise<Distance> {
  let [dot, squaresA, squaresB, squares] = [0, 0, 0, 0];
  let [largest, different, notFinite] = [0, 0, 0];
  const others = readStretches(right, b, signal);
  for await (const { decode } of readStretches(left, a, signal)) {
    const [x, y] = [decode()!, (await others.next()).value!.decode()!];
    for (let i = 0; i < x.length; i++) {
      const [u, v] = [x[i]!, y[i]!];
      if (u !== v && !(Number.isNaN(u) && Number.isNaN(v))) different++;
      if (!Number.isFinite(u) || !Number.isFinite(v)) {
        notFinite++;
        continue;
      }
      const difference = Math.abs(u - v);
      if (difference > largest) largest = difference;
      dot += u * v;
      squaresA += u * u;
      squaresB += v * v;
      squares += difference * difference;
    }
  }
  // One root: of two equal vectors the quotient is exactly 1. Squares of f32 stay far from the ends of f64.
  const norms = Math.sqrt(squaresA * squaresB);
  return {
    // Rounding may take it beyond 1.
    cosine: norms > 0 ? Math.max(-1, Math.min(1, dot / norms)) : squaresA === squaresB ? 1 : 0,
    relative_l2: squaresA > 0 ? Math.sqrt(squares / squaresA) : null,
    largest_difference: largest,
    different,
    not_finite: notFinite,
  };
}

function metadataDifferences(a: Metadata, b: Metadata): MetadataDifference[] {
  const keys = new Set([...a.keys(), ...b.keys()]);
  const differences: MetadataDifference[] = [];
  for (const key of keys) {
    const [left, right] = [a.value(key), b.value(key)];
    const elements = left !== undefined && right !== undefined ? elementDifferences(left, right) : undefined;
    if (elements === 'same') continue;
    const difference = { key, a: scalarOf(left), b: scalarOf(right) };
    differences.push(elements === undefined ? difference : { ...difference, elements });
  }
  return differences;
}

/** Undefined where the values differ as a whole. */
function elementDifferences(a: MetadataValue, b: MetadataValue): MetadataDifference['elements'] | 'same' | undefined {
  if (typeof a !== 'object' || typeof b !== 'object') return Object.is(a, b) ? 'same' : undefined;
  if (a.kind !== b.kind || a.length !== b.length) return undefined;
  const differs = differingElements(a, b);
  let count = 0;
  let first = -1;
  for (let i = 0; i < a.length; i++) {
    if (!differs(i)) continue;
    if (first < 0) first = i;
    count++;
  }
  return count === 0 ? 'same' : { count, first, a: elementOf(a, first), b: elementOf(b, first) };
}

type ArrayValue = Extract<MetadataValue, object>;

function differingElements(a: ArrayValue, b: ArrayValue): (index: number) => boolean {
  if (a.kind === 'strings' && b.kind === 'strings') {
    // Bytes, without a JavaScript string for each.
    return (i) => {
      const [start, other] = [a.starts[i]!, b.starts[i]!];
      const length = a.ends[i]! - start;
      if (b.ends[i]! - other !== length) return true;
      for (let at = 0; at < length; at++) if (a.bytes[start + at] !== b.bytes[other + at]) return true;
      return false;
    };
  }
  if (a.kind === 'strings' || b.kind === 'strings') return () => true;
  return (i) => !Object.is(a.values[i], b.values[i]);
}

function elementOf(value: ArrayValue, index: number): string {
  return value.kind === 'strings' ? JSON.stringify(value.at(index)) : String(value.values[index]);
}

function scalarOf(value: MetadataValue | undefined): string | number | boolean | null {
  if (value === undefined) return null;
  if (typeof value === 'object') return `${value.length} ${value.kind}`;
  return typeof value === 'bigint' ? value.toString() : value;
}
