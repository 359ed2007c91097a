/**
 * A forward pass as a list of commands. A model records it once for a shape of pass, a backend executes it. Each
 * activation is written by exactly one command, so that an observer can copy it out behind its producer.
 */

import type { RopeParameters } from './rope.ts';

/** A tensor of the model file. Backends know it by its GGUF name. */
export interface Weight {
  readonly kind: 'weight';
  readonly name: string;
  /** Row length (input features of a matrix). */
  readonly width: number;
  /** Rows (output features); 1 for a vector. */
  readonly rows: number;
  /** Matrices of that shape, one an expert; 1 for a plain matrix. */
  readonly experts: number;
  /** First row, for a handle to some rows of a matrix that the file stores in one piece; 0 otherwise. */
  readonly firstRow: number;
  /** A norm, bias or other vector: kept as plain f32, never multiplied by as a matrix. */
  readonly vector: boolean;
}

/** An f32 activation of one pass, `rows` × `width`, or int32 where `ids` is set. */
export interface Activation {
  readonly kind: 'activation';
  /** Number in the record: also the key of its value in a backend. */
  readonly id: number;
  /** GGUF-style name, for example `blk.0.attn_norm`. */
  readonly name: string;
  readonly layer: number | undefined;
  readonly width: number;
  readonly rows: number;
}

/** Per-pass integers, filled in by the caller of execute. */
export type InputName = 'tokens' | 'positions' | 'sequences' | 'outputRows';

export type Command =
  /** dst[i] = row tokens[i] of the embedding matrix. */
  | { readonly op: 'embed'; readonly dst: Activation; readonly weight: Weight }
  /** dst[i] = x[outputRows[i]]: the rows whose logits are wanted. */
  | { readonly op: 'selectRows'; readonly dst: Activation; readonly x: Activation }
  /** Each run of `weight.width` values: dst = x / sqrt(mean(x²) + eps) · weight. */
  | {
      readonly op: 'rmsNorm';
      readonly dst: Activation;
      readonly x: Activation;
      readonly weight: Weight;
      readonly eps: number;
    }
  /** dst = x · weightᵀ. */
  | { readonly op: 'mulMat'; readonly dst: Activation; readonly weight: Weight; readonly x: Activation }
  /** For slot s of each row: dst[row·slots + s] = x[row or row·slots + s] · weight[ids[row, s]]ᵀ. */
  | {
      readonly op: 'mulMatId';
      readonly dst: Activation;
      readonly weight: Weight;
      readonly x: Activation;
      readonly routing: Activation;
      /** Experts used for a row. */
      readonly slots: number;
      /** True when x has one row a slot, false when the slots of a row share it. */
      readonly perSlot: boolean;
    }
  /**
   * Router: dst row = `slots` expert ids (int32) then `slots` weights (f32). Soft-max over all experts, the `slots`
   * largest (ties: the lower id), divided by their sum when `normalise`.
   */
  | {
      readonly op: 'topK';
      readonly dst: Activation;
      readonly logits: Activation;
      readonly slots: number;
      readonly normalise: boolean;
    }
  /** dst[row] = Σ over slots, in slot order, of routing weight · x[row·slots + slot]. */
  | {
      readonly op: 'combine';
      readonly dst: Activation;
      readonly x: Activation;
      readonly routing: Activation;
      readonly slots: number;
    }
  | { readonly op: 'add'; readonly dst: Activation; readonly a: Activation; readonly b: Activation }
  | { readonly op: 'addBias'; readonly dst: Activation; readonly x: Activation; readonly bias: Weight }
  /** Rotates each head of x to the row's position. */
  | {
      readonly op: 'rope';
      readonly dst: Activation;
      readonly x: Activation;
      readonly headDim: number;
      readonly rope: RopeParameters;
    }
  /** Writes k and v as f16 into the layer's cache at the rows' positions. */
  | {
      readonly op: 'storeKv';
      readonly k: Activation;
      readonly v: Activation;
      readonly layer: number;
      readonly headCountKv: number;
      readonly headDim: number;
      readonly headDimV: number;
    }
  /** Causal attention of each head over the positions 0 … position of the row's sequence. */
  | {
      readonly op: 'attention';
      readonly dst: Activation;
      readonly q: Activation;
      readonly layer: number;
      readonly headCount: number;
      readonly headCountKv: number;
      readonly headDim: number;
      readonly headDimV: number;
      readonly scale: number;
      /** How many positions a row sees, itself included; 0 for all. */
      readonly window: number;
      /** Bound of a soft cap on the scaled q · k; 0 for none. */
      readonly softCap: number;
    }
  /** dst = silu(gate) · up. */
  | { readonly op: 'swiglu'; readonly dst: Activation; readonly gate: Activation; readonly up: Activation }
  /** dst = gelu(gate) · up, with the tanh form of GELU (Hendrycks and Gimpel 2016). */
  | { readonly op: 'geglu'; readonly dst: Activation; readonly gate: Activation; readonly up: Activation }
  /** dst = factor · x. */
  | { readonly op: 'scale'; readonly dst: Activation; readonly x: Activation; readonly factor: number }
  /** dst = cap · tanh(x / cap). */
  | { readonly op: 'softCap'; readonly dst: Activation; readonly x: Activation; readonly cap: number }
  /** dst row = x row · sigmoid(gate row), gate one value a row. */
  | { readonly op: 'sigmoidGate'; readonly dst: Activation; readonly x: Activation; readonly gate: Activation };

/** A whole pass over `rows` tokens that ends in logits for `outputs` of them, or behind the last block for none. */
export interface PassRecord {
  readonly rows: number;
  readonly outputs: number;
  readonly commands: readonly Command[];
  /** Every activation by its id. */
  readonly activations: readonly Activation[];
  /** [outputs × vocabulary]; undefined where nobody wants any. */
  readonly logits: Activation | undefined;
}
