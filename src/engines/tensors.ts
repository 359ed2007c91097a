/** The tensors of a model file: what its index declares, and statistics of their values. */

import { QualityCounter } from '../contract/index.ts';
import type { ModelFile, TensorInfo } from '../formats/model-file.ts';
import { openModel } from '../formats/open-model.ts';
import { locateParts } from '../formats/parts-source.ts';
import type { Platform } from '../platform/platform.ts';
import { isDecodable, readStretches } from './tensor-values.ts';

export interface TensorStatistics {
  readonly count: number;
  readonly nan: number;
  readonly infinite: number;
  readonly zeros: number;
  /** Of the finite values, as all that follow; 0 where there are none. */
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  /** Of the population. */
  readonly std: number;
  /** Square root of the sum of squares. */
  readonly l2_norm: number;
}

export interface TensorEntry {
  readonly name: string;
  /** ggml order: the row length first. */
  readonly shape: readonly number[];
  /** Name of the ggml type. */
  readonly dtype: string;
  /** Bytes of its data. */
  readonly size: number;
  /** First byte of its data, from the start of the file. */
  readonly offset: number;
  /** The file that it begins in, of a model that is split over several. */
  readonly file?: string;
  /** Null for a type whose values cannot be decoded. */
  readonly stats?: TensorStatistics | null;
}

export interface TensorListing {
  /** The source as it was given. */
  readonly model: string;
  readonly format: ModelFile['format'];
  /** Tensors of the file, and bytes of their data. */
  readonly tensor_count: number;
  readonly total_size: number;
  /** Tensors that the filter lets through; `tensors` has no more than the limit of them. */
  readonly matched: number;
  readonly tensors: readonly TensorEntry[];
}

export interface ListTensorsOptions {
  /** Part of a name, or all of it where there is a `*` (any characters) or a `?` (one character) in it. */
  readonly filter?: string;
  /** No more than so many. */
  readonly limit?: number;
  /** Read the data of those listed, a stretch at a time. Default false. */
  readonly stats?: boolean;
  /** Called with each as it is complete, in the file's order. */
  readonly onTensor?: (tensor: TensorEntry) => void;
  readonly signal?: AbortSignal;
}

/**
 * The file's tensors in its own order.
 * @throws AprError NOT_FOUND, BAD_FORMAT, UNSUPPORTED, IO; ABORTED
 */
export async function listTensorsOf(
  platform: Pick<Platform, 'openSource'>,
  source: string,
  options: ListTensorsOptions = {},
): Promise<TensorListing> {
  const bytes = await platform.openSource(source);
  try {
    const file = await openModel(bytes);
    const matches = tensorFilter(options.filter);
    const matched = [...file.tensors.values()].filter(({ name }) => matches(name));
    const tensors: TensorEntry[] = [];
    for (const tensor of matched.slice(0, options.limit)) {
      const declared = describe(file, tensor);
      const entry = options.stats
        ? { ...declared, stats: await readStatistics(file, tensor, options.signal) }
        : declared;
      tensors.push(entry);
      options.onTensor?.(entry);
    }
    return {
      model: source,
      format: file.format,
      tensor_count: file.tensors.size,
      total_size: [...file.tensors.values()].reduce((sum, { byteLength }) => sum + byteLength, 0),
      matched: matched.length,
      tensors,
    };
  } finally {
    await bytes.close();
  }
}

/** Whether a name is wanted; see {@link ListTensorsOptions.filter}. Undefined lets every name through. */
export function tensorFilter(filter: string | undefined): (name: string) => boolean {
  if (filter === undefined) return () => true;
  if (!/[*?]/.test(filter)) return (name) => name.includes(filter);
  // A star takes as little as it can and is only ever tried further on: no pattern makes this slow.
  return (name) => {
    let at = 0;
    let star = -1;
    let resume = 0;
    for (let i = 0; i < name.length; ) {
      if (filter[at] === '*') {
        star = at++;
        resume = i;
      } else if (at < filter.length && (filter[at] === '?' || filter[at] === name[i])) {
        at++;
        i++;
      } else if (star >= 0) {
        at = star + 1;
        i = ++resume;
      } else return false;
    }
    while (filter[at] === '*') at++;
    return at === filter.length;
  };
}

function describe({ source }: ModelFile, { name, shape, type, byteLength, offset }: TensorInfo): TensorEntry {
  const entry = { name, shape, dtype: type.name, size: byteLength, offset };
  const { parts } = source;
  if (parts === undefined) return entry;
  const [piece] = locateParts(parts, offset, byteLength);
  return piece === undefined ? entry : { ...entry, offset: piece.offset, file: parts[piece.part]!.name };
}

/** Statistics of all values, of which no more than a stretch is in memory; null for a type without a decoder. */
async function readStatistics(
  file: ModelFile,
  tensor: TensorInfo,
  signal: AbortSignal | undefined,
): Promise<TensorStatistics | null> {
  if (!isDecodable(tensor)) return null;
  const counter = new QualityCounter({ name: tensor.name, type: tensor.type.name, shape: tensor.shape });
  for await (const { decode } of readStretches(file, tensor, signal)) {
    const values = decode();
    if (values !== undefined) counter.add(values);
  }
  const { count, nan, infinite, zeros, min, max, mean, l2_norm } = counter.result();
  const finite = count - nan - infinite;
  // Rounding can take the difference below zero where all values are equal.
  const variance = finite > 0 ? Math.max(0, l2_norm ** 2 / finite - mean ** 2) : 0;
  return { count, nan, infinite, zeros, min, max, mean, std: Math.sqrt(variance), l2_norm };
}
