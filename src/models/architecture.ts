/** What an architecture has to say about itself. One file each beside this one; index.ts is the registry. */

import type { Activation, Weight } from '../graph/command.ts';
import type { Ops } from '../graph/ops.ts';
import type { RopeParameters } from '../graph/rope.ts';
import type { Hyperparameters } from './hyperparameters.ts';

/** A tensor that a file of this architecture has, for the contract check. */
export interface ExpectedTensor {
  /** GGUF name. */
  readonly name: string;
  /** ggml order: row length first. */
  readonly shape: readonly number[];
  /** Vectors stay f32; matrices may have any supported type. */
  readonly kind: 'matrix' | 'vector';
  readonly optional?: boolean;
  /** Read while the model is set up and not given to the backend. */
  readonly setup?: boolean;
}

/** A model whose file passed the contract: hyperparameters, and handles to the tensors that are present. */
export interface Model {
  readonly hyperparameters: Hyperparameters;
  /** Positions of the KV cache. */
  readonly contextLength: number;
  /** What the architecture's `ropes` returned. */
  readonly ropes: readonly RopeParameters[];
  /** Handle of a tensor that the contract guarantees. */
  weight(name: string): Weight;
  /**
   * Handle of `count` rows of a matrix from row `first` on, for files that store several matrices in one.
   * @throws AprError UNSUPPORTED when the rows do not begin where kernels can
   */
  rows(name: string, first: number, count: number): Weight;
  /** Handle of an optional tensor, undefined when the file lacks it. */
  optional(name: string): Weight | undefined;
}

export interface Architecture {
  /** As `general.architecture` spells it. */
  readonly name: string;
  /** Every tensor that a file with these hyperparameters has or may have, and no other. */
  tensors(hyperparameters: Hyperparameters): ExpectedTensor[];
  /** Changes what follows from this architecture alone; throws AprError UNSUPPORTED for what is not computed. */
  adjust?(hyperparameters: Hyperparameters): Hyperparameters;
  /**
   * Rotations of queries and keys; most architectures have one.
   * `vectors` holds the tensors that are marked `setup`, as far as the file has them.
   */
  ropes(
    hyperparameters: Hyperparameters,
    vectors: ReadonlyMap<string, Float32Array>,
    contextLength: number,
  ): readonly RopeParameters[];
  /** Records the whole pass and returns the logits, undefined for a pass without outputs. */
  forward(ops: Ops, model: Model): Activation | undefined;
}
