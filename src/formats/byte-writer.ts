/** Appends little-endian values to a growing buffer; every method returns the writer. */

const encoder = /* @__PURE__ */ new TextEncoder();

export class ByteWriter {
  #bytes = new Uint8Array(4096);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** What has been written so far; a view that later writes may change. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  u8(value: number): this {
    const at = this.#grow(1);
    this.#view.setUint8(at, value);
    return this;
  }

  u16(value: number): this {
    const at = this.#grow(2);
    this.#view.setUint16(at, value, true);
    return this;
  }

  u32(value: number): this {
    const at = this.#grow(4);
    this.#view.setUint32(at, value, true);
    return this;
  }

  u64(value: number | bigint): this {
    const at = this.#grow(8);
    this.#view.setBigUint64(at, BigInt(value), true);
    return this;
  }

  f32(value: number): this {
    const at = this.#grow(4);
    this.#view.setFloat32(at, value, true);
    return this;
  }

  f64(value: number): this {
    const at = this.#grow(8);
    this.#view.setFloat64(at, value, true);
    return this;
  }

  raw(bytes: Uint8Array): this {
    const at = this.#grow(bytes.length);
    this.#bytes.set(bytes, at);
    return this;
  }

  text(text: string): this {
    return this.raw(encoder.encode(text));
  }

  /** Zeros up to a multiple of `alignment`. */
  pad(alignment: number): this {
    this.#grow(Math.ceil(this.#length / alignment) * alignment - this.#length);
    return this;
  }

  /** Makes room for `size` bytes and returns where they begin; may replace the buffer and its view. */
  #grow(size: number): number {
    const at = this.#length;
    this.#length += size;
    if (this.#length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(this.#length, this.#bytes.length * 2));
      grown.set(this.#bytes.subarray(0, at));
      this.#bytes = grown;
      this.#view = new DataView(grown.buffer);
    }
    return at;
  }
}
