/** Where the time goes by operation and tensor type, and what each thread did meanwhile. */

import type { PassStep } from '../graph/observer.ts';
import { partsOf } from './parts.ts';
import type { Recording, TracedPass } from './recorder.ts';
import { type PhaseSummary, summaryOf } from './summary.ts';

export interface OperationProfile {
  /** Kernel, or what the host did. */
  readonly operation: string;
  /** Tensor type of the matrix that it reads. */
  readonly type: string | null;
  readonly calls: number;
  readonly total_us: number;
  readonly mean_us: number;
  /** Of the phase's total. */
  readonly share: number;
  /** Bytes of weights that it read; null where it reads none. */
  readonly weight_bytes: number | null;
  readonly gb_per_sec: number | null;
}

export interface PhaseProfile {
  readonly total_us: number;
  readonly tokens: number;
  readonly tok_per_sec: number;
  readonly other_us: number;
  /** Of all weights read in the whole phase. */
  readonly weight_bytes: number;
  readonly gb_per_sec: number;
  readonly operations: readonly OperationProfile[];
}

export interface ThreadProfile {
  readonly thread: number;
  /** In kernels; at barriers, for the others. Between the first thread's start of a pass and the last one's end. */
  readonly busy_us: number;
  readonly waiting_us: number;
}

export interface Profile {
  readonly load: PhaseSummary;
  readonly prefill: PhaseProfile;
  readonly decode: PhaseProfile;
  readonly other_us: number;
  readonly wall_us: number;
  readonly threads: readonly ThreadProfile[];
  /** Microseconds by `phase;part;operation type`. */
  readonly stacks: ReadonlyMap<string, number>;
}

interface Sum {
  readonly operation: string;
  readonly type: string | null;
  calls: number;
  ms: number;
  bytes: number | null;
}

export function profileOf(recording: Recording): Profile {
  const summary = summaryOf(recording);
  const sums = { prefill: new Map<string, Sum>(), decode: new Map<string, Sum>() };
  const stacks = new Map<string, number>();
  const threads: { busy: number; waiting: number }[] = [];
  const add = (phase: 'prefill' | 'decode', operation: string, type: string | null, ms: number, bytes?: number) => {
    const key = `${operation} ${type}`;
    const sum = sums[phase].get(key) ?? { operation, type, calls: 0, ms: 0, bytes: null };
    sum.calls++;
    sum.ms += ms;
    if (bytes !== undefined) sum.bytes = (sum.bytes ?? 0) + bytes;
    sums[phase].set(key, sum);
  };
  const stack = (frames: readonly string[], ms: number): void => {
    const key = frames.join(';');
    stacks.set(key, (stacks.get(key) ?? 0) + ms * 1000);
  };
  for (const part of summary.load.parts) stack(['load', part.name], part.us / 1000);
  stack(['load', 'other'], summary.load.other_us / 1000);
  for (const entry of recording.entries) {
    const { phase } = entry;
    if (phase !== 'prefill' && phase !== 'decode') continue;
    const host = (name: string, ms: number): void => {
      if (ms <= 0) return;
      add(phase, name, null, ms);
      stack([phase, name], ms);
    };
    if (entry.kind === 'span') {
      if (entry.span.name !== 'prefill') host(entry.span.name, entry.end - entry.start);
      continue;
    }
    const { sample } = entry;
    const parts = partsOf(sample.record);
    host('hand_over', sample.taken - sample.start);
    let last = sample.taken;
    sample.steps.forEach((step, index) => {
      const done = sample.done[index]!;
      if (Number.isNaN(done)) return;
      const type = step.weight?.type ?? null;
      add(phase, step.kernel, type, done - last, bytesOf(entry, step));
      const operation = type === null ? step.kernel : `${step.kernel} ${type}`;
      stack([phase, parts[step.command]?.part ?? 'blocks', operation], done - last);
      last = done;
    });
    host('hand_back', sample.returned - last);
    host('observer', entry.end - sample.returned);
    sample.busy.forEach((ms, thread) => {
      threads[thread] ??= { busy: 0, waiting: 0 };
      threads[thread].busy += ms;
      threads[thread].waiting += sample.waiting[thread]!;
    });
  }
  for (const phase of ['prefill', 'decode'] as const) stack([phase, 'other'], summary[phase].other_us / 1000);
  stack(['warm_up'], summary.warm_up_us / 1000);
  stack(['other'], summary.other_us / 1000);
  return {
    load: summary.load,
    prefill: phaseProfile(summary.prefill, sums.prefill),
    decode: phaseProfile(summary.decode, sums.decode),
    other_us: summary.other_us,
    wall_us: summary.wall_us,
    threads: threads.map(({ busy, waiting }, thread) => ({
      thread,
      busy_us: busy * 1000,
      waiting_us: waiting * 1000,
    })),
    stacks,
  };
}

function phaseProfile(summary: PhaseSummary, sums: ReadonlyMap<string, Sum>): PhaseProfile {
  const { total_us, tokens, tok_per_sec, other_us } = summary;
  const operations = [...sums.values()]
    .sort((a, b) => b.ms - a.ms)
    .map(
      ({ operation, type, calls, ms, bytes }): OperationProfile => ({
        operation,
        type,
        calls,
        total_us: ms * 1000,
        mean_us: (ms * 1000) / calls,
        share: total_us > 0 ? (ms * 1000) / total_us : 0,
        weight_bytes: bytes,
        gb_per_sec: bytes === null || ms === 0 ? null : bytes / ms / 1e6,
      }),
    );
  const weightBytes = operations.reduce((sum, { weight_bytes }) => sum + (weight_bytes ?? 0), 0);
  return {
    total_us,
    tokens,
    tok_per_sec,
    other_us,
    weight_bytes: weightBytes,
    gb_per_sec: total_us > 0 ? weightBytes / total_us / 1000 : 0,
    operations,
  };
}

/** Weights that the step read: of a product with chosen experts, the matrices of those that a row of the pass chose. */
function bytesOf({ sample, routing }: TracedPass, { command: index, weight }: PassStep): number | undefined {
  if (weight === undefined) return undefined;
  if (weight.perExpert !== true) return weight.bytes;
  const command = sample.record.commands[index];
  if (command?.op !== 'mulMatId' || command.dst.layer === undefined) return undefined;
  const values = routing.get(command.dst.layer);
  if (values === undefined) return undefined;
  const ids = new Int32Array(values.buffer, values.byteOffset, values.length);
  const chosen = new Set<number>();
  for (let row = 0; row < ids.length; row += 2 * command.slots) {
    for (let slot = 0; slot < command.slots; slot++) chosen.add(ids[row + slot]!);
  }
  return chosen.size * weight.bytes;
}

/** Folded stacks: a line for each, frames from the outermost in, and the microseconds. */
export function foldedStacks({ stacks }: Profile): string {
  return [...stacks]
    .map(([frames, us]) => [frames, Math.round(us)] as const)
    .filter(([, us]) => us > 0)
    .map(([frames, us]) => `${frames} ${us}\n`)
    .join('');
}
