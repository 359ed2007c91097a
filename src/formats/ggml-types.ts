/**
 * The tensor types of ggml: id in the file, values a block, bytes a block.
 * Source: ggml.h `enum ggml_type` and the block structs of ggml-common.h.
 */
export interface GgmlType {
  readonly id: number;
  /** Name as llama.cpp prints it. */
  readonly name: GgmlTypeName;
  /** Values that one block holds; a row's length is a multiple of it. */
  readonly blockSize: number;
  /** Bytes of one block. */
  readonly blockBytes: number;
}

const TABLE = [
  ['F32', 0, 1, 4],
  ['F16', 1, 1, 2],
  ['Q4_0', 2, 32, 18],
  ['Q4_1', 3, 32, 20],
  ['Q5_0', 6, 32, 22],
  ['Q5_1', 7, 32, 24],
  ['Q8_0', 8, 32, 34],
  ['Q8_1', 9, 32, 36],
  ['Q2_K', 10, 256, 84],
  ['Q3_K', 11, 256, 110],
  ['Q4_K', 12, 256, 144],
  ['Q5_K', 13, 256, 176],
  ['Q6_K', 14, 256, 210],
  ['Q8_K', 15, 256, 292],
  ['IQ2_XXS', 16, 256, 66],
  ['IQ2_XS', 17, 256, 74],
  ['IQ3_XXS', 18, 256, 98],
  ['IQ1_S', 19, 256, 50],
  ['IQ4_NL', 20, 32, 18],
  ['IQ3_S', 21, 256, 110],
  ['IQ2_S', 22, 256, 82],
  ['IQ4_XS', 23, 256, 136],
  ['I8', 24, 1, 1],
  ['I16', 25, 1, 2],
  ['I32', 26, 1, 4],
  ['I64', 27, 1, 8],
  ['F64', 28, 1, 8],
  ['IQ1_M', 29, 256, 56],
  ['BF16', 30, 1, 2],
  ['TQ1_0', 34, 256, 54],
  ['TQ2_0', 35, 256, 66],
  ['MXFP4', 39, 32, 17],
  ['NVFP4', 40, 64, 36],
  ['Q1_0', 41, 128, 18],
  ['Q2_0', 42, 64, 18],
] as const;

export type GgmlTypeName = (typeof TABLE)[number][0];

const types: readonly GgmlType[] = TABLE.map(([name, id, blockSize, blockBytes]) => ({
  name,
  id,
  blockSize,
  blockBytes,
}));
const byId: ReadonlyMap<number, GgmlType> = /* @__PURE__ */ new Map(types.map((type) => [type.id, type]));
const byName: ReadonlyMap<string, GgmlType> = /* @__PURE__ */ new Map(types.map((type) => [type.name, type]));

/** The type with this id in the file, or undefined for an id that ggml does not define. */
export function ggmlTypeById(id: number): GgmlType | undefined {
  return byId.get(id);
}

/** Ids that files once had and ggml no longer reads. */
const REMOVED: ReadonlyMap<number, string> = /* @__PURE__ */ new Map([
  [4, 'Q4_2'],
  [5, 'Q4_3'],
  [31, 'Q4_0_4_4'],
  [32, 'Q4_0_4_8'],
  [33, 'Q4_0_8_8'],
  [36, 'IQ4_NL_4_4'],
  [37, 'IQ4_NL_4_8'],
  [38, 'IQ4_NL_8_8'],
]);

/** Name of a type that ggml has withdrawn, undefined for any other id. */
export function removedGgmlType(id: number): string | undefined {
  return REMOVED.get(id);
}

export function ggmlType(name: GgmlTypeName): GgmlType {
  return byName.get(name) as GgmlType;
}

/** Bytes of one row of `width` values, which must be a multiple of the block size. */
export function rowBytes(type: GgmlType, width: number): number {
  return (width / type.blockSize) * type.blockBytes;
}
