/** What decode passes leave behind: a few numbers a token, however many tokens there are. */

import type { PassObserver, Tap } from '../graph/observer.ts';
import { isCopy, ROUTING, stageOf, withoutLayer } from './stages.ts';
import { statisticsOf } from './statistics.ts';

/** One decode pass. */
export interface DecodeStep {
  /** Of the token that went in. */
  readonly position: number;
  /** Standard deviation of each block's output; null where nothing is finite. */
  readonly output_std: readonly (number | null)[];
  /** L2 norm of the logits. */
  readonly logits_l2: number | null;
  /** First activation with a value that is not finite. */
  readonly not_finite: string | null;
}

interface OpenStep {
  position: number;
  output_std: (number | null)[];
  logits_l2: number | null;
  not_finite: string | null;
}

/** Looks on at passes behind the prompt. */
export class StepObserver implements PassObserver {
  readonly #after: number;
  readonly steps: OpenStep[] = [];

  /** @param after last position of the prompt */
  constructor(after: number) {
    this.#after = after;
  }

  wants(name: string): boolean {
    return !isCopy(name);
  }

  onTap({ name, positions, values, shape }: Tap): void {
    const position = positions.at(-1);
    if (position === undefined || position <= this.#after) return;
    let step = this.steps.at(-1);
    if (step?.position !== position) {
      step = { position, output_std: [], logits_l2: null, not_finite: null };
      this.steps.push(step);
    }
    const stats = statisticsOf(values, withoutLayer(name) === ROUTING ? shape[0] / 2 : 0);
    if (stats.nan_count + stats.inf_count > 0) step.not_finite ??= name;
    const stage = stageOf(name)?.name;
    if (stage === 'output') step.output_std.push(stats.std);
    if (stage === 'logits') step.logits_l2 = stats.l2;
  }
}
