/** The value types of GGUF metadata. */

import type { MetadataTypeName } from '../metadata.ts';

/** By their number in the file. */
export const VALUE_TYPES = [
  'uint8',
  'int8',
  'uint16',
  'int16',
  'uint32',
  'int32',
  'float32',
  'bool',
  'string',
  'array',
  'uint64',
  'int64',
  'float64',
] as const satisfies readonly MetadataTypeName[];

export type ValueType = (typeof VALUE_TYPES)[number];
export type NumberType = Exclude<ValueType, 'bool' | 'string' | 'array'>;

export const NUMBER_ARRAYS = {
  uint8: Uint8Array,
  int8: Int8Array,
  uint16: Uint16Array,
  int16: Int16Array,
  uint32: Uint32Array,
  int32: Int32Array,
  float32: Float32Array,
  uint64: BigUint64Array,
  int64: BigInt64Array,
  float64: Float64Array,
} as const satisfies Record<NumberType, unknown>;

export function isNumberType(name: string): name is NumberType {
  return Object.hasOwn(NUMBER_ARRAYS, name);
}

/** Type of the numbers in an array. */
export function numberTypeOf(values: ArrayBufferView): NumberType {
  for (const [name, kind] of Object.entries(NUMBER_ARRAYS)) {
    if (values instanceof kind) return name as NumberType;
  }
  throw new TypeError('not an array of a type that metadata has');
}
