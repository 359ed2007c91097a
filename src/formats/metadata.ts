/** Metadata of a model file: typed values under dotted keys, as GGUF defines them. */

/**
 * Many strings in one buffer. A vocabulary of 150,000 entries as JavaScript strings costs more time and memory than
 * the whole rest of a header, so arrays of strings stay packed until somebody asks for one.
 */
export interface StringArray {
  readonly kind: 'strings';
  readonly length: number;
  /** Holds all strings; other bytes may stand between them. */
  readonly bytes: Uint8Array;
  /** First byte of each string, and its end. */
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
  /** String i; invalid UTF-8 becomes U+FFFD, a leading byte-order mark stays. */
  at(index: number): string;
}

export interface NumberArray {
  readonly kind: 'numbers';
  readonly length: number;
  /** Of the type that the file declares. */
  readonly values:
    | Uint8Array
    | Int8Array
    | Uint16Array
    | Int16Array
    | Uint32Array
    | Int32Array
    | Float32Array
    | Float64Array
    | BigUint64Array
    | BigInt64Array;
}

export interface BooleanArray {
  readonly kind: 'booleans';
  readonly length: number;
  readonly values: Uint8Array;
}

/** GGUF's scalar types by their names in the specification, plus `array`. */
export type MetadataTypeName =
  | 'uint8'
  | 'int8'
  | 'uint16'
  | 'int16'
  | 'uint32'
  | 'int32'
  | 'uint64'
  | 'int64'
  | 'float32'
  | 'float64'
  | 'bool'
  | 'string'
  | 'array';

/** Numbers beyond 2^53 are BigInts. */
export type MetadataValue = number | bigint | boolean | string | StringArray | NumberArray | BooleanArray;

/**
 * Reading access with types checked. Getters return undefined for a missing key and throw AprError BAD_FORMAT,
 * naming key, found and expected, for a present key of another type.
 */
export interface Metadata {
  /** What messages call the file. */
  readonly sourceName: string;
  keys(): Iterable<string>;
  has(key: string): boolean;
  value(key: string): MetadataValue | undefined;
  typeOf(key: string): MetadataTypeName | undefined;
  /** Invalid UTF-8 becomes U+FFFD, a leading byte-order mark stays. */
  string(key: string): string | undefined;
  /** Bytes of a string as the file has them; undefined for anything but a string. */
  stringBytes(key: string): Uint8Array | undefined;
  /** Any integer type, non-negative and below 2^53. */
  uint(key: string): number | undefined;
  /** Any float or integer type; infinities and NaN are an error. */
  float(key: string): number | undefined;
  bool(key: string): boolean | undefined;
  strings(key: string): StringArray | undefined;
  /** Any numeric array, as doubles (integers beyond 2^53 are an error). */
  numbers(key: string): ArrayLike<number> | undefined;
  /** Elements of an array of booleans or of numbers, false as 0; undefined for anything else. */
  elements(key: string): ArrayLike<number> | undefined;
}
