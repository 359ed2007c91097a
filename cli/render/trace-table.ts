/** Tables of a measured run. */

import type { PhaseProfile, Profile, ReadBandwidth, TraceCounters, TracedPass, TraceSummary } from '../../src/index.ts';
import { columns } from './table.ts';
import { showValue } from './units.ts';

type PhaseSummary = TraceSummary['load'];

/** Load, prefill and decode, each with its parts. */
export function phaseTable(summary: TraceSummary, counters: TraceCounters): string {
  const { load, prefill, decode, other_us, wall_us } = summary;
  const lines = [load, prefill, decode].flatMap((phase) => phaseLines(phase));
  lines.push(row('other', other_us, wall_us, 'of the whole run: template, tokenizer, output'));
  const { positions, passes, head_runs, attention_runs } = counters;
  lines.push(
    `${positions} positions in ${passes} passes, ${head_runs} runs of the head, ${attention_runs} of attention`,
    '',
  );
  return lines.join('\n');
}

function phaseLines(phase: PhaseSummary): string[] {
  const { total_us, tokens, tok_per_sec, parts, other_us } = phase;
  const rate = tokens === 0 ? '' : `${tokens} ${tokens === 1 ? 'token' : 'tokens'}, ${tok_per_sec.toFixed(1)} tok/s`;
  return [
    row(phase.phase, total_us, total_us, rate),
    ...parts.map(({ name, us }) => row(`  ${partLabel(name)}`, us, total_us)),
    ...(total_us === 0 ? [] : [row('  other', other_us, total_us)]),
  ];
}

function row(name: string, us: number, whole: number, remark = ''): string {
  const share = whole > 0 ? `${((100 * us) / whole).toFixed(1)} %` : '';
  return `${name.padEnd(18)}${milliseconds(us).padStart(14)}${share.padStart(9)}  ${remark}`.trimEnd();
}

const LABELS: Readonly<Record<string, string>> = {
  record: 'list commands',
  hand_over: 'prepare and wake',
  hand_back: 'wake host',
  observer: 'this trace',
};

/** What the host does around a pass, in words; everything else has the field's name. */
export function partLabel(name: string): string {
  return LABELS[name] ?? name;
}

/** Time of each block, over all passes. */
export function layerTable({ layers }: TraceSummary): string {
  const columns = ['layer', 'prefill attention', 'prefill FFN', 'decode attention', 'decode FFN'];
  const lines = [columns.map((name, i) => name.padStart(i === 0 ? 5 : 19)).join('')];
  const line = (name: string, values: readonly number[]): string =>
    name.padStart(5) + values.map((us) => milliseconds(us).padStart(19)).join('');
  const sums = [0, 0, 0, 0];
  for (const layer of layers) {
    const { prefill_attention_us, prefill_ffn_us, decode_attention_us, decode_ffn_us } = layer;
    const values = [prefill_attention_us, prefill_ffn_us, decode_attention_us, decode_ffn_us];
    for (const [i, us] of values.entries()) sums[i] = sums[i]! + us;
    lines.push(line(`${layer.layer}`, values));
  }
  lines.push(line('all', sums), '');
  return lines.join('\n');
}

/** What goes from block to block, without `all`; the file has every activation of every pass. */
const STREAM = /^(embd|embd_scaled|output_norm|logits|blk\.\d+\.ffn_residual)$/;

/** Statistics of the last pass's activations, and the tokens that are most probable behind it. */
export function payloadTable(pass: TracedPass | undefined, all: boolean): string {
  if (pass === undefined) return '';
  const shown = [...pass.statistics].filter(([name]) => all || STREAM.test(name));
  const number = (value: number | null): string => (value === null ? '-' : showValue(value));
  const rows = shown.map(([name, { mean, std, min, max, l2, nan_count, inf_count, zero_count }]) => [
    ...[name, number(mean), number(std), number(min), number(max), number(l2)],
    ...[String(nan_count), String(inf_count), String(zero_count)],
  ]);
  const head = ['activation', 'mean', 'std', 'min', 'max', 'L2', 'NaN', 'Inf', 'zero'];
  const best = (pass.top ?? []).map(({ token_id, logit }) => `${token_id} (${showValue(logit)})`);
  return [
    `last pass, position ${pass.sample.position + pass.sample.record.rows - 1}`,
    ...columns([head, ...rows], [1, 2, 3, 4, 5, 6, 7, 8]),
    ...(best.length === 0 ? [] : [`most probable tokens (logits): ${best.join(', ')}`]),
    '',
  ].join('\n');
}

/** Operations by tensor type, and the threads. */
export function profileTable(profile: Profile, bandwidth: ReadBandwidth | undefined): string {
  const limit = bandwidth?.gb_per_sec;
  const lines: string[] = [];
  for (const phase of ['prefill', 'decode'] as const) {
    const { total_us, tokens, tok_per_sec, other_us, operations, gb_per_sec } = profile[phase];
    if (total_us === 0) continue;
    lines.push(
      `${phase}: ${milliseconds(total_us).trim()}, ${tokens} tokens, ${tok_per_sec.toFixed(1)} tok/s, ` +
        `${gb_per_sec.toFixed(2)} GB/s of weights${ofLimit(gb_per_sec, limit)}`,
      `${'  operation'.padEnd(28)}${'calls'.padStart(8)}${'total'.padStart(14)}${'share'.padStart(9)}` +
        `${'mean'.padStart(13)}${'GB/s'.padStart(9)}${limit === undefined ? '' : 'of read'.padStart(9)}`,
      ...operations.map((operation) => operationLine(operation, limit)),
      `${'  other'.padEnd(36)}${milliseconds(other_us).padStart(14)}${percent(other_us / total_us).padStart(9)}`,
    );
  }
  for (const { thread, busy_us, waiting_us } of profile.threads) {
    const busy = percent(busy_us / (busy_us + waiting_us));
    lines.push(
      `thread ${thread}: busy ${milliseconds(busy_us).trim()}, waiting ${milliseconds(waiting_us).trim()} (${busy} busy)`,
    );
  }
  lines.push(
    bandwidth === undefined
      ? 'read bandwidth: not measured, since there is too little free memory for it'
      : `read bandwidth: ${bandwidth.gb_per_sec.toFixed(1)} GB/s, measured with ${bandwidth.threads} ` +
          `${bandwidth.threads === 1 ? 'thread' : 'threads'} over ${(bandwidth.bytes / 2 ** 20).toFixed(0)} MiB`,
    '',
  );
  return lines.join('\n');
}

function operationLine(operation: PhaseProfile['operations'][number], limit: number | undefined): string {
  const { calls, total_us, mean_us, share, gb_per_sec } = operation;
  const name = `  ${partLabel(operation.operation)}${operation.type === null ? '' : ` ${operation.type}`}`;
  const rate = gb_per_sec === null ? '' : gb_per_sec.toFixed(2);
  const read = gb_per_sec === null || limit === undefined ? '' : percent(gb_per_sec / limit);
  return (
    `${name.padEnd(28)}${`${calls}`.padStart(8)}${milliseconds(total_us).padStart(14)}${percent(share).padStart(9)}` +
    `${`${mean_us.toFixed(1)} us`.padStart(13)}${rate.padStart(9)}${read.padStart(9)}`
  ).trimEnd();
}

function ofLimit(rate: number, limit: number | undefined): string {
  return limit === undefined ? '' : ` (${percent(rate / limit)} of what can be read)`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function milliseconds(us: number): string {
  return `${(us / 1000).toFixed(3)} ms`;
}
