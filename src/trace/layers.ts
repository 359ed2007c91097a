/** The statistics of a traced prompt, layer by layer and stage by stage. */

import { choiceOf, RouterCounter, type RouterSummary } from './routing.ts';
import type { ActivationRows, RowSink } from './rows.ts';
import { BLOCK_STAGES, ROUTER_LOGITS, ROUTING, STAGES, type Stage, stageOf, withoutLayer } from './stages.ts';
import { mergeStatistics, type Statistics, StatisticsCounter, statisticsOf } from './statistics.ts';

/** One activation, over all its traced rows. */
export interface ActivationSummary {
  /** As src/models names it, such as `blk.3.attn_q_rope`. */
  readonly name: string;
  readonly stage: string;
  /** Rows and values a row; experts' activations have a row for each slot. */
  readonly shape: readonly [rows: number, width: number];
  /** Of the weights alone where it holds expert ids too. */
  readonly stats: Statistics;
}

/** One block: a key for each stage that it has, and the names under which others look for its output. */
export interface LayerSummary extends Partial<Readonly<Record<string, unknown>>> {
  readonly layer_idx: number;
  /** `transformer_block_3`. */
  readonly name: string;
  /** The residual stream behind the block. */
  readonly output: Statistics;
  readonly output_stats: Statistics;
  readonly router?: RouterSummary;
  readonly activations?: readonly ActivationSummary[];
}

interface Counted {
  readonly name: string;
  readonly layer: number | undefined;
  readonly stage: string;
  readonly width: number;
  rows: number;
  readonly counter: StatisticsCounter;
  /** Standard deviation of each token's values, of the residual stream only. */
  readonly spreads: number[];
}

/** An activation with its place in the order of computation. */
export interface TracedActivation extends ActivationSummary {
  readonly layer: number | undefined;
  /** Median over the tokens of the standard deviation of one token's values; the residual stream only. */
  readonly spread: number | undefined;
}

export class LayerStatistics implements RowSink {
  readonly #counted = new Map<string, Counted>();
  readonly #routers = new Map<number, RouterCounter>();

  take(rows: ActivationRows): void {
    const { name, layer, width, values, tokens, perToken } = rows;
    const bare = withoutLayer(name);
    const counted = this.#counted.get(name) ?? this.#begin(rows);
    counted.rows += tokens * perToken;
    if (bare === ROUTING) this.#route(layer, rows);
    if (bare === ROUTER_LOGITS && layer !== undefined) {
      for (let row = 0; row < tokens; row++)
        this.#router(layer).addLogits(values.subarray(row * width, (row + 1) * width));
    }
    for (let row = 0; row < tokens * perToken; row++) {
      // Ids are no values.
      const from = row * width + (bare === ROUTING ? width / 2 : 0);
      counted.counter.add(values, from, (row + 1) * width);
    }
    if (counted.stage !== 'output' && counted.stage !== 'embedding') return;
    for (let row = 0; row < tokens; row++) {
      counted.spreads.push(statisticsOf(values, row * width, (row + 1) * width).std ?? Number.NaN);
    }
  }

  /** In the order in which they were computed. */
  activations(): TracedActivation[] {
    return [...this.#counted.values()].map(({ name, layer, stage, width, rows, counter, spreads }) => ({
      name,
      layer,
      stage,
      shape: [rows, width],
      stats: counter.result(),
      spread: spreads.length === 0 ? undefined : median(spreads),
    }));
  }

  /** Statistics of a stage outside the blocks; undefined when it was not traced. */
  outer(stage: string): Statistics | undefined {
    const found = STAGES.find(({ name }) => name === stage);
    return (
      found &&
      stageStatistics(
        found,
        this.activations().filter(({ layer }) => layer === undefined),
      )
    );
  }

  /** @param payload list each activation too */
  layers(payload: boolean): LayerSummary[] {
    const byLayer = new Map<number, TracedActivation[]>();
    for (const activation of this.activations()) {
      const { layer } = activation;
      if (layer === undefined) continue;
      const list = byLayer.get(layer) ?? [];
      list.push(activation);
      byLayer.set(layer, list);
    }
    return [...byLayer].map(([layer, activations]) => {
      const stages: Record<string, unknown> = {};
      for (const stage of BLOCK_STAGES) {
        const statistics = stage.name === 'router' ? undefined : stageStatistics(stage, activations);
        if (statistics !== undefined) stages[stage.name] = statistics;
        const router = this.#routers.get(layer);
        if (stage.name === 'router' && router !== undefined) stages.router = router.result();
        // A dense FFN ends in its down projection.
        if (stage.name === 'ffn_out') stages.ffn_out ??= stages.ffn_down;
      }
      const output = stages.output as Statistics;
      const list = activations.map(({ name, stage, shape, stats }) => ({ name, stage, shape, stats }));
      return {
        layer_idx: layer,
        name: `transformer_block_${layer}`,
        ...stages,
        output,
        output_stats: output,
        ...(payload ? { activations: list } : {}),
      };
    });
  }

  #begin({ name, layer, width }: ActivationRows): Counted {
    const stage = stageOf(name)?.name ?? withoutLayer(name);
    const counted = { name, layer, stage, width, rows: 0, counter: new StatisticsCounter(), spreads: [] };
    this.#counted.set(name, counted);
    return counted;
  }

  #route(layer: number | undefined, { width, values, tokens }: ActivationRows): void {
    if (layer === undefined) return;
    for (let row = 0; row < tokens; row++)
      this.#router(layer).addChoice(choiceOf(values.subarray(row * width, (row + 1) * width)));
  }

  #router(layer: number): RouterCounter {
    const router = this.#routers.get(layer) ?? new RouterCounter();
    this.#routers.set(layer, router);
    return router;
  }
}

/** Of the last alternative of each part that is there. */
function stageStatistics(stage: Stage, activations: readonly TracedActivation[]): Statistics | undefined {
  const found = new Map(activations.map((activation) => [withoutLayer(activation.name), activation.stats]));
  const results = stage.parts.flatMap((names) => {
    const last = names.findLast((name) => found.has(name));
    return last === undefined ? [] : [found.get(last) as Statistics];
  });
  return results.length === 0 ? undefined : mergeStatistics(results);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
