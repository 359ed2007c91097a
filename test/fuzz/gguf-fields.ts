/** Where the fields of a sound GGUF header (version 2 or 3) lie, so that damage can aim at them. */

export interface Field {
  readonly at: number;
  readonly size: 1 | 2 | 4 | 8;
}

export interface Span {
  readonly start: number;
  readonly end: number;
}

export interface Entry extends Span {
  /** First byte behind the key, where the value's type stands. */
  readonly value: number;
}

export interface Fields {
  /** Counts, lengths, types, dimensions and offsets. */
  readonly structure: readonly Field[];
  /** Numbers of the metadata. */
  readonly values: readonly Field[];
  /** Whole metadata entries and whole index entries. */
  readonly entries: readonly Entry[];
  readonly tensors: readonly Span[];
  /** First byte behind the index. */
  readonly headerEnd: number;
}

const SIZES = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8] as const;
const STRING = 8;
const ARRAY = 9;
/** Of long arrays only the first elements are fields: a vocabulary would leave nothing else to hit. */
const ELEMENTS = 6;

export function findFields(bytes: Buffer): Fields {
  const structure: Field[] = [];
  const values: Field[] = [];
  let at = 4;
  const take = (size: 1 | 2 | 4 | 8, fields = structure): number => {
    fields.push({ at, size });
    const value = size === 8 ? Number(bytes.readBigUInt64LE(at)) : bytes.readUIntLE(at, size);
    at += size;
    return value;
  };
  /** Apart from `take`, which moves the position itself. */
  const skip = (length: number): void => {
    at += length;
  };
  const element = (type: number, isField: boolean): void => {
    if (type === STRING) {
      if (isField) skip(take(8));
      else at += 8 + Number(bytes.readBigUInt64LE(at));
      return;
    }
    const size = SIZES[type] as 1 | 2 | 4 | 8;
    if (isField) take(size, values);
    else at += size;
  };
  take(4);
  const tensorCount = take(8);
  const entryCount = take(8);
  const entries = Array.from({ length: entryCount }, (): Entry => {
    const start = at;
    skip(take(8));
    const value = at;
    const type = take(4);
    if (type === ARRAY) {
      const items = take(4);
      const length = take(8);
      for (let i = 0; i < length; i++) element(items, i < ELEMENTS);
    } else element(type, true);
    return { start, value, end: at };
  });
  const tensors = Array.from({ length: tensorCount }, (): Span => {
    const start = at;
    skip(take(8));
    const dimensions = take(4);
    for (let i = 0; i < dimensions; i++) take(8);
    take(4);
    take(8);
    return { start, end: at };
  });
  return { structure, values, entries, tensors, headerEnd: at };
}
