/** The file of a trace: one JSON document, an event a line. */

import type { TraceEvent, TraceStep } from './events.ts';
import { type CommandPart, partsOf } from './parts.ts';
import type { Recording, TracedPass, TracedSpan } from './recorder.ts';
import { type CommandTime, commandTimes } from './sample.ts';
import { summaryOf } from './summary.ts';

const STEP_OF_SPAN: Readonly<Record<TracedSpan['span']['name'], TraceStep>> = {
  header: 'LOAD',
  tokenizer: 'LOAD',
  chat_template: 'LOAD',
  contract: 'LOAD',
  kernels: 'LOAD',
  weights: 'LOAD',
  self_check: 'LOAD',
  load: 'LOAD',
  template: 'TEMPLATE',
  tokenize: 'TOKENIZE',
  // The model as a whole stands for what no step names.
  warm_up: 'TRANSFORMER_BLOCK',
  prefill: 'TRANSFORMER_BLOCK',
  record: 'TRANSFORMER_BLOCK',
  sample: 'SAMPLE',
  detokenize: 'DECODE',
};

type EventBody = Omit<TraceEvent, 'id' | 'start_us' | 'duration_us'> & {
  /** `performance.now()` */
  readonly start: number;
  readonly end: number;
};

/** Pieces of the document. */
export function* documentText(recording: Recording): Generator<string> {
  const { run, origin, warnings, failure } = recording;
  const { load, prefill, decode, other_us } = summaryOf(recording);
  const head = {
    version: '1.0',
    timestamp: new Date(performance.timeOrigin + origin).toISOString(),
    model: run.model,
    run: {
      prompt_tokens: run.outcome?.promptTokens ?? prefill.tokens,
      generated_tokens: run.outcome?.generatedTokens ?? recording.counters.sampled,
      threads: run.threads,
      kernel: run.kernel,
    },
    totals: {
      load_us: round(load.total_us),
      prefill_us: round(prefill.total_us),
      decode_us: round(decode.total_us),
      other_us: round(other_us),
    },
  };
  yield `${JSON.stringify(head).slice(0, -1)},"events":[`;
  let first = true;
  for (const event of eventsOf(recording)) {
    yield `${first ? '' : ','}\n${JSON.stringify(event)}`;
    first = false;
  }
  yield `\n],"error_count":${failure === undefined ? 0 : 1},"warning_count":${warnings.length}}\n`;
}

/** The events that the recording's level and steps ask for. */
export function* eventsOf(recording: Recording): Generator<TraceEvent> {
  const { origin, steps, finished, failure, warnings } = recording;
  let id = 0;
  // The number that the next event will have, should it be one that was asked for.
  const within = new Map<string, number>();
  const make = ({ start, end, details, ...body }: EventBody, container?: string, inside?: string) => {
    if (steps !== undefined && !steps.has(body.step)) return undefined;
    id++;
    if (container !== undefined) within.set(container, id);
    const outer = inside === undefined ? undefined : within.get(inside);
    const all = { ...(outer === undefined ? {} : { within: outer }), ...details };
    const { type, step, phase, position, layer, name, ...rest } = body;
    const event: TraceEvent = {
      id,
      type,
      step,
      phase,
      position,
      ...(layer === undefined ? {} : { layer }),
      ...(name === undefined ? {} : { name }),
      start_us: round((start - origin) * 1000),
      duration_us: round((end - start) * 1000),
      ...rest,
      ...(Object.keys(all).length === 0 ? {} : { details: all }),
    };
    return event;
  };
  for (const entry of recording.entries) {
    if (entry.kind === 'span') {
      const { name, start, end, details } = entry.span;
      const { phase, position } = entry;
      const outer = name === 'load' || name === 'prefill' ? name : undefined;
      const body: EventBody = {
        type: 'TaskStateExited',
        step: STEP_OF_SPAN[name],
        phase,
        position,
        name,
        start,
        end,
        ...(details === undefined ? {} : { details }),
      };
      const inside = outer === undefined && (phase === 'load' || phase === 'prefill') ? phase : undefined;
      const event = make(body, outer, inside);
      if (event !== undefined) yield event;
      continue;
    }
    const inPhase = entry.phase === 'prefill' ? 'prefill' : undefined;
    for (const { body, container, inside } of passEvents(recording, entry)) {
      const event = make(body, container, inside ?? inPhase);
      if (event !== undefined) yield event;
    }
  }
  const moment = (type: TraceEvent['type'], phase: TraceEvent['phase'], at: number, message: string): TraceEvent => {
    id++;
    const start_us = round((at - origin) * 1000);
    return { id, type, step: 'DECODE', phase, position: 0, start_us, duration_us: 0, details: { message } };
  };
  if (failure !== undefined) yield moment('ExecutionFailed', failure.phase, failure.at, failure.message);
  for (const warning of warnings) yield moment('Warning', 'decode', finished, warning);
}

interface PassEvent {
  readonly body: EventBody;
  /** Name under which others can be inside of it. */
  readonly container?: string;
  readonly inside?: string;
}

function* passEvents(recording: Recording, pass: TracedPass): Generator<PassEvent> {
  const { sample, phase } = pass;
  const { record, position, start, taken, returned } = sample;
  const parts = partsOf(record);
  const times = commandTimes(sample).filter(({ command }) => parts[command] !== undefined);
  const common = { type: 'TaskStateExited', phase, position } as const;
  const host = (name: string, from: number, to: number): PassEvent => ({
    body: { ...common, step: 'TRANSFORMER_BLOCK', name, start: from, end: to, details: { rows: record.rows } },
  });
  yield host('hand_over', start, taken);
  const layered = recording.level !== 'basic';
  for (const region of regionsOf(times, parts)) {
    const { first, last } = region;
    const [from, to] = [region.times[0]!.start, region.times.at(-1)!.end];
    const shapes = {
      ...(first.input === undefined ? {} : { input_shape: first.input }),
      ...(last.output === undefined ? {} : { output_shape: last.output }),
    };
    if (region.kind !== 'blocks') {
      const commands = layered ? region.times : [];
      if (region.kind === 'embed' || !layered) {
        const step = region.kind === 'embed' ? 'EMBED' : 'LM_HEAD';
        const event = { ...common, step, name: last.name, start: from, end: to, ...shapes } as const;
        yield { body: { ...event, ...observed(recording, pass, last.name) } };
      } else for (const time of commands) yield { body: commandBody(recording, pass, time, parts[time.command]!) };
      continue;
    }
    yield {
      body: { ...common, step: 'TRANSFORMER_BLOCK', name: 'blocks', start: from, end: to, ...shapes },
      container: 'blocks',
    };
    if (!layered) continue;
    for (const block of blocksOf(region.times, parts)) {
      const { layer } = parts[block[0]!.command]!;
      const [input, output] = [parts[block[0]!.command]!.input, parts[block.at(-1)!.command]!.output];
      const body: EventBody = {
        ...common,
        step: 'TRANSFORMER_BLOCK',
        ...(layer === undefined ? {} : { layer }),
        name: `blk.${layer}`,
        start: block[0]!.start,
        end: block.at(-1)!.end,
        ...(input === undefined ? {} : { input_shape: input }),
        ...(output === undefined ? {} : { output_shape: output }),
      };
      yield { body, container: 'block', inside: 'blocks' };
      for (const time of block) {
        yield { body: commandBody(recording, pass, time, parts[time.command]!), inside: 'block' };
      }
    }
  }
  const last = times.at(-1)?.end ?? taken;
  yield host('hand_back', last, returned);
  yield host('observer', returned, pass.end);
}

interface Region {
  readonly kind: 'embed' | 'blocks' | 'head';
  readonly times: CommandTime[];
  readonly first: CommandPart;
  last: CommandPart;
}

/** Before, in and behind the blocks. */
function regionsOf(times: readonly CommandTime[], parts: readonly CommandPart[]): Region[] {
  const regions: Region[] = [];
  for (const time of times) {
    const part = parts[time.command]!;
    const kind = part.layer !== undefined ? 'blocks' : part.part === 'embed' ? 'embed' : 'head';
    const region = regions.at(-1);
    if (region?.kind !== kind) regions.push({ kind, times: [time], first: part, last: part });
    else {
      region.times.push(time);
      region.last = part;
    }
  }
  return regions;
}

function blocksOf(times: readonly CommandTime[], parts: readonly CommandPart[]): CommandTime[][] {
  const blocks: CommandTime[][] = [];
  for (const time of times) {
    const before = blocks.at(-1);
    if (before !== undefined && parts[before[0]!.command]!.layer === parts[time.command]!.layer) before.push(time);
    else blocks.push([time]);
  }
  return blocks;
}

function commandBody(recording: Recording, pass: TracedPass, time: CommandTime, part: CommandPart): EventBody {
  const { sample, phase } = pass;
  const { start, end } = time;
  const command = sample.record.commands[time.command]!;
  const weight = sample.steps.find((step) => step.command === time.command && step.weight !== undefined)?.weight;
  return {
    type: 'TaskStateExited',
    step: part.step,
    phase,
    position: sample.position,
    ...(part.layer === undefined ? {} : { layer: part.layer }),
    name: part.name,
    start,
    end,
    ...(part.input === undefined ? {} : { input_shape: part.input }),
    ...(part.output === undefined ? {} : { output_shape: part.output }),
    ...observed(recording, pass, part.name, {
      part: part.part,
      op: command.op,
      ...('weight' in command ? { weight: command.weight.name } : {}),
      ...(weight === undefined ? {} : { weight_type: weight.type }),
      ...(command.op === 'topK' ? routingOf(recording, pass, part.layer, command.slots) : {}),
    }),
  };
}

/** What was seen of the activation itself. */
function observed(
  { level }: Recording,
  pass: TracedPass,
  name: string,
  details: Readonly<Record<string, unknown>> = {},
): Pick<EventBody, 'stats' | 'details'> {
  const stats = pass.statistics.get(name);
  const top = level === 'payload' && name === 'logits' && pass.top !== undefined ? { top_logits: pass.top } : {};
  const all = { ...details, ...top };
  return { ...(stats === undefined ? {} : { stats }), ...(Object.keys(all).length === 0 ? {} : { details: all }) };
}

/** Experts that a token's row chose, and their weights: of the last token, or of all. */
function routingOf({ verbose }: Recording, pass: TracedPass, layer: number | undefined, slots: number): object {
  const values = layer === undefined ? undefined : pass.routing.get(layer);
  if (values === undefined) return {};
  const ids = new Int32Array(values.buffer, values.byteOffset, values.length);
  const rows = values.length / (2 * slots);
  const row = (index: number) => ({
    experts: [...ids.subarray(index * 2 * slots, index * 2 * slots + slots)],
    weights: [...values.subarray(index * 2 * slots + slots, (index + 1) * 2 * slots)],
  });
  return verbose ? { rows: Array.from({ length: rows }, (_, index) => row(index)) } : row(rows - 1);
}

/** To nanoseconds, which is what clocks give. */
export function round(us: number): number {
  return Math.round(us * 1000) / 1000;
}
