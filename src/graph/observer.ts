/** Looking on at a forward pass without changing it. */

/** One named activation of one pass, copied out behind the operation that produced it. */
export interface Tap {
  /** GGUF-style name, for example `blk.0.attn_norm`. */
  readonly name: string;
  readonly layer: number | undefined;
  /** Values a row, rows. */
  readonly shape: readonly [number, number];
  /** Positions of the pass's rows. */
  readonly positions: readonly number[];
  readonly values: Float32Array;
}

export interface PassObserver {
  /** Whether this activation shall be copied out. */
  wants(name: string, layer: number | undefined): boolean;
  onTap(tap: Tap): void;
}
