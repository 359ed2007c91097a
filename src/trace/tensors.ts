/** Activations as NumPy files in a folder, written while they are computed, and read back as a reference. */

import { AprError } from '../errors.ts';
import {
  NPY_PREFIX_BYTES,
  type NpyHeader,
  type NpyType,
  npyHeader,
  npyHeaderEnd,
  npyValueBytes,
  npyValues,
  parseNpyHeader,
} from './npy.ts';
import { type ReferenceTensors, shapesDiffer } from './reference.ts';
import { type ActivationRows, isOutput, type PositionRange, type RowSink } from './rows.ts';
import { ROUTING, withoutLayer } from './stages.ts';

/** A new folder; under another name until it is whole. Writing is synchronous: activations come in the middle of a pass. */
export interface TensorFolder {
  /** @throws AprError IO */
  append(file: string, bytes: Uint8Array): void;
  /** @throws AprError IO */
  commit(): Promise<void>;
  /** Removes what was written; after {@link commit} it does nothing. */
  discard(): Promise<void>;
}

/** An existing folder. */
export interface TensorFolderReader {
  readonly name: string;
  /** Undefined when there is no such file. */
  size(file: string): number | undefined;
  /** @throws AprError IO */
  read(file: string, offset: number, length: number): Uint8Array;
}

/** What was run, beside the tensors. */
export interface TensorManifest {
  readonly model: string;
  readonly architecture: string;
  readonly encoded_tokens: readonly number[];
  readonly first_position: number;
}

const MANIFEST = 'trace.json';
/** As long as the longest prompt, and more. */
const MAX_MANIFEST_BYTES = 1 << 28;

/** The files of the router's choice, by the type of their values. */
const ROUTING_FILES = { '<i4': '.experts', '<f4': '.weights' } as const;

/** What other programs may have written in their place. */
const ID_TYPES: readonly NpyType[] = ['<i4', '<i8'];
const VALUE_TYPES: readonly NpyType[] = ['<f4', '<f8', '<f2'];

function fileOf(name: string, suffix = ''): string {
  return `${name}${suffix}.npy`;
}

/** Writes each activation to NAME.npy, [tokens × width], experts' [tokens × slots × width]. */
export class TensorWriter implements RowSink {
  readonly #folder: TensorFolder;
  readonly #range: PositionRange;
  readonly #wants: (rows: ActivationRows) => boolean;
  readonly #begun = new Set<string>();
  #files = 0;

  constructor(folder: TensorFolder, range: PositionRange, wants: (rows: ActivationRows) => boolean) {
    this.#folder = folder;
    this.#range = range;
    this.#wants = wants;
  }

  /** Files of activations so far. */
  get files(): number {
    return this.#files;
  }

  take(rows: ActivationRows): void {
    if (!this.#wants(rows)) return;
    const { name, width, values, tokens } = rows;
    if (withoutLayer(name) !== ROUTING) {
      this.#write(rows, fileOf(name), '<f4', width, values);
      return;
    }
    const slots = width / 2;
    for (const [type, suffix] of Object.entries(ROUTING_FILES) as [keyof typeof ROUTING_FILES, string][]) {
      const half = new Float32Array(tokens * slots);
      for (let row = 0; row < tokens; row++) {
        const from = row * width + (type === '<i4' ? 0 : slots);
        half.set(values.subarray(from, from + slots), row * slots);
      }
      this.#write(rows, fileOf(name, suffix), type, slots, half);
    }
  }

  manifest(manifest: TensorManifest): void {
    this.#folder.append(MANIFEST, new TextEncoder().encode(`${JSON.stringify(manifest)}\n`));
  }

  #write({ name, perToken }: ActivationRows, file: string, type: NpyType, width: number, values: Float32Array): void {
    if (!this.#begun.has(file)) {
      this.#begun.add(file);
      this.#files++;
      const tokens = isOutput(name) ? 1 : this.#range.last - this.#range.first + 1;
      this.#folder.append(file, npyHeader(type, [tokens, ...(perToken > 1 ? [perToken] : []), width]));
    }
    this.#folder.append(file, new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  }
}

/** Saved tensors as a reference. Their last row belongs to the last token of the prompt. */
export class SavedTensors implements ReferenceTensors {
  readonly #folder: TensorFolderReader;
  readonly #lastPosition: number;
  readonly #headers = new Map<string, NpyHeader | undefined>();

  /** @throws AprError CONTRACT when the folder says that it was made from other tokens */
  constructor(folder: TensorFolderReader, encodedTokens: readonly number[]) {
    this.#folder = folder;
    this.#lastPosition = encodedTokens.length - 1;
    checkManifest(folder, encodedTokens);
  }

  rows(like: ActivationRows): Float32Array | undefined {
    const { name, width, tokens } = like;
    if (withoutLayer(name) !== ROUTING) return this.#read(like, fileOf(name), width, VALUE_TYPES);
    const slots = width / 2;
    const ids = this.#read(like, fileOf(name, ROUTING_FILES['<i4']), slots, ID_TYPES);
    const weights = this.#read(like, fileOf(name, ROUTING_FILES['<f4']), slots, VALUE_TYPES);
    if (ids === undefined || weights === undefined) return undefined;
    const out = new Float32Array(tokens * width);
    for (let row = 0; row < tokens; row++) {
      out.set(ids.subarray(row * slots, (row + 1) * slots), row * width);
      out.set(weights.subarray(row * slots, (row + 1) * slots), row * width + slots);
    }
    return out;
  }

  #read(like: ActivationRows, file: string, width: number, types: readonly NpyType[]): Float32Array | undefined {
    const header = this.#header(file);
    if (header === undefined) return undefined;
    if (!types.includes(header.type)) {
      const message = `${this.#folder.name}: ${file} holds values of type ${header.type}, expected ${types.join(' or ')}`;
      throw new AprError('UNSUPPORTED', message, { path: file });
    }
    const { tokens, perToken, firstPosition } = like;
    const row = width * perToken;
    const count = header.shape.reduce((product, length) => product * length, 1);
    if (header.shape.at(-1) !== width || count % row !== 0) {
      throw shapesDiffer(
        like.name,
        header.shape.length === 0 ? 1 : header.shape.join(' × '),
        perToken > 1 ? `… × ${perToken} × ${width}` : `… × ${width}`,
      );
    }
    const from = count / row - 1 - (this.#lastPosition - firstPosition);
    if (from < 0) {
      const message =
        `${this.#folder.name}: ${file} holds ${count / row} tokens, expected at least ` +
        `${this.#lastPosition - firstPosition + 1}; save and compare the same tokens (--tokens)`;
      throw new AprError('CONTRACT', message, { path: file });
    }
    const bytes = npyValueBytes(header.type) * row;
    return npyValues(header.type, this.#folder.read(file, header.offset + from * bytes, tokens * bytes));
  }

  #header(file: string): NpyHeader | undefined {
    if (this.#headers.has(file)) return this.#headers.get(file);
    const size = this.#folder.size(file);
    let header: NpyHeader | undefined;
    if (size !== undefined) {
      const name = `${this.#folder.name}: ${file}`;
      const end = npyHeaderEnd(name, this.#folder.read(file, 0, Math.min(size, NPY_PREFIX_BYTES)));
      header = parseNpyHeader(name, this.#folder.read(file, 0, Math.min(size, end)), size);
    }
    this.#headers.set(file, header);
    return header;
  }
}

/** Folders from other programs have none, and are taken as they are. */
function checkManifest(folder: TensorFolderReader, encodedTokens: readonly number[]): void {
  const size = folder.size(MANIFEST);
  if (size === undefined) return;
  const where = `${folder.name}: ${MANIFEST}`;
  const bad = (what: string, cause?: unknown) => new AprError('BAD_FORMAT', `${where} ${what}`, {}, { cause });
  if (size > MAX_MANIFEST_BYTES) throw bad(`has ${size} bytes, expected at most ${MAX_MANIFEST_BYTES}`);
  let saved: unknown;
  try {
    saved = JSON.parse(new TextDecoder().decode(folder.read(MANIFEST, 0, size)))?.encoded_tokens;
  } catch (cause) {
    if (cause instanceof AprError) throw cause;
    throw bad('is not JSON, expected what apr trace --save-tensors writes', cause);
  }
  if (!Array.isArray(saved)) throw bad('has no list encoded_tokens, expected what apr trace --save-tensors writes');
  const at = saved.length === encodedTokens.length ? saved.findIndex((id, i) => id !== encodedTokens[i]) : -1;
  if (saved.length === encodedTokens.length && at === -1) return;
  const difference =
    at === -1
      ? `${saved.length} tokens, this prompt has ${encodedTokens.length}`
      : `token ${String(saved[at]).slice(0, 20)} at position ${at}, this prompt has ${encodedTokens[at]}`;
  const message = `${folder.name}: was saved from a prompt with ${difference}; compare runs of the same prompt`;
  throw new AprError('CONTRACT', message, { path: folder.name });
}
