/** What the router of a mixture of experts chose. */

export interface ExpertUse {
  readonly id: number;
  /** Tokens that chose it. */
  readonly count: number;
  /** Mean of its weights over those tokens. */
  readonly weight: number;
}

/** The router of one layer over the traced tokens. */
export interface RouterSummary {
  /** Mean over the tokens of −Σ p · ln p, p the soft-max over all experts, in nats; null when a logit is not finite. */
  readonly entropy: number | null;
  /** Of a router that finds all experts equal: ln(experts). */
  readonly max_entropy: number;
  /** By weight over all tokens, the largest first. */
  readonly experts: readonly ExpertUse[];
}

/** Expert ids and weights of one token, in slot order. */
export interface Choice {
  readonly ids: Int32Array;
  readonly weights: Float32Array;
}

/** One row of a `topK` activation: as many ids (int32) as weights (f32). */
export function choiceOf(row: Float32Array): Choice {
  const slots = row.length / 2;
  return { ids: new Int32Array(row.slice(0, slots).buffer), weights: row.subarray(slots) };
}

/** Entropy in nats of the soft-max of `logits`; NaN when one is not finite. */
export function entropyOf(logits: Float32Array): number {
  const largest = logits.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  let total = 0;
  let weighted = 0;
  for (const logit of logits) {
    const power = Math.exp(logit - largest);
    total += power;
    weighted += power === 0 ? 0 : power * (logit - largest);
  }
  return Math.log(total) - weighted / total;
}

export class RouterCounter {
  #experts = 0;
  #tokens = 0;
  #entropy = 0;
  readonly #uses = new Map<number, { count: number; weight: number }>();

  addLogits(row: Float32Array): void {
    this.#experts = row.length;
    this.#tokens++;
    this.#entropy += entropyOf(row);
  }

  addChoice({ ids, weights }: Choice): void {
    ids.forEach((id, slot) => {
      const { count, weight } = this.#uses.get(id) ?? { count: 0, weight: 0 };
      this.#uses.set(id, { count: count + 1, weight: weight + (weights[slot] as number) });
    });
  }

  result(): RouterSummary {
    const entropy = this.#entropy / this.#tokens;
    return {
      entropy: Number.isFinite(entropy) ? entropy : null,
      max_entropy: Math.log(this.#experts),
      experts: [...this.#uses]
        .sort(([a, first], [b, second]) => second.weight - first.weight || a - b)
        .map(([id, { count, weight }]) => ({ id, count, weight: weight / count })),
    };
  }
}
