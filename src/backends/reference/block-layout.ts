/**
 * One block of a tensor type taken apart: which bytes are what, and scales, offsets and quants such that
 * value i = scales[g] · quants[i] + offsets[g], with g the group that i is in.
 */

export interface BlockParts {
  /** Factors of the whole block by their fields' names, decoded. */
  readonly factors: Readonly<Record<string, number>>;
  /** Integers that the block keeps for each group, where it does: the scale is a factor times the first. */
  readonly scaleCodes?: readonly number[];
  readonly minimumCodes?: readonly number[];
  /** For each group. */
  readonly scales: readonly number[];
  /** For each group; absent where they are 0. */
  readonly offsets?: readonly number[];
  /** For each value: what is multiplied with the scale. */
  readonly quants: readonly number[];
}

export interface BlockLayout {
  /** Bytes of what a block is made of, in its order. */
  readonly fields: Readonly<Record<string, number>>;
  /** Values that share a scale and an offset. */
  readonly groupSize: number;
  /** The block that begins at `offset`. */
  read(view: DataView, offset: number): BlockParts;
}

/** `[read(0), …, read(count − 1)]` */
export function each(count: number, read: (index: number) => number): number[] {
  return Array.from({ length: count }, (_, index) => read(index));
}
