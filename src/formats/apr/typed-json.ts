/**
 * GGUF metadata as JSON with its types, under the key `gguf` of an .apr file's metadata:
 *
 *     "gguf": {
 *       "version": 3,
 *       "metadata": {
 *         "llama.block_count": {"type": "uint32", "value": 2},
 *         "general.name": {"type": "string", "value": "…"},
 *         "tokenizer.ggml.scores": {"type": "array", "items": "float32", "value": [0, -1, …]},
 *         "tokenizer.ggml.tokens": {"type": "array", "items": "string", "same_as": "tokenizer.vocabulary"}
 *       }
 *     }
 *
 * Numbers that JSON has not are strings: integers beyond 2^53, "NaN", "Infinity", "-Infinity", "-0". A string that is
 * not valid UTF-8 is {"base64": "…"} in place of the text. `same_as` names another top-level key with the strings;
 * those among them that are not valid UTF-8 stand under `bytes` by their number, in base64.
 */

import { AprError } from '../../errors.ts';
import { decodeUtf8, decodeUtf8Strictly, type MetadataEntry } from '../gguf/metadata.ts';
import { isNumberType, NUMBER_ARRAYS, type NumberType, numberTypeOf } from '../gguf/value-types.ts';
import type { Metadata, NumberArray, StringArray } from '../metadata.ts';
import { printable } from '../printable.ts';
import { packStrings } from './strings.ts';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/**
 * @param shared top-level keys that hold the strings of a metadata key already
 */
export function toTypedJson(metadata: Metadata, shared: Readonly<Record<string, string>>): { [key: string]: Json } {
  const out: [string, Json][] = [];
  for (const key of metadata.keys()) {
    const type = metadata.typeOf(key)!;
    const value = metadata.value(key)!;
    if (typeof value !== 'object') {
      out.push([
        key,
        { type, value: typeof value === 'string' ? stringJson(metadata.stringBytes(key)!) : scalarJson(value) },
      ]);
    } else if (value.kind === 'numbers') {
      const items = numberTypeOf(value.values);
      out.push([key, { type, items, value: Array.from(value.values as Iterable<number | bigint>, scalarJson) }]);
    } else if (value.kind === 'booleans') {
      out.push([key, { type, items: 'bool', value: Array.from(value.values, (each) => each === 1) }]);
    } else if (Object.hasOwn(shared, key)) {
      const bytes = invalidStrings(value);
      out.push([key, { type, items: 'string', same_as: shared[key]!, ...(bytes === undefined ? {} : { bytes }) }]);
    } else {
      out.push([
        key,
        { type, items: 'string', value: Array.from(value.starts, (_, i) => stringJson(bytesAt(value, i))) },
      ]);
    }
  }
  // Not by assignment: a key may be "__proto__".
  return Object.fromEntries(out);
}

function scalarJson(value: number | bigint | boolean): Json {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (typeof value === 'boolean' || (Number.isFinite(value) && !Object.is(value, -0))) return value;
  return Object.is(value, -0) ? '-0' : String(value);
}

function stringJson(bytes: Uint8Array): Json {
  return decodeUtf8Strictly(bytes) ?? { base64: toBase64(bytes) };
}

function invalidStrings(strings: StringArray): { [index: string]: Json } | undefined {
  const invalid: { [index: string]: Json } = {};
  for (let i = 0; i < strings.length; i++) {
    const bytes = bytesAt(strings, i);
    if (decodeUtf8Strictly(bytes) === undefined) invalid[i] = toBase64(bytes);
  }
  return Object.keys(invalid).length === 0 ? undefined : invalid;
}

function bytesAt({ bytes, starts, ends }: StringArray, index: number): Uint8Array {
  return bytes.subarray(starts[index], ends[index]);
}

/**
 * @param json the object under `gguf.metadata`
 * @param root all metadata of the file, for `same_as`
 * @throws AprError BAD_FORMAT naming the key
 */
export function fromTypedJson(
  sourceName: string,
  json: Json,
  root: { readonly [key: string]: Json },
): Map<string, MetadataEntry> {
  if (!isObject(json))
    throw new AprError('BAD_FORMAT', `${sourceName}: "gguf.metadata" is ${kindOf(json)}, expected an object`);
  const entries = new Map<string, MetadataEntry>();
  for (const [key, entry] of Object.entries(json)) {
    const bad = (found: string, expected: string): AprError => {
      const message = `${sourceName}: "gguf.metadata" has ${found} at "${printable(key)}", expected ${expected}`;
      return new AprError('BAD_FORMAT', message, { key, found, expected });
    };
    if (!isObject(entry)) throw bad(kindOf(entry), 'an object with "type" and "value"');
    entries.set(key, readEntry(entry, root, bad));
  }
  return entries;
}

type Fail = (found: string, expected: string) => AprError;

function readEntry(
  entry: { readonly [key: string]: Json },
  root: { readonly [key: string]: Json },
  bad: Fail,
): MetadataEntry {
  const { type, value = null } = entry;
  if (typeof type !== 'string') throw bad(kindOf(type ?? null), 'the name of a type');
  if (type === 'bool') {
    if (typeof value !== 'boolean') throw bad(kindOf(value), 'true or false');
    return { type, value };
  }
  if (type === 'string') {
    const bytes = readString(value, bad);
    return typeof bytes === 'string' ? { type, value: bytes } : { type, value: decodeUtf8(bytes), bytes };
  }
  if (isNumberType(type)) return { type, value: readNumber(type, value, bad) };
  if (type !== 'array') throw bad(`type "${printable(type)}"`, 'a type of GGUF');

  const { items } = entry;
  if (items === 'string') return { type, value: readStrings(entry, root, bad) };
  if (!Array.isArray(value)) throw bad(kindOf(value), 'an array under "value"');
  const list = value as readonly Json[];
  if (items === 'bool') {
    const values = Uint8Array.from(list, (each) => {
      if (typeof each !== 'boolean') throw bad(kindOf(each), 'true or false');
      return Number(each);
    });
    return { type, value: { kind: 'booleans', length: values.length, values } };
  }
  if (typeof items !== 'string' || !isNumberType(items))
    throw bad(`items of ${kindOf(items ?? null)}`, 'a type of GGUF');
  const values: NumberArray['values'] = new NUMBER_ARRAYS[items](list.length);
  const big = items === 'uint64' || items === 'int64';
  list.forEach((each, i) => {
    const number = readNumber(items, each, bad);
    values[i] = big ? BigInt(number) : number;
  });
  return { type, value: { kind: 'numbers', length: values.length, values } };
}

function readString(value: Json, bad: Fail): string | Uint8Array {
  if (typeof value === 'string') return value;
  if (isObject(value) && typeof value.base64 === 'string') return fromBase64(value.base64, bad);
  throw bad(kindOf(value), 'a string');
}

function readStrings(
  entry: { readonly [key: string]: Json },
  root: { readonly [key: string]: Json },
  bad: Fail,
): StringArray {
  const { same_as: other } = entry;
  const value = typeof other === 'string' ? (Object.hasOwn(root, other) ? root[other]! : null) : (entry.value ?? null);
  const exact = entry.bytes ?? {};
  if (!Array.isArray(value)) throw bad(kindOf(value), 'an array of strings');
  if (!isObject(exact)) throw bad(`"bytes" as ${kindOf(exact)}`, 'an object');
  return packStrings(
    (value as readonly Json[]).map((each, i) => {
      const replaced = Object.hasOwn(exact, i) ? exact[i]! : undefined;
      if (replaced === undefined) return readString(each, bad);
      if (typeof replaced !== 'string') throw bad(kindOf(replaced), 'base64');
      return fromBase64(replaced, bad);
    }),
  );
}

/** Exactly the number that the type holds, or an error. */
function readNumber(type: NumberType, json: Json, bad: Fail): number | bigint {
  if (type === 'float32' || type === 'float64') {
    const named = json === 'NaN' || json === 'Infinity' || json === '-Infinity' || json === '-0';
    if (typeof json !== 'number' && !named) throw bad(kindOf(json), 'a number');
    return type === 'float32' ? Math.fround(Number(json)) : Number(json);
  }
  const bits = Number(type.replace(/\D+/, ''));
  const signed = type.startsWith('int');
  const isText = typeof json === 'string' && /^-?\d{1,20}$/.test(json);
  if (!isText && !(typeof json === 'number' && Number.isSafeInteger(json)))
    throw bad(kindOf(json), `an integer (${type})`);
  const value = BigInt(json as string | number);
  const least = signed ? -(2n ** BigInt(bits - 1)) : 0n;
  const most = 2n ** BigInt(signed ? bits - 1 : bits) - 1n;
  if (value < least || value > most) throw bad(String(value), `an integer from ${least} to ${most} (${type})`);
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

export function isObject(json: Json | undefined): json is { readonly [key: string]: Json } {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

/** For messages. */
export function kindOf(json: Json): string {
  if (json === null) return 'null or missing';
  if (Array.isArray(json)) return `an array of ${json.length}`;
  if (typeof json === 'object') return 'an object';
  return `${typeof json} ${printable(typeof json === 'string' ? `"${json}"` : String(json))}`;
}

function toBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

function fromBase64(text: string, bad: Fail): Uint8Array {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) throw bad(kindOf(text), 'base64');
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}
