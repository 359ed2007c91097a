/**
 * Data types of .apr files. Ids 0 to 31 are ggml's where the format gives them no meaning of its own; 3 to 9 have had
 * several meanings, which the tensor's size tells apart.
 */

import { type GgmlType, type GgmlTypeName, ggmlType, ggmlTypeById, rowBytes } from '../ggml-types.ts';

/** A type that .apr has and ggml has not; recognised, so that it can be refused by name. */
export type AprOnlyType = 'AprQ4' | 'AprQ8' | 'U8';

/** What the ids have meant, those of ggml first: that is how the format's own runtime reads them. */
const MEANINGS: Readonly<Record<number, readonly (GgmlTypeName | AprOnlyType)[]>> = {
  3: ['Q4_1', 'F64'],
  4: ['I32'],
  5: ['I64'],
  6: ['Q5_0', 'I8'],
  7: ['Q5_1', 'U8'],
  8: ['Q8_0', 'AprQ4'],
  9: ['Q8_1', 'AprQ8'],
  128: ['AprQ4'],
  129: ['AprQ8'],
};

/** Ids that are written for types whose ggml id means something else in .apr, or nothing. */
const WRITTEN: ReadonlyMap<GgmlTypeName, number> = /* @__PURE__ */ new Map([
  ['F64', 3],
  ['I32', 4],
  ['I64', 5],
  ['I8', 6],
]);

export function dtypeOf({ name, id }: GgmlType): number {
  return WRITTEN.get(name) ?? id;
}

/** All types that the id can mean. */
export function dtypeMeanings(id: number): readonly (GgmlType | AprOnlyType)[] {
  const names = MEANINGS[id];
  if (names !== undefined) return names.map((name) => (isAprOnly(name) ? name : ggmlType(name)));
  const type = ggmlTypeById(id);
  return type === undefined ? [] : [type];
}

/**
 * Bytes of a tensor of that type, undefined when the rows' width does not go with it.
 * @param shape ggml order: row length first
 */
export function bytesOf(type: GgmlType | AprOnlyType, shape: readonly number[]): number | undefined {
  const [width = 0, ...others] = shape;
  const rows = others.reduce((product, size) => product * size, 1);
  const count = width * rows;
  switch (type) {
    case 'AprQ4': // blocks of 32 of the whole tensor: f16 scale, 16 bytes of nibbles
      return Math.ceil(count / 32) * 18;
    case 'AprQ8': // one f32 scale, a signed byte each
      return 4 + count;
    case 'U8':
      return count;
    default:
      return width % type.blockSize === 0 ? rowBytes(type, width) * rows : undefined;
  }
}

export function nameOfDtype(type: GgmlType | AprOnlyType): string {
  return typeof type === 'string' ? type : type.name;
}

function isAprOnly(name: string): name is AprOnlyType {
  return name === 'AprQ4' || name === 'AprQ8' || name === 'U8';
}
