#!/usr/bin/env node
/** The process around the command: signals, closed pipes, and the exit status. */

import type { ErrorForm } from './cli.ts';

const OLDEST_NODE = 20;
const INTERRUPTED = 130;
const TERMINATED = 143;

if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
  process.stderr.write(`apr: this is Node ${process.versions.node}, expected Node ${OLDEST_NODE} or newer\n`);
  process.exit(2);
}

const { runCli } = await import('./cli.ts');
const { AprError } = await import('../src/errors.ts');
const { sourceExists } = await import('./source.ts');
const { renderError } = await import('./render/error.ts');

const errors: ErrorForm = { form: 'text', verbose: false };
const fail = (error: unknown): never => process.exit(renderError(error, errors.form, errors.verbose, process));

const interrupted = (): never => {
  // What the terminal shows stays, and the shell's prompt begins a line of its own.
  if (process.stderr.isTTY) process.stderr.write('\n');
  if (errors.form !== 'text') fail(new AprError('ABORTED', 'interrupted'));
  process.exit(INTERRUPTED);
};
let onInterrupt: () => void = interrupted;
process.on('SIGINT', () => onInterrupt());
// Ended in order, so that half-written files are removed. Not so for SIGHUP: a handler would undo what nohup does.
process.on('SIGTERM', () => process.exit(TERMINATED));
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader has what it wanted (`| head -1`); an error is one whether somebody reads it or not.
  if (error.code === 'EPIPE') process.exit(errors.status ?? 0);
  errors.form = 'text';
  fail(new AprError('IO', `standard output: cannot be written: ${error.message}`, {}, { cause: error }));
});
// Nobody reads the diagnostics: no reason to end the answer.
process.stderr.on('error', () => {});

const status = await runCli(
  process.argv.slice(2),
  {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    interrupted,
    takeInterrupts: (handler) => {
      onInterrupt = handler;
      return () => {
        onInterrupt = interrupted;
      };
    },
    sourceExists,
    loadCreateEngine: async () => (await import('../src/index.ts')).createEngine,
  },
  errors,
);
// On some systems a pipe is written in the background.
await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
await new Promise<void>((resolve) => process.stderr.write('', () => resolve()));
// Not left to the event loop: a thread that hangs must not keep a finished command alive.
process.exit(status);
