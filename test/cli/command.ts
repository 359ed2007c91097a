/** Spawns the compiled command. */

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const MAIN = fileURLToPath(new URL('../../cli/main.js', import.meta.url));

export interface Result {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export function start(words: readonly string[], options: SpawnOptions = {}): ChildProcess {
  return spawn(process.execPath, [MAIN, ...words], { stdio: ['ignore', 'pipe', 'pipe'], ...options });
}

/** Runs to the end; `input` goes to standard input, which is empty otherwise. */
export function apr(words: readonly string[], input?: string | Uint8Array): Promise<Result> {
  const child = start(words, { stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] });
  child.stdin?.end(input);
  return finished(child);
}

export function finished(child: ChildProcess): Promise<Result> {
  const chunks = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  child.stdout?.on('data', (chunk: Buffer) => chunks.stdout.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => chunks.stderr.push(chunk));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status, signal) => {
      const text = (name: 'stdout' | 'stderr'): string => Buffer.concat(chunks[name]).toString('utf8');
      resolve({ status, signal, stdout: text('stdout'), stderr: text('stderr') });
    });
  });
}
