/** Metadata of a GGUF file with its types checked on access. */

import { AprError } from '../../errors.ts';
import type { Metadata, MetadataTypeName, MetadataValue, StringArray } from '../metadata.ts';
import { printable } from '../printable.ts';

// `ignoreBOM` keeps a byte-order mark: it can be a token of a vocabulary.
const decoder = /* @__PURE__ */ new TextDecoder('utf-8', { ignoreBOM: true });
const encoder = /* @__PURE__ */ new TextEncoder();
const strictDecoder = /* @__PURE__ */ new TextDecoder('utf-8', { ignoreBOM: true, fatal: true });

/** Invalid UTF-8 becomes U+FFFD. */
export function decodeUtf8(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** Undefined for invalid UTF-8. */
export function decodeUtf8Strictly(bytes: Uint8Array): string | undefined {
  try {
    return strictDecoder.decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Strings that lie at `starts … ends` of `bytes`. */
export function stringArray(bytes: Uint8Array, starts: Uint32Array, ends: Uint32Array): StringArray {
  return {
    kind: 'strings',
    length: starts.length,
    bytes,
    starts,
    ends,
    at: (index) => {
      const start = starts[index];
      if (start === undefined) throw new RangeError(`string ${index} of an array of ${starts.length}`);
      return decoder.decode(bytes.subarray(start, ends[index]));
    },
  };
}

export interface MetadataEntry {
  readonly type: MetadataTypeName;
  readonly value: MetadataValue;
  /** Of a string that is not valid UTF-8: the bytes, some of which `value` has replaced. */
  readonly bytes?: Uint8Array;
}

export class GgufMetadata implements Metadata {
  readonly sourceName: string;
  readonly #entries: ReadonlyMap<string, MetadataEntry>;

  constructor(sourceName: string, entries: ReadonlyMap<string, MetadataEntry>) {
    this.sourceName = sourceName;
    this.#entries = entries;
  }

  /** The same but for keys that begin with `prefix`. */
  without(prefix: string): GgufMetadata {
    return new GgufMetadata(this.sourceName, new Map([...this.#entries].filter(([key]) => !key.startsWith(prefix))));
  }

  keys(): Iterable<string> {
    return this.#entries.keys();
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  value(key: string): MetadataValue | undefined {
    return this.#entries.get(key)?.value;
  }

  typeOf(key: string): MetadataTypeName | undefined {
    return this.#entries.get(key)?.type;
  }

  stringBytes(key: string): Uint8Array | undefined {
    const entry = this.#entries.get(key);
    if (typeof entry?.value !== 'string') return undefined;
    return entry.bytes ?? encoder.encode(entry.value);
  }

  string(key: string): string | undefined {
    const value = this.value(key);
    if (value === undefined || typeof value === 'string') return value;
    throw this.#mismatch(key, 'a string');
  }

  uint(key: string): number | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    const isInteger = Number.isSafeInteger(value) && this.typeOf(key)?.startsWith('float') === false;
    if (typeof value === 'number' && isInteger && value >= 0) return value;
    throw this.#mismatch(key, 'an integer from 0 to 2^53');
  }

  float(key: string): number | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    throw this.#mismatch(key, 'a finite number');
  }

  bool(key: string): boolean | undefined {
    const value = this.value(key);
    if (value === undefined || typeof value === 'boolean') return value;
    throw this.#mismatch(key, 'true or false');
  }

  strings(key: string): StringArray | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    if (typeof value === 'object' && value.kind === 'strings') return value;
    throw this.#mismatch(key, 'an array of strings');
  }

  numbers(key: string): ArrayLike<number> | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    if (typeof value !== 'object' || value.kind !== 'numbers') throw this.#mismatch(key, 'an array of numbers');
    const { values } = value;
    if (!(values instanceof BigUint64Array || values instanceof BigInt64Array)) return values;
    return Float64Array.from(values as Iterable<bigint>, (item) => {
      const number = Number(item);
      if (!Number.isSafeInteger(number)) throw this.#mismatch(key, 'integers that stay below 2^53');
      return number;
    });
  }

  elements(key: string): ArrayLike<number> | undefined {
    const value = this.value(key);
    if (typeof value !== 'object' || value.kind === 'strings') return undefined;
    return value.kind === 'booleans' ? value.values : this.numbers(key);
  }

  #mismatch(key: string, expected: string): AprError {
    const value = this.value(key);
    const found =
      typeof value === 'object'
        ? `an array of ${value.length} ${value.kind}`
        : `${this.typeOf(key)} ${printable(typeof value === 'string' ? `"${value}"` : String(value))}`;
    const message = `${this.sourceName}: metadata "${printable(key)}" is ${found}, expected ${expected}`;
    return new AprError('BAD_FORMAT', message, { key, found, expected });
  }
}
