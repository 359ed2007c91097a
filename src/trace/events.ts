/** Events of a trace, as the document lists them. */

import { AprError } from '../errors.ts';
import type { Statistics } from './statistics.ts';

export const TRACE_STEPS = [
  'LOAD',
  'TEMPLATE',
  'TOKENIZE',
  'EMBED',
  'LAYER_NORM',
  'ATTENTION',
  'FFN',
  'TRANSFORMER_BLOCK',
  'LM_HEAD',
  'SAMPLE',
  'DECODE',
] as const;

export type TraceStep = (typeof TRACE_STEPS)[number];

export type TracePhase = 'load' | 'prompt' | 'prefill' | 'decode';

export interface TraceEvent {
  /** Counts from 1, in the order of the starts. */
  readonly id: number;
  /** `TaskStateExited`: a stretch that has ended. `ExecutionFailed`, `Warning`: a moment, with its message. */
  readonly type: 'TaskStateExited' | 'ExecutionFailed' | 'Warning';
  readonly step: TraceStep;
  readonly phase: TracePhase;
  /** Of the first token that it is about; 0 before there is one. */
  readonly position: number;
  readonly layer?: number;
  /** GGUF-style name of the tensor that it computes, or what the host did. */
  readonly name?: string;
  /** Microseconds since the trace began, by a monotonic clock. */
  readonly start_us: number;
  readonly duration_us: number;
  /** Values a row, rows. */
  readonly input_shape?: readonly number[];
  readonly output_shape?: readonly number[];
  readonly stats?: Statistics;
  /** `within`: id of the event whose part it is; an event without it is a part of its phase. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Other names of steps, as people write them. */
const ALIASES: Readonly<Record<string, TraceStep>> = {
  ENCODE: 'TOKENIZE',
  LN: 'LAYER_NORM',
  NORM: 'LAYER_NORM',
  ATTN: 'ATTENTION',
  MLP: 'FFN',
  LAYER: 'TRANSFORMER_BLOCK',
  BLOCK: 'TRANSFORMER_BLOCK',
  HEAD: 'LM_HEAD',
};

/**
 * The steps of a list such as `attention,ffn`.
 * @throws AprError USAGE naming the one that is none
 */
export function parseTraceSteps(list: string): ReadonlySet<TraceStep> {
  const steps = list.split(',').map((word): TraceStep => {
    const name = word.trim().toUpperCase().replaceAll('-', '_');
    const step = TRACE_STEPS.find((one) => one === name) ?? (Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined);
    if (step !== undefined) return step;
    const expected = TRACE_STEPS.join(', ');
    const found = JSON.stringify(word.trim().slice(0, 60));
    throw new AprError('USAGE', `--trace-steps names ${found}, expected steps out of ${expected}`, {
      option: '--trace-steps',
      found: word.trim(),
      expected,
    });
  });
  return new Set(steps);
}
