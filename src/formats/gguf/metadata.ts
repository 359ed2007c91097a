/** Metadata of a GGUF file with its types checked on access. */

import { AprError } from '../../errors.ts';
import type { Metadata, MetadataTypeName, MetadataValue, StringArray } from '../metadata.ts';

const decoder = /* @__PURE__ */ new TextDecoder('utf-8', { ignoreBOM: true });

export function decodeUtf8(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** Strings that lie at `starts … ends` of `bytes`. */
export function stringArray(bytes: Uint8Array, starts: Uint32Array, ends: Uint32Array): StringArray {
  return {
    kind: 'strings',
    length: starts.length,
    bytes,
    starts,
    ends,
    at: (index) => decoder.decode(bytes.subarray(starts[index], ends[index])),
  };
}

export interface MetadataEntry {
  readonly type: MetadataTypeName;
  readonly value: MetadataValue;
}

export class GgufMetadata implements Metadata {
  readonly sourceName: string;
  readonly #entries: ReadonlyMap<string, MetadataEntry>;

  constructor(sourceName: string, entries: ReadonlyMap<string, MetadataEntry>) {
    this.sourceName = sourceName;
    this.#entries = entries;
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

  string(key: string): string | undefined {
    const value = this.value(key);
    if (value === undefined || typeof value === 'string') return value;
    throw this.#mismatch(key, 'a string');
  }

  uint(key: string): number | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && !this.typeOf(key)!.startsWith('float')) {
      return value;
    }
    throw this.#mismatch(key, 'a non-negative integer');
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
      if (!Number.isSafeInteger(number)) throw this.#mismatch(key, 'integers below 2^53');
      return number;
    });
  }

  #mismatch(key: string, expected: string): AprError {
    const value = this.value(key);
    const shown = typeof value === 'object' ? `an array of ${value.length} ${value.kind}` : `${this.typeOf(key)} ${String(value)}`;
    const message = `${this.sourceName}: metadata "${key}" is ${shown}, expected ${expected}`;
    return new AprError('BAD_FORMAT', message, { key });
  }
}
