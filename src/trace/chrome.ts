/**
 * A trace as chrome://tracing and Perfetto load it: the JSON object form of the Trace Event Format, complete events
 * (`ph` X) in microseconds. Row 0 is the host, below it a row for each kernel thread.
 */

import type { TraceStep } from './events.ts';
import { partsOf } from './parts.ts';
import type { Recording, TracedPass } from './recorder.ts';

const PROCESS = 1;
const HOST = 0;

interface ChromeEvent {
  readonly name: string;
  readonly cat: string;
  readonly ph: 'X' | 'M' | 'i';
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur?: number;
  readonly s?: 'p';
  readonly args?: Readonly<Record<string, unknown>>;
}

/** Pieces of the document. */
export function* chromeText(recording: Recording): Generator<string> {
  yield '{"displayTimeUnit":"ms","otherData":';
  yield JSON.stringify({ tool: 'apr', timing: 'measured', ...recording.run.model, threads: recording.run.threads });
  yield ',"traceEvents":[';
  let first = true;
  for (const event of chromeEvents(recording)) {
    yield `${first ? '' : ','}\n${JSON.stringify(event)}`;
    first = false;
  }
  yield '\n]}\n';
}

export function* chromeEvents(recording: Recording): Generator<ChromeEvent> {
  const { entries, origin, run, steps, warnings, failure, finished } = recording;
  const names = ['host', ...Array.from({ length: run.threads }, (_, thread) => `kernel thread ${thread}`)];
  const meta = { cat: '__metadata', ph: 'M', pid: PROCESS, ts: 0 } as const;
  yield { name: 'process_name', ...meta, tid: HOST, args: { name: `apr ${run.model.name}` } };
  for (const [tid, name] of names.entries()) {
    yield { name: 'thread_name', ...meta, tid, args: { name } };
    yield { name: 'thread_sort_index', ...meta, tid, args: { sort_index: tid } };
  }
  const at = (ms: number): number => Math.round((ms - origin) * 1e6) / 1000;
  const slice = (
    tid: number,
    name: string,
    cat: string,
    start: number,
    end: number,
    args?: ChromeEvent['args'],
  ): ChromeEvent => ({
    name,
    cat,
    ph: 'X',
    pid: PROCESS,
    tid,
    ts: at(start),
    dur: Math.round((at(end) - at(start)) * 1000) / 1000,
    ...(args === undefined ? {} : { args }),
  });
  const shown = (step: TraceStep): boolean => steps === undefined || steps.has(step);
  for (const entry of entries) {
    if (entry.kind === 'span') {
      const { name, start, end, details } = entry.span;
      const cat = entry.phase === 'load' ? 'load' : name;
      yield slice(HOST, name, cat, start, end, details);
      continue;
    }
    yield* hostSlices(entry, slice);
    yield* threadSlices(entry, slice, shown);
  }
  const instant = (name: string, ms: number): ChromeEvent => ({
    name,
    cat: 'warning',
    ph: 'i',
    pid: PROCESS,
    tid: HOST,
    ts: at(ms),
    s: 'p',
  });
  if (failure !== undefined) yield instant(`failed: ${failure.message}`, failure.at);
  for (const warning of warnings) yield instant(warning, finished);
}

type Slice = (
  tid: number,
  name: string,
  cat: string,
  start: number,
  end: number,
  args?: ChromeEvent['args'],
) => ChromeEvent;

function* hostSlices({ sample, phase, end }: TracedPass, slice: Slice): Generator<ChromeEvent> {
  const { record, position, start, taken, returned } = sample;
  const args = { position, rows: record.rows, outputs: record.outputs };
  const what = phase === 'decode' ? 'decode pass' : 'prefill pass';
  yield slice(HOST, what, phase, start, end, args);
  yield slice(HOST, 'hand over', 'host', start, taken);
  yield slice(HOST, 'threads compute', 'host', taken, returned);
  if (end > returned) yield slice(HOST, 'observe', 'host', returned, end);
}

function* threadSlices(
  { sample }: TracedPass,
  slice: Slice,
  shown: (step: TraceStep) => boolean,
): Generator<ChromeEvent> {
  const parts = partsOf(sample.record);
  for (const [index, { woke, begin, end }] of (sample.threads ?? []).entries()) {
    const tid = index + 1;
    let last = woke;
    for (const [step, { command, kernel, weight }] of sample.steps.entries()) {
      const [from, to] = [begin[step]!, end[step]!];
      if (Number.isNaN(from) || Number.isNaN(to)) continue;
      if (from > last) yield slice(tid, 'barrier', 'wait', last, from);
      last = to;
      const part = parts[command];
      if (part !== undefined && !shown(part.step)) continue;
      const where = part?.layer === undefined ? part?.part : 'layer';
      yield slice(tid, kernel, where ?? 'layer', from, to, {
        ...(part === undefined ? {} : { tensor: part.name, part: part.part }),
        ...(part?.layer === undefined ? {} : { layer: part.layer }),
        ...(weight === undefined ? {} : { type: weight.type }),
      });
    }
    const finished = sample.done.at(-1) ?? last;
    if (finished > last) yield slice(tid, 'barrier', 'wait', last, finished);
  }
}
