/** Places buffers that live for a stretch of a program in as little memory as a greedy first fit takes. */

export interface Lifetime {
  readonly bytes: number;
  /** First and last step at which the buffer is needed, both included. */
  readonly first: number;
  readonly last: number;
  /** Offset from the arena's start; set by {@link placeBuffers}. */
  offset: number;
}

const ALIGNMENT = 64;

/** Sets every buffer's offset such that no two that live at the same step overlap; returns the bytes needed. */
export function placeBuffers(buffers: readonly Lifetime[]): number {
  /** Of those placed, by their offsets. What has ended before the next one begins is of no interest any more. */
  let alive: Lifetime[] = [];
  let size = 0;
  for (const buffer of [...buffers].sort((a, b) => a.first - b.first)) {
    alive = alive.filter((other) => other.last >= buffer.first);
    let offset = 0;
    for (const other of alive) {
      if (offset + buffer.bytes <= other.offset) break;
      offset = Math.max(offset, align(other.offset + other.bytes));
    }
    buffer.offset = offset;
    size = Math.max(size, offset + buffer.bytes);
    const behind = alive.findIndex((other) => other.offset > offset);
    alive.splice(behind === -1 ? alive.length : behind, 0, buffer);
  }
  return align(size);
}

export function align(bytes: number, alignment = ALIGNMENT): number {
  return Math.ceil(bytes / alignment) * alignment;
}
