/** A cursor over a file's first bytes that fetches more of them as parsing goes on. */

import { AprError } from '../../errors.ts';
import type { ByteSource } from '../byte-source.ts';

const FIRST_READ = 1 << 20;

export class HeaderReader {
  readonly source: ByteSource;
  /** All bytes from the start of the file that have been fetched. */
  bytes: Uint8Array = new Uint8Array(0);
  position = 0;
  #view = new DataView(new ArrayBuffer(0));

  constructor(source: ByteSource) {
    this.source = source;
  }

  /** Bytes of the file from the cursor on. */
  get remaining(): number {
    return this.source.size - this.position;
  }

  /** True when `length` bytes can be read without {@link ensure}. */
  has(length: number): boolean {
    return this.position + length <= this.bytes.length;
  }

  /** Makes `length` bytes readable. @throws AprError BAD_FORMAT when the file ends before them */
  async ensure(length: number, what: string): Promise<void> {
    if (this.has(length)) return;
    const end = this.position + length;
    if (end > this.source.size) throw this.truncated(what, end);
    const target = Math.min(this.source.size, Math.max(end, FIRST_READ, this.bytes.length * 2));
    const bytes = new Uint8Array(target);
    bytes.set(this.bytes);
    bytes.set(await this.source.read(this.bytes.length, target - this.bytes.length), this.bytes.length);
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer);
  }

  truncated(what: string, needed: number): AprError {
    return new AprError(
      'BAD_FORMAT',
      `${this.source.name}: the file is truncated: ${what} at byte ${this.position} needs the file to have at least ` +
        `${needed} bytes, it has ${this.source.size}`,
      { needed, size: this.source.size },
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
}
