/** Records a forward pass. Models call these; nothing is computed here. */

import type { Activation, Command, PassRecord, Weight } from './command.ts';
import type { RopeParameters } from './rope.ts';

export interface AttentionShape {
  readonly headCount: number;
  readonly headCountKv: number;
  /** Values of a query or key head. */
  readonly headDim: number;
  /** Values of a value head. */
  readonly headDimV: number;
  /** Factor on q · k. */
  readonly scale: number;
  /** How many positions a row sees, itself included; 0 for all. */
  readonly window?: number;
  /** Bound of a soft cap on the scaled q · k; 0 for none. */
  readonly softCap?: number;
}

export class Ops {
  /** Tokens of the pass. */
  readonly rows: number;
  /** Tokens whose logits are wanted. */
  readonly outputs: number;
  /** Block that the commands recorded from here on belong to. */
  layer: number | undefined = undefined;
  readonly #commands: Command[] = [];
  readonly #activations: Activation[] = [];

  constructor(rows: number, outputs: number) {
    this.rows = rows;
    this.outputs = outputs;
  }

  /** Rows of the embedding matrix at the pass's tokens: [rows × weight.width]. */
  embed(name: string, weight: Weight): Activation {
    const dst = this.#activation(name, weight.width, this.rows);
    this.#commands.push({ op: 'embed', dst, weight });
    return dst;
  }

  /** The rows whose logits are wanted: [outputs × x.width]. All rows wanted: x itself. */
  selectOutputs(name: string, x: Activation): Activation {
    if (this.outputs === this.rows) return x;
    const dst = this.#activation(name, x.width, this.outputs);
    this.#commands.push({ op: 'selectRows', dst, x });
    return dst;
  }

  /** Each run of weight.width values of x over its root mean square, times weight. */
  rmsNorm(name: string, x: Activation, weight: Weight, eps: number): Activation {
    const dst = this.#activation(name, x.width, x.rows);
    this.#commands.push({ op: 'rmsNorm', dst, x, weight, eps });
    return dst;
  }

  /** x · weightᵀ: [x.rows × weight.rows]. */
  mulMat(name: string, weight: Weight, x: Activation): Activation {
    const dst = this.#activation(name, weight.rows, x.rows);
    this.#commands.push({ op: 'mulMat', dst, weight, x });
    return dst;
  }

  /**
   * Products with the experts that `routing` names: [rows·slots × weight.rows].
   * `perSlot`: x has a row for each slot; otherwise the slots of a row share it.
   */
  mulMatId(
    name: string,
    weight: Weight,
    x: Activation,
    routing: Activation,
    slots: number,
    perSlot: boolean,
  ): Activation {
    const dst = this.#activation(name, weight.rows, routing.rows * slots);
    this.#commands.push({ op: 'mulMatId', dst, weight, x, routing, slots, perSlot });
    return dst;
  }

  /** Soft-max over the experts and choice of the `slots` best: [rows × 2·slots], ids then weights. */
  topK(name: string, logits: Activation, slots: number, normalise: boolean): Activation {
    const dst = this.#activation(name, 2 * slots, logits.rows);
    this.#commands.push({ op: 'topK', dst, logits, slots, normalise });
    return dst;
  }

  /** Sum of the experts' outputs by their weights, in slot order: [rows × x.width]. */
  combine(name: string, x: Activation, routing: Activation, slots: number): Activation {
    const dst = this.#activation(name, x.width, routing.rows);
    this.#commands.push({ op: 'combine', dst, x, routing, slots });
    return dst;
  }

  add(name: string, a: Activation, b: Activation): Activation {
    const dst = this.#activation(name, a.width, a.rows);
    this.#commands.push({ op: 'add', dst, a, b });
    return dst;
  }

  /** x plus the vector `bias`, which may be absent. */
  addBias(name: string, x: Activation, bias: Weight | undefined): Activation {
    if (bias === undefined) return x;
    const dst = this.#activation(name, x.width, x.rows);
    this.#commands.push({ op: 'addBias', dst, x, bias });
    return dst;
  }

  rope(name: string, x: Activation, headDim: number, rope: RopeParameters): Activation {
    const dst = this.#activation(name, x.width, x.rows);
    this.#commands.push({ op: 'rope', dst, x, headDim, rope });
    return dst;
  }

  /** Stores k and v in the current layer's cache, then attends: [rows × headCount·headDimV]. */
  attention(name: string, q: Activation, k: Activation, v: Activation, shape: AttentionShape): Activation {
    const layer = this.layer;
    if (layer === undefined) throw new Error('attention outside a layer');
    const { headCountKv, headDim, headDimV } = shape;
    this.#commands.push({ op: 'storeKv', k, v, layer, headCountKv, headDim, headDimV });
    const dst = this.#activation(name, shape.headCount * shape.headDimV, q.rows);
    this.#commands.push({ op: 'attention', dst, q, layer, window: 0, softCap: 0, ...shape });
    return dst;
  }

  /** silu(gate) · up. */
  swiglu(name: string, gate: Activation, up: Activation): Activation {
    const dst = this.#activation(name, gate.width, gate.rows);
    this.#commands.push({ op: 'swiglu', dst, gate, up });
    return dst;
  }

  /** gelu(gate) · up. */
  geglu(name: string, gate: Activation, up: Activation): Activation {
    const dst = this.#activation(name, gate.width, gate.rows);
    this.#commands.push({ op: 'geglu', dst, gate, up });
    return dst;
  }

  scale(name: string, x: Activation, factor: number): Activation {
    const dst = this.#activation(name, x.width, x.rows);
    this.#commands.push({ op: 'scale', dst, x, factor });
    return dst;
  }

  /** cap · tanh(x / cap). */
  softCap(name: string, x: Activation, cap: number): Activation {
    const dst = this.#activation(name, x.width, x.rows);
    this.#commands.push({ op: 'softCap', dst, x, cap });
    return dst;
  }

  /** Each row of x times the sigmoid of its gate, [rows × 1]. */
  sigmoidGate(name: string, x: Activation, gate: Activation): Activation {
    const dst = this.#activation(name, x.width, x.rows);
    this.#commands.push({ op: 'sigmoidGate', dst, x, gate });
    return dst;
  }

  finish(logits: Activation | undefined): PassRecord {
    return {
      rows: this.rows,
      outputs: this.outputs,
      commands: this.#commands,
      activations: this.#activations,
      logits,
    };
  }

  #activation(name: string, width: number, rows: number): Activation {
    const { layer } = this;
    const activation: Activation = {
      kind: 'activation',
      id: this.#activations.length,
      name: layer === undefined ? name : `blk.${layer}.${name}`,
      layer,
      width,
      rows,
    };
    this.#activations.push(activation);
    return activation;
  }
}
