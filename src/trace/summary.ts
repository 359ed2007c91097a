/** Where a run's time went: load, prefill and decode, each with its parts. Sums of measured stretches, no estimate. */

import type { Span } from '../graph/observer.ts';
import { PARTS, type Part, partsOf } from './parts.ts';
import type { Recording, TracedPass } from './recorder.ts';
import { commandTimes } from './sample.ts';

/**
 * `hand_over`: the host writes the pass's inputs, at a first pass of its shape the program too, and wakes the threads;
 * `hand_back`: it has the pass back; `observer`: what the trace itself takes.
 */
export type PartName = Part | Span['name'] | 'hand_over' | 'hand_back' | 'observer';

export interface PartTime {
  readonly name: PartName;
  readonly us: number;
}

export interface PhaseSummary {
  readonly phase: 'load' | 'prefill' | 'decode';
  readonly total_us: number;
  /** Prompt positions, or passes of decode; 0 for load. */
  readonly tokens: number;
  readonly tok_per_sec: number;
  readonly parts: readonly PartTime[];
  /** What is left of the total. */
  readonly other_us: number;
}

export interface LayerTime {
  readonly layer: number;
  readonly prefill_attention_us: number;
  readonly prefill_ffn_us: number;
  readonly decode_attention_us: number;
  readonly decode_ffn_us: number;
}

export interface Summary {
  readonly wall_us: number;
  readonly load: PhaseSummary;
  /** Runs before the measured one. */
  readonly warm_up_us: number;
  readonly prefill: PhaseSummary;
  readonly decode: PhaseSummary;
  /** Outside of the three: template, tokenizer, whoever consumed the answer. */
  readonly other_us: number;
  readonly layers: readonly LayerTime[];
}

const ORDER: readonly PartName[] = [
  'header',
  'tokenizer',
  'chat_template',
  'contract',
  'kernels',
  'weights',
  'self_check',
  'record',
  'hand_over',
  ...PARTS,
  'hand_back',
  'observer',
  'sample',
  'detokenize',
];

const ATTENTION: ReadonlySet<Part> = new Set(['attn_norm', 'qkv', 'qk_norm', 'rope', 'attention', 'attn_output']);

/** Time of one pass on each part, in milliseconds. */
export function passParts(
  { sample, end: observed }: TracedPass,
  onPart: (name: PartName, ms: number, layer: number | undefined) => void,
): void {
  const parts = partsOf(sample.record);
  onPart('hand_over', sample.taken - sample.start, undefined);
  let last = sample.taken;
  for (const { command, start, end } of commandTimes(sample)) {
    const part = parts[command];
    if (part !== undefined) onPart(part.part, end - start, part.layer);
    last = end;
  }
  onPart('hand_back', sample.returned - last, undefined);
  onPart('observer', observed - sample.returned, undefined);
}

export function summaryOf(recording: Recording): Summary {
  const { entries, run, origin, finished } = recording;
  const sums = { load: new Map<PartName, number>(), prefill: new Map(), decode: new Map() };
  const layers: { -readonly [key in keyof LayerTime]: number }[] = [];
  let [loadMs, prefillMs, warmUpMs, positions, decodePasses] = [0, 0, 0, 0, 0];
  for (const entry of entries) {
    const { phase } = entry;
    if (entry.kind === 'pass' && (phase === 'prefill' || phase === 'decode')) {
      if (phase === 'prefill') positions += entry.sample.record.rows;
      else decodePasses++;
      passParts(entry, (name, ms, layer) => {
        add(sums[phase], name, ms);
        if (layer === undefined) return;
        layers[layer] ??= {
          layer,
          prefill_attention_us: 0,
          prefill_ffn_us: 0,
          decode_attention_us: 0,
          decode_ffn_us: 0,
        };
        layers[layer][`${phase}_${ATTENTION.has(name as Part) ? 'attention' : 'ffn'}_us`] += ms * 1000;
      });
    } else if (entry.kind === 'span') {
      const { name } = entry.span;
      const ms = entry.end - entry.start;
      if (name === 'load') loadMs = ms;
      else if (name === 'prefill') prefillMs = ms;
      else if (name === 'warm_up') warmUpMs += ms;
      else if (phase !== 'prompt') add(sums[phase], name, ms);
    }
  }
  const { outcome } = run;
  const total = (parts: ReadonlyMap<PartName, number>): number => [...parts.values()].reduce((a, b) => a + b, 0);
  const phase = (name: PhaseSummary['phase'], ms: number, tokens: number): PhaseSummary => {
    const parts = ORDER.flatMap((part) => {
      const partMs = sums[name].get(part);
      return partMs === undefined || partMs === 0 ? [] : [{ name: part, us: partMs * 1000 }];
    });
    const rate = tokens > 0 && ms > 0 ? (tokens * 1000) / ms : 0;
    return {
      phase: name,
      total_us: ms * 1000,
      tokens,
      tok_per_sec: rate,
      parts,
      other_us: (ms - total(sums[name])) * 1000,
    };
  };
  // A run that failed on the way has no totals of its own: what was measured until then.
  const load = phase('load', loadMs === 0 ? total(sums.load) : loadMs, 0);
  const prefill = phase(
    'prefill',
    outcome?.prefillMs ?? (prefillMs === 0 ? total(sums.prefill) : prefillMs),
    positions,
  );
  const decode = phase('decode', outcome?.decodeMs ?? total(sums.decode), decodePasses);
  const wall = (finished - origin) * 1000;
  const other = wall - load.total_us - warmUpMs * 1000 - prefill.total_us - decode.total_us;
  return {
    wall_us: wall,
    load,
    warm_up_us: warmUpMs * 1000,
    prefill,
    decode,
    other_us: other,
    layers: layers.filter(Boolean),
  };
}

function add(map: Map<PartName, number>, name: PartName, ms: number): void {
  map.set(name, (map.get(name) ?? 0) + ms);
}
