/** Records one run: an observer that keeps what it is told, and makes documents and tables of it afterwards. */

import type { PassObserver, PassTiming, Span, Tap } from '../graph/observer.ts';
import { chromeText } from './chrome.ts';
import { type Counters, countPasses, violations } from './counters.ts';
import { documentText } from './document.ts';
import { parseTraceSteps, type TracePhase, type TraceStep } from './events.ts';
import { type Profile, profileOf } from './profile.ts';
import { type PassSample, samplePass } from './sample.ts';
import { type Statistics, statisticsOf } from './statistics.ts';
import { type Summary, summaryOf } from './summary.ts';
import { type Timeline, timelineOf } from './timeline.ts';

export const TRACE_LEVELS = ['basic', 'layer', 'payload', 'chrome'] as const;
export type TraceLevel = (typeof TRACE_LEVELS)[number];

export interface RecorderOptions {
  readonly level: TraceLevel;
  /** Steps that the document is limited to, such as `attention,ffn`. Default: all. */
  readonly steps?: string;
  /** Statistics and routing of every token of a pass, not the last alone. Default false. */
  readonly verbose?: boolean;
  /** Count the weights that are read, experts too. Default false. */
  readonly profile?: boolean;
}

/** The run as its end tells it. Of a run that failed on the way, what is known. */
export interface TraceRun {
  readonly model: {
    readonly name: string;
    readonly architecture: string;
    readonly num_layers: number;
    readonly hidden_dim: number;
    readonly vocab_size: number;
    readonly num_heads: number;
  };
  readonly threads: number;
  readonly kernel: string;
  readonly outcome?: {
    readonly promptTokens: number;
    readonly cachedTokens: number;
    readonly generatedTokens: number;
    /** Whether an end token was chosen behind the answer. */
    readonly ended: boolean;
    readonly prefillMs: number;
    readonly decodeMs: number;
  };
}

/** A pass with what was copied out of it. */
export interface TracedPass {
  readonly kind: 'pass';
  readonly start: number;
  /** Behind the observer's own work. */
  readonly end: number;
  readonly phase: TracePhase;
  readonly sample: PassSample;
  /** By the layer: ids (int32) and weights of the chosen experts, see `topK`. [rows × 2 · slots] */
  readonly routing: ReadonlyMap<number, Float32Array>;
  /** By the activation's name. */
  readonly statistics: ReadonlyMap<string, Statistics>;
  /** The most probable next tokens. */
  readonly top: readonly { readonly token_id: number; readonly logit: number }[] | undefined;
}

export interface TracedSpan {
  readonly kind: 'span';
  readonly start: number;
  readonly end: number;
  readonly phase: TracePhase;
  readonly position: number;
  readonly span: Span;
}

export type TraceEntry = TracedPass | TracedSpan;

/** All that was recorded, in the order of the starts, an outer stretch before its parts. */
export interface Recording {
  readonly level: TraceLevel;
  readonly steps: ReadonlySet<TraceStep> | undefined;
  readonly verbose: boolean;
  readonly run: TraceRun;
  /** When the trace began and ended, `performance.now()`. */
  readonly origin: number;
  readonly finished: number;
  readonly entries: readonly TraceEntry[];
  readonly counters: Counters;
  readonly warnings: readonly string[];
  readonly failure: { readonly at: number; readonly phase: TracePhase; readonly message: string } | undefined;
}

/** A pass whose times are still as the threads have written them. */
interface PendingPass extends Omit<TracedPass, 'end' | 'sample'> {
  end: number;
  sample: PassSample | undefined;
  timing: PassTiming | undefined;
}

const TOP_LOGITS = 5;
/** Steps, each with two times, that are kept until somebody has the time to look at them: 64 MB. */
const MOST_PENDING_TIMES = 4e6;
const LOAD_SPANS: ReadonlySet<Span['name']> = new Set([
  'header',
  'tokenizer',
  'chat_template',
  'contract',
  'kernels',
  'weights',
  'self_check',
  'load',
]);

export class TraceRecorder implements PassObserver {
  readonly level: TraceLevel;
  readonly wants?: (name: string) => boolean;
  readonly routingOnly: boolean;
  readonly #steps: ReadonlySet<TraceStep> | undefined;
  readonly #verbose: boolean;
  readonly #origin = performance.now();
  readonly #entries: (PendingPass | TracedSpan)[] = [];
  /** First entry that may have no sample yet, and times that those without one hold. */
  #firstPending = 0;
  #pendingTimes = 0;
  #phase: TracePhase = 'load';
  /** Behind the last row that went through the model. */
  #position = 0;
  #sampled = 0;
  #routing = new Map<number, Float32Array>();
  #statistics = new Map<string, Statistics>();
  #top: TracedPass['top'];
  /** The last timed pass of each phase, for {@link timelines}. */
  readonly #last = new Map<'prefill' | 'decode', PassTiming>();
  #failure: Recording['failure'];
  #recording: Recording | undefined;

  /** @throws AprError USAGE for steps that there are not */
  constructor({ level, steps, verbose = false, profile = false }: RecorderOptions) {
    this.level = level;
    this.#steps = steps === undefined ? undefined : parseTraceSteps(steps);
    this.#verbose = verbose;
    this.routingOnly = level !== 'payload';
    if (level === 'payload') this.wants = () => true;
    else if (level === 'layer' || profile) this.wants = (name) => name.endsWith('.ffn_routing');
  }

  onSpan(span: Span): void {
    const { name, start, end } = span;
    if (LOAD_SPANS.has(name)) this.#phase = 'load';
    else if (name === 'template' || name === 'tokenize' || name === 'warm_up') this.#phase = 'prompt';
    else if (name === 'prefill' || (name === 'record' && this.#phase !== 'decode')) this.#phase = 'prefill';
    if (name === 'sample') this.#sampled++;
    this.#entries.push({ kind: 'span', start, end, phase: this.#phase, position: this.#at(name), span });
    if (name === 'prefill') this.#phase = 'decode';
  }

  #at(name: Span['name']): number {
    return name === 'sample' || name === 'detokenize' || name === 'record' ? this.#position : 0;
  }

  onTap({ name, layer, shape, positions, values }: Tap): void {
    const [width, rows] = shape;
    // Products with experts have a row for each slot.
    const perToken = Math.max(1, Math.floor(rows / positions.length));
    const routing = name.endsWith('.ffn_routing');
    if (routing && layer !== undefined) this.#routing.set(layer, values);
    if (this.level !== 'payload') return;
    const from = this.#verbose ? 0 : (rows - perToken) * width;
    this.#statistics.set(name, statisticsOf(routing ? weightsOf(values, width, from) : values.subarray(from)));
    if (name === 'logits') this.#top = topOf(values.subarray((rows - 1) * width));
  }

  onPass(timing: PassTiming): void {
    if (this.#phase !== 'decode') this.#phase = 'prefill';
    this.#last.set(this.#phase, timing);
    const { record, positions, threads } = timing;
    this.#position = (positions[0] ?? 0) + record.rows;
    const entry: PendingPass = {
      kind: 'pass',
      start: timing.start,
      end: timing.end,
      phase: this.#phase,
      timing,
      sample: undefined,
      routing: this.#routing,
      statistics: this.#statistics,
      top: this.#top,
    };
    if (this.#routing.size > 0) this.#routing = new Map();
    if (this.#statistics.size > 0) this.#statistics = new Map();
    this.#top = undefined;
    this.#entries.push(entry);
    // Later, when nobody waits for the next token, unless that would hold too much.
    this.#pendingTimes += threads.length * timing.steps.length;
    if (this.#pendingTimes > MOST_PENDING_TIMES) this.#samplePending();
    // What the trace itself has cost belongs to the pass too.
    entry.end = performance.now();
  }

  /** Puts the times of the passes since the last call on one line each. */
  #samplePending(): void {
    for (; this.#firstPending < this.#entries.length; this.#firstPending++) {
      const entry = this.#entries[this.#firstPending]!;
      if (entry.kind !== 'pass' || entry.timing === undefined) continue;
      entry.sample = samplePass(entry.timing, entry.phase, this.level === 'chrome');
      entry.timing = undefined;
    }
    this.#pendingTimes = 0;
  }

  /** The run failed here; {@link finish} follows all the same. */
  fail(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.#failure = { at: performance.now(), phase: this.#phase, message };
  }

  /** The run has ended: nothing is recorded any more, and the documents can be written. */
  finish(run: TraceRun): Recording {
    if (this.#recording !== undefined) return this.#recording;
    const finished = performance.now();
    this.#samplePending();
    // Every pass has its sample now.
    const entries = ([...this.#entries] as TraceEntry[]).sort((a, b) => a.start - b.start || b.end - a.end);
    const samples = entries.flatMap((entry) => (entry.kind === 'pass' ? [entry.sample] : []));
    const counters = countPasses(samples, this.#sampled);
    const { outcome } = run;
    const warnings = outcome === undefined ? [] : violations(counters, { ...outcome, layers: run.model.num_layers });
    const astray = samples.filter(({ aligned }) => !aligned).length;
    if (astray > 0) {
      warnings.push(
        `threads' clocks: times of ${astray} of ${samples.length} passes lie outside of the pass they measure`,
      );
    }
    const broken = notFinite(entries);
    if (broken !== undefined) warnings.push(broken);
    this.#recording = {
      level: this.level,
      steps: this.#steps,
      verbose: this.#verbose,
      run,
      origin: this.#origin,
      finished,
      entries,
      counters,
      warnings,
      failure: this.#failure,
    };
    return this.#recording;
  }

  /** The file of this level, piece by piece. */
  text(recording: Recording): Iterable<string> {
    return this.level === 'chrome' ? chromeText(recording) : documentText(recording);
  }

  summary(recording: Recording): Summary {
    return summaryOf(recording);
  }

  /** The last pass, with what was seen of its activations. */
  lastPass({ entries }: Recording): TracedPass | undefined {
    return entries.findLast((entry) => entry.kind === 'pass');
  }

  /** What every thread did in the last pass of each phase. */
  timelines(): Timeline[] {
    return [...this.#last].map(([phase, timing]) => timelineOf(timing, phase));
  }

  profile(recording: Recording): Profile {
    return profileOf(recording);
  }
}

/** The first activation with values that are not finite, as a sentence. */
function notFinite(entries: readonly TraceEntry[]): string | undefined {
  for (const entry of entries) {
    if (entry.kind !== 'pass') continue;
    for (const [name, { nan_count, inf_count, count }] of entry.statistics) {
      if (nan_count + inf_count === 0) continue;
      const { position, record } = entry.sample;
      const where = `${name}, pass over ${record.rows} ${record.rows === 1 ? 'row' : 'rows'} from position ${position}`;
      return `values that are not finite, first in ${where}: ${nan_count} NaN and ${inf_count} infinite of ${count}`;
    }
  }
  return undefined;
}

/** The weights alone: beside them stand ids, whose bits are no floats. */
function weightsOf(values: Float32Array, width: number, from: number): number[] {
  const weights: number[] = [];
  for (let row = from; row < values.length; row += width) {
    weights.push(...values.subarray(row + width / 2, row + width));
  }
  return weights;
}

function topOf(logits: Float32Array): { token_id: number; logit: number }[] {
  const top: { token_id: number; logit: number }[] = [];
  for (let id = 0; id < logits.length; id++) {
    const logit = logits[id]!;
    if (top.length === TOP_LOGITS && !(logit > top[TOP_LOGITS - 1]!.logit)) continue;
    const place = top.findIndex((entry) => logit > entry.logit);
    top.splice(place === -1 ? top.length : place, 0, { token_id: id, logit });
    if (top.length > TOP_LOGITS) top.pop();
  }
  return top;
}
