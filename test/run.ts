/**
 * Runs compiled tests, each file in a process of its own, and counts. uvu alone exits with 0 when a file forgets
 * `test.run()` or a pattern matches nothing, and a leaked worker hangs it; here these are failures.
 *
 *     node dist/test/run.js [--node PATH] [--timeout SECONDS] [PART-OF-A-PATH ...]
 *
 * The last line reads `N passed, N failed`, with `, N skipped` behind it where tests were.
 */

import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

interface Outcome extends Counts {
  /** Why the file as a whole failed. */
  problem?: string;
  output: string;
  seconds: number;
}

const ROOT = fileURLToPath(new URL('.', import.meta.url));

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { node: { type: 'string', default: process.execPath }, timeout: { type: 'string', default: '300' } },
});
const timeout = Number(values.timeout);
if (!(timeout > 0)) fail(`--timeout is "${values.timeout}", expected seconds above 0`);

const all = readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.test.js'))
  .map((path) => path.split(sep).join('/'))
  .sort();
for (const part of positionals)
  if (!all.some((path) => path.includes(part))) fail(`no test file's path contains "${part}"`);
const files = positionals.length === 0 ? all : all.filter((path) => positionals.some((part) => path.includes(part)));
if (files.length === 0) fail(`no *.test.js below ${relative(process.cwd(), ROOT) || '.'}`);

const total: Counts = { passed: 0, failed: 0, skipped: 0 };
for (const file of files) {
  const outcome = await runFile(file);
  total.passed += outcome.passed;
  total.failed += outcome.failed;
  total.skipped += outcome.skipped;
  const skips = outcome.skipped > 0 ? `, ${outcome.skipped} skipped` : '';
  const mark = outcome.failed > 0 ? 'FAIL' : 'ok  ';
  console.log(
    `${mark} ${file}: ${outcome.passed} passed, ${outcome.failed} failed${skips} (${outcome.seconds.toFixed(1)} s)`,
  );
  if (outcome.failed > 0) {
    if (outcome.problem !== undefined) console.log(`     ${outcome.problem}`);
    console.log(outcome.output.replace(/^/gm, '     | '));
  } else for (const line of outcome.output.match(/^# skipped .*$/gm) ?? []) console.log(`     ${line.slice(2)}`);
}
process.exitCode = total.failed > 0 ? 1 : 0;
console.log(`${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ''}`);

/** Problems of the run itself: still with the line that is looked for at the end. */
function fail(message: string): never {
  console.log(message);
  console.log('0 passed, 1 failed');
  process.exit(1);
}

function runFile(file: string): Promise<Outcome> {
  const start = performance.now();
  // A group of its own, so that what a hanging test has started ends with it.
  const child = spawn(values.node, [join(ROOT, file)], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, FORCE_COLOR: '0', NO_COLOR: '1' },
  });
  const end = (): void => {
    try {
      process.kill(-(child.pid as number), 'SIGKILL');
    } catch {
      child.kill('SIGKILL'); // no process groups here (Windows), or all of it is gone already
    }
  };
  const interrupted = (): void => {
    end();
    process.exit(130);
  };
  process.once('SIGINT', interrupted);
  process.once('SIGTERM', interrupted);

  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => {
      output += text;
    });
  }
  let hung = false;
  const timer = setTimeout(() => {
    hung = true;
    end();
  }, timeout * 1000);
  return new Promise((resolve) => {
    const settle = (problem: string | undefined, status: number | null): void => {
      clearTimeout(timer);
      process.off('SIGINT', interrupted);
      process.off('SIGTERM', interrupted);
      // What a test has started and left behind must not disturb the next one.
      if (child.pid !== undefined) end();
      resolve({ ...judge(output, status, problem), output, seconds: (performance.now() - start) / 1000 });
    };
    child.on('error', (error) => settle(`cannot be started: ${error.message}`, null));
    child.on('close', (status, signal) => {
      const ended = signal === null ? undefined : `ended by ${signal}`;
      settle(hung ? `still running after ${timeout} s, killed` : ended, status);
    });
  });
}

/** Counts from uvu's summary, distrusting it. */
function judge(output: string, status: number | null, problem: string | undefined): Counts & { problem?: string } {
  const number = (label: string): number | undefined => {
    const last = [...output.matchAll(new RegExp(`^ {2}${label}: +(\\d+)$`, 'gm'))].at(-1);
    return last === undefined ? undefined : Number(last[1]);
  };
  const found = number('Total');
  const passed = number('Passed') ?? 0;
  let skipped = number('Skipped') ?? 0;
  for (const [, count] of output.matchAll(/^# skipped (\d+): /gm)) skipped += Number(count);
  const failed = (found ?? 0) - passed;

  let reason = problem;
  if (reason === undefined && found === undefined) reason = 'printed no summary: is test.run() missing?';
  if (reason === undefined && found === 0 && skipped === 0) reason = 'ran no test';
  if (reason === undefined && failed === 0 && status !== 0)
    reason = `exited with status ${status} although every test passed`;
  if (reason === undefined && failed > 0 && !output.includes(' FAIL ')) {
    reason = 'tests did not run: a hook before them threw, and uvu hides its error';
  }
  if (reason === undefined) return { passed, failed, skipped };
  return { passed, failed: Math.max(failed, 1), skipped, problem: reason };
}
