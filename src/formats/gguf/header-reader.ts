/** A cursor over a file's first bytes that fetches more of them as parsing goes on. */

import { AprError } from '../../errors.ts';
import type { ByteSource } from '../byte-source.ts';

const FIRST_READ = 1 << 20;

/**
 * The largest vocabularies make headers of some 30 MB. Beyond this a file is not a model, and its declared lengths
 * must not make us hold all of it in memory.
 */
export const MAX_HEADER_BYTES = 1 << 28;

export class HeaderReader {
  readonly source: ByteSource;
  /** All bytes from the start of the file that have been fetched. */
  bytes: Uint8Array = new Uint8Array(0);
  position = 0;
  /** Width of a count, length or dimension. */
  sizeBytes: 4 | 8 = 8;
  #view = new DataView(new ArrayBuffer(0));

  constructor(source: ByteSource) {
    this.source = source;
  }

  /** Bytes from the cursor on that can belong to the header. */
  get remaining(): number {
    return Math.min(this.source.size, MAX_HEADER_BYTES) - this.position;
  }

  /** True when `length` bytes can be read without {@link ensure}. */
  has(length: number): boolean {
    return this.position + length <= this.bytes.length;
  }

  /**
   * Makes `length` bytes readable.
   * @throws AprError BAD_FORMAT when the file, or what a header may have, ends before them
   */
  async ensure(length: number, what: string): Promise<void> {
    if (this.has(length)) return;
    if (length > this.remaining) throw this.tooShort(what, BigInt(length));
    const limit = Math.min(this.source.size, MAX_HEADER_BYTES);
    const target = Math.min(limit, Math.max(this.position + length, FIRST_READ, this.bytes.length * 2));
    const bytes = new Uint8Array(target);
    bytes.set(this.bytes);
    bytes.set(await this.source.read(this.bytes.length, target - this.bytes.length), this.bytes.length);
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer);
  }

  /** The error for something at the cursor that needs at least `length` bytes, more than {@link remaining}. */
  tooShort(what: string, length: bigint): AprError {
    const { name, size } = this.source;
    const needed = BigInt(this.position) + length;
    if (needed <= BigInt(size)) {
      const message =
        `${name}: ${what} at byte ${this.position} is ${length} bytes long; ` +
        `a header has at most ${MAX_HEADER_BYTES}`;
      return new AprError('BAD_FORMAT', message, { size });
    }
    return new AprError(
      'BAD_FORMAT',
      `${name}: the file is truncated or its header is damaged: ${what} at byte ${this.position} needs the file ` +
        `to have at least ${needed} bytes, but it has ${size}; fetch it again`,
      { needed: String(needed), size },
    );
  }

  /** The view over {@link bytes}; read at {@link position}, then advance it. */
  get view(): DataView {
    return this.#view;
  }

  u32(): number {
    const value = this.#view.getUint32(this.position, true);
    this.position += 4;
    return value;
  }

  u64(): bigint {
    const value = this.#view.getBigUint64(this.position, true);
    this.position += 8;
    return value;
  }

  /** A count, length or dimension. */
  size(): bigint {
    return this.sizeBytes === 8 ? this.u64() : BigInt(this.u32());
  }

  /** The next `length` bytes, which {@link ensure} has made readable; a view that a later fetch leaves as it is. */
  take(length: number): Uint8Array {
    const start = this.position;
    this.position += length;
    return this.bytes.subarray(start, this.position);
  }
}
