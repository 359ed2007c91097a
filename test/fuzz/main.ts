/**
 * `npm run fuzz [-- --count N] [--first N] [--skip-contract]`: damages models and runs each as far as it goes. Fails when
 * one ends with anything but a typed error, ends the process, or takes more than a second of processor time per MB.
 */

import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Outcome } from './target.ts';

interface Done extends Outcome {
  readonly number: number;
  readonly seed: string;
  readonly size: number;
}
type Message = { readonly number: number; readonly began: string } | Done;

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '20000' },
    first: { type: 'string', default: '1' },
    'skip-contract': { type: 'boolean', default: false },
  },
});
const total = whole('--count', values.count);
const first = whole('--first', values.first);

/** A fresh process this often, so that what one file leaves behind does not add up. */
const BATCH = 500;
/** Nothing heard for this long is a hang, whatever else the machine is doing. */
const SILENCE_MS = 60_000;

const results: Record<string, number> = {};
const problems: string[] = [];
let tried = 0;
let crashes = 0;
let hangs = 0;
let slowest = { seconds: 0, number: 0 };
let largest = { bytes: 0, number: 0 };
const started = performance.now();

for (let next = first; next < first + total; ) next = await batch(next, Math.min(BATCH, first + total - next));

console.log(`mutations tried: ${tried} (numbers ${first} to ${first + total - 1}, ${elapsed()})`);
for (const [result, count] of Object.entries(results).sort((a, b) => b[1] - a[1])) console.log(`  ${result}: ${count}`);
console.log(`crashes: ${crashes}`);
console.log(`hangs: ${hangs}`);
console.log(`slowest: ${slowest.seconds.toFixed(2)} s of processor time (number ${slowest.number})`);
console.log(
  `largest allocation above file size while reading a header: ${(largest.bytes / 1e6).toFixed(1)} MB (number ${largest.number})`,
);
for (const problem of problems) console.log(`\n${problem}`);
process.exitCode = crashes + hangs > 0 ? 1 : 0;

/** Runs some in a process; returns the number to go on with. */
function batch(from: number, count: number): Promise<number> {
  const words = [from, count, values['skip-contract'] ? 1 : 0].map(String);
  const child = fork(fileURLToPath(new URL('./child.js', import.meta.url)), words, {
    execArgv: ['--max-old-space-size=1024'],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let current: { number: number; began: string } | undefined;
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(-4000);
  });
  let hung = false;
  let timer: NodeJS.Timeout | undefined;
  const watch = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      hung = true;
      child.kill('SIGKILL');
    }, SILENCE_MS);
  };
  watch();
  child.on('message', (message: Message) => {
    watch();
    if ('began' in message) current = message;
    else {
      current = undefined;
      note(message);
    }
  });
  return new Promise((resolve) => {
    child.on('close', (status, signal) => {
      clearTimeout(timer);
      if (current === undefined && status === 0) {
        resolve(from + count);
        return;
      }
      const where = current === undefined ? 'between two files' : `number ${current.number} (${current.began})`;
      if (hung) hangs++;
      else crashes++;
      tried += current === undefined ? 0 : 1;
      problems.push(`${where}: ${hung ? 'hangs' : `the process ended with ${signal ?? status}`}\n${stderr}`);
      // Without a culprit there is nothing to go around.
      resolve(current === undefined ? first + total : current.number + 1);
    });
  });
}

function note({ number, seed, size, result, crash, seconds, headerBytes }: Done): void {
  tried++;
  results[result] = (results[result] ?? 0) + 1;
  if (crash !== undefined) {
    crashes++;
    if (problems.length < 20) problems.push(`number ${number} (${seed}): ${crash}`);
  }
  if (seconds > slowest.seconds) slowest = { seconds, number };
  if (headerBytes > largest.bytes) largest = { bytes: headerBytes, number };
  if (seconds > Math.max(1, size / 1e6)) {
    hangs++;
    problems.push(`number ${number} (${seed}, ${size} bytes): ${seconds.toFixed(2)} s, expected a second per MB`);
  }
  if (tried % 1000 === 0) console.log(`${tried} of ${total}, ${elapsed()}, ${crashes} crashes, ${hangs} hangs`);
}

function elapsed(): string {
  return `${((performance.now() - started) / 1000).toFixed(0)} s`;
}

function whole(option: string, text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 1) return number;
  console.error(`${option} is "${text}", expected a whole number from 1`);
  process.exit(2);
}
