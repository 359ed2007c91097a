/** The figures of `apr bench`. */

import { columns } from '../render/table.ts';
import { visibleLine } from '../render/terminal.ts';
import { showCount } from '../render/units.ts';
import type { Spread } from './subject.ts';

export interface Rates extends Spread {
  /** In the order of measuring. */
  readonly samples: readonly number[];
}

export interface BenchResult {
  readonly test: 'prefill' | 'decode';
  /** Length of the prompt, or passes of one token. */
  readonly tokens: number;
  readonly threads: number;
  readonly tok_per_sec: Rates;
  /** Of the other engine, and ours over its median; null without one. */
  readonly compared: Rates | null;
  readonly ratio: number | null;
}

export interface BenchDocument {
  readonly model: string;
  readonly name: string;
  readonly architecture: string;
  readonly parameters: number;
  /** Versions, and the build of the kernels. */
  readonly apr: string;
  readonly node: string;
  readonly kernel: string;
  readonly machine: { readonly cpu: string; readonly cores: number; readonly memory_bytes: number };
  /** When it began: other work makes every figure smaller. Null where the system does not tell. */
  readonly load_average: number | null;
  readonly iterations: number;
  readonly warmup: number;
  readonly compared_with: { readonly name: string; readonly version: string; readonly system: string } | null;
  readonly results: readonly BenchResult[];
}

/** A table in Markdown, with columns that line up in a terminal too. */
export function benchTable(document: BenchDocument): string {
  const { apr, node, kernel, machine, load_average, iterations, warmup, compared_with: peer, results } = document;
  const load = load_average === null ? '' : `, load average ${load_average.toFixed(1)}`;
  const against = peer === null ? '' : `, beside ${peer.name} ${peer.version} on the CPU`;
  const head = ['test', 'threads', 'tok/s', ...(peer === null ? [] : [`${peer.name} tok/s`, 'ratio'])];
  const rows = results.map(({ test, tokens, threads, tok_per_sec, compared, ratio }) => [
    `${test} ${tokens}`,
    String(threads),
    showSpread(tok_per_sec),
    ...(compared === null || ratio === null ? [] : [showSpread(compared), ratio.toFixed(2)]),
  ]);
  const aligned = columns([head, ...rows].map((row) => row.map((cell, i) => (i === 0 ? `| ${cell}` : `| ${cell}`))));
  const widths = head.map((_, i) => Math.max(...[head, ...rows].map((row) => row[i]!.length)));
  const bar = `|${widths.map((width) => '-'.repeat(width + 3)).join('|')}|`;
  const width = bar.length - 1;
  const [first, ...others] = aligned.map((line) => `${line.padEnd(width)}|`);
  return [
    `apr ${apr}, Node ${node}, ${kernel} kernels${against}; ${machine.cpu}, ${machine.cores} cores${load}`,
    visibleLine(
      `${document.model} (${document.architecture}, ${showCount(document.parameters)} parameters): ` +
        `median (least–most) of ${iterations}, after ${warmup} to warm up`,
    ),
    '',
    first,
    bar,
    ...others,
    '',
  ].join('\n');
}

/** Three digits at least: `8.12 (7.90–8.31)`, `128 (120–131)`. */
function showSpread({ median, least, most }: Spread): string {
  const digits = median >= 100 ? 0 : median >= 10 ? 1 : 2;
  return `${median.toFixed(digits)} (${least.toFixed(digits)}–${most.toFixed(digits)})`;
}
