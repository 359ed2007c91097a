/** What was measured, and the tables that show it. */

import type { SingleRow } from './single.ts';
import { type Spread, showSpread } from './statistics.ts';

/** What decoding is to reach of llama.cpp's rate. */
const REACH = { simd: 0.7, relaxed: 0.85, types: 0.7 } as const;
/** How often the demo is started. */
export const START_RUNS = 5;

export interface SpeedRow {
  readonly model: string;
  readonly node: string;
  readonly threads: number;
  readonly kernel: string;
  readonly decode: Spread;
  readonly prefill: Spread;
  readonly peerDecode?: Spread;
  readonly peerPrefill?: Spread;
  readonly loadMs: Spread;
}

export interface MemoryRow {
  readonly node: string;
  readonly threads: number;
  readonly peakRssBytes: number;
  readonly limitBytes: number;
  readonly peerPeakRssBytes?: number;
}

export interface StartRow {
  readonly node: string;
  readonly firstTokenMs: Spread;
}

export interface SinglesRow extends SingleRow {
  readonly node: string;
  readonly threads: number;
}

export interface Head {
  apr: string;
  nodeLlamaCpp?: string;
  machine: { cpu: string; cores: number; memoryBytes: number; loadAverage: number };
  model: string;
  fileBytes: number;
  prefill: number;
  decode: number;
  rounds: number;
}

export interface Rows {
  speed?: SpeedRow[];
  memory?: MemoryRow[];
  start?: StartRow[];
  singles?: SinglesRow[];
}

export function render(head: Head, rows: Rows): string {
  const { machine } = head;
  const peer = head.nodeLlamaCpp === undefined ? 'no peer' : `node-llama-cpp ${head.nodeLlamaCpp} on the CPU`;
  const lines = [
    `apr ${head.apr}, ${peer}; ${machine.cpu}, ${machine.cores} cores, ${(machine.memoryBytes / 2 ** 30).toFixed(0)} GiB; load average at the start ${machine.loadAverage.toFixed(1)}`,
  ];
  if (head.fileBytes > 0) {
    const size = `${(head.fileBytes / 1e6).toFixed(0)} MB`;
    lines.push(
      `${head.model} (${size}), prefill of ${head.prefill}, ${head.decode} decode passes, median (least–most) of ${head.rounds}`,
    );
  }
  if (rows.speed) {
    lines.push(
      '',
      '| model | Node | threads | kernel | decode tok/s: ours | theirs | ratio | prefill tok/s: ours | theirs | ratio | load s |',
    );
    lines.push('|---|---|---|---|---|---|---|---|---|---|---|');
    for (const row of rows.speed) {
      const pair = (ours: Spread, theirs: Spread | undefined): string =>
        theirs === undefined
          ? `${showSpread(ours, 2)} | – | –`
          : `${showSpread(ours, 2)} | ${showSpread(theirs, 2)} | ${((100 * ours.median) / theirs.median).toFixed(0)} %`;
      const { model, node, threads, kernel, decode, peerDecode, prefill, peerPrefill, loadMs } = row;
      const reach = model !== head.model ? REACH.types : REACH[kernel === 'relaxed' ? 'relaxed' : 'simd'];
      const short = peerDecode !== undefined && decode.median / peerDecode.median < reach ? ' **short**' : '';
      lines.push(
        `| ${model}${short} | ${node} | ${threads} | ${kernel} | ${pair(decode, peerDecode)} | ${pair(prefill, peerPrefill)} | ${(loadMs.median / 1000).toFixed(2)} |`,
      );
    }
  }
  if (rows.memory) {
    lines.push(
      '',
      '| Node | threads | peak memory MB | limit MB (1.06 × file + KV cache + 150) | theirs MB |',
      '|---|---|---|---|---|',
    );
    for (const { node, threads, peakRssBytes, limitBytes, peerPeakRssBytes } of rows.memory) {
      const over = peakRssBytes > limitBytes ? ' **over**' : '';
      const theirs = peerPeakRssBytes === undefined ? '–' : megabytes(peerPeakRssBytes);
      lines.push(`| ${node} | ${threads} | ${megabytes(peakRssBytes)}${over} | ${megabytes(limitBytes)} | ${theirs} |`);
    }
  }
  if (rows.start) {
    lines.push('', `| Node | start of \`apr run demo\` to its first token, ms, of ${START_RUNS} |`, '|---|---|');
    for (const { node, firstTokenMs } of rows.start) lines.push(`| ${node} | ${showSpread(firstTokenMs, 0)} |`);
  }
  if (rows.singles) {
    lines.push('', '| what | Node | threads | figure | to reach | of |', '|---|---|---|---|---|---|');
    for (const { title, node, threads, figure, reach, lessIsBetter, detail } of rows.singles) {
      const short = (lessIsBetter ? figure > reach : figure < reach) ? ' **short**' : '';
      const bar = `${lessIsBetter ? '≤' : '≥'} ${reach}`;
      lines.push(`| ${title} | ${node} | ${threads} | ${figure.toFixed(2)}${short} | ${bar} | ${detail} |`);
    }
  }
  return `${lines.join('\n')}\n`;
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}
