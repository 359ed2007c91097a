/** What a trace says about a model's health: the first place where values are not finite, or their spread jumps. */

import type { TracedActivation } from './layers.ts';
import { placeOf } from './stages.ts';

export interface Verdict {
  readonly status: 'healthy' | 'not_finite' | 'spread';
  /** Null outside the blocks, and when healthy. */
  readonly layer: number | null;
  /** Name of the stage; null when healthy. */
  readonly stage: string | null;
  readonly activation: string | null;
  /** One sentence. */
  readonly message: string;
}

/**
 * The residual stream grows by a few times a layer at most, also in models with massive activations, since those are a
 * matter of few tokens (Sun et al. 2024, "Massive Activations in Large Language Models") and medians are compared.
 */
export const SPREAD_JUMP = 10;

/** @param activations in the order in which they were computed */
export function verdictOf(activations: readonly TracedActivation[]): Verdict {
  const place = ({ layer, stage, name }: TracedActivation) => ({ layer: layer ?? null, stage, activation: name });
  const broken = activations.find(({ stats }) => stats.nan_count + stats.inf_count > 0);
  if (broken !== undefined) {
    const { nan_count, inf_count, count } = broken.stats;
    const parts = [...(nan_count > 0 ? [`${nan_count} NaN`] : []), ...(inf_count > 0 ? [`${inf_count} infinite`] : [])];
    const where = `${placeOf(broken.name, broken.layer)} (${broken.name})`;
    const message = `${where} is the first that is not finite: ${parts.join(' and ')} of ${count} values`;
    return { status: 'not_finite', ...place(broken), message };
  }
  const outputs = activations.filter(({ stage }) => stage === 'output');
  for (const [index, output] of outputs.entries()) {
    // The first block is held against nothing: embeddings are small in some models, and large in others.
    const before = outputs[index - 1];
    if (before === undefined) continue;
    const [from, to] = [before.spread ?? 0, output.spread ?? 0];
    if (to <= from * SPREAD_JUMP && from <= to * SPREAD_JUMP) continue;
    const times = to > from ? `${number(to / from)} times` : `${number(to / from)} of`;
    const message =
      `${placeOf(output.name, output.layer)} has a spread of ${number(to)}, ${times} the ${number(from)} of the layer ` +
      `before; a healthy model stays within ${SPREAD_JUMP} times`;
    return { status: 'spread', ...place(output), message };
  }
  const message = `all values of ${outputs.length} layers are finite, and no layer's spread jumps`;
  return { status: 'healthy', layer: null, stage: null, activation: null, message };
}

function number(value: number): string {
  return value.toPrecision(3);
}
