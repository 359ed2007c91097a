/** A line on a terminal that says how far a download is. */

import type { PullProgress } from '../../src/hub/index.ts';
import type { OutputStream } from '../environment.ts';
import { visibleLine } from './terminal.ts';
import { showBytes } from './units.ts';

const UPDATE_INTERVAL_MS = 100;
/** The rate is that of the last seconds: a download that has slowed down shows it. */
const RATE_WINDOW_MS = 5_000;
const BAR_CELLS = 20;

export interface DownloadLine {
  readonly update: (progress: PullProgress) => void;
  clear(): void;
}

/** @param clock milliseconds */
export function showDownload(stderr: OutputStream, clock: () => number = () => performance.now()): DownloadLine {
  const samples: { readonly at: number; readonly bytes: number }[] = [];
  let next = 0;
  let shown = false;
  return {
    update: (progress) => {
      const at = clock();
      const { bytes, total } = progress;
      if (at < next && bytes !== total) return;
      next = at + UPDATE_INTERVAL_MS;
      // A server that starts over takes the bytes back.
      if (bytes < (samples.at(-1)?.bytes ?? 0)) samples.length = 0;
      samples.push({ at, bytes });
      while (samples.length > 2 && at - samples[0]!.at > RATE_WINDOW_MS) samples.shift();
      const first = samples[0]!;
      const rate = at > first.at ? (1000 * (bytes - first.bytes)) / (at - first.at) : undefined;
      shown = true;
      stderr.write(`\r\x1b[2K${downloadLine(progress, rate, (stderr.columns || 80) - 1)}`);
    },
    clear: () => {
      if (shown) stderr.write('\r\x1b[2K');
      shown = false;
    },
  };
}

/** @param rate bytes a second; undefined while it is not known */
export function downloadLine(progress: PullProgress, rate: number | undefined, width: number): string {
  const { file, number, of, bytes, total } = progress;
  const share = total === undefined || total === 0 ? undefined : bytes / total;
  const cells = Math.round((share ?? 0) * BAR_CELLS);
  const facts = [
    ...(share === undefined ? [] : [`${Math.floor(100 * share)} %`]),
    total === undefined ? showBytes(bytes) : `${showBytes(bytes)} of ${showBytes(total)}`,
    ...(rate === undefined ? [] : [`${showBytes(Math.round(rate))}/s`]),
    ...(rate === undefined || total === undefined || rate < 1 || bytes >= total
      ? []
      : [`${showDuration((total - bytes) / rate)} left`]),
  ].join('  ');
  const bar = share === undefined ? '' : `${'█'.repeat(cells)}${'░'.repeat(BAR_CELLS - cells)}  `;
  const name = visibleLine(file.slice(file.lastIndexOf('/') + 1)) + (of > 1 ? ` (${number} of ${of})` : '');
  for (const line of [`${name}  ${bar}${facts}`, `${bar}${facts}`, facts]) if (line.length <= width) return line;
  return facts.slice(0, Math.max(0, width));
}

/** `45 s`, `3 min 20 s`, `2 h 5 min`. */
function showDuration(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}
