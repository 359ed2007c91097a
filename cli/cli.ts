/** From the words of the command line to an exit status. */

import { type CAC, cac } from 'cac';
import { AprError } from '../src/errors.ts';
import { BUNDLED_MODELS } from '../src/platform/node/bundled-models.ts';
import { COMMANDS, type Command } from './commands/index.ts';
import { GLOBAL_OPTIONS } from './commands/run-options.ts';
import type { Environment } from './environment.ts';
import { nearest } from './nearest.ts';
import { type OptionTable, quote, type ScannedArguments, scanArguments } from './options.ts';
import { packageVersion } from './package.ts';
import { type OutputForm, renderError, statusOf } from './render/error.ts';
import { commandSections, generalSections } from './render/help.ts';
import { write } from './render/terminal.ts';

/** How errors are to be told, known before anything else is checked. */
export interface ErrorForm {
  form: OutputForm;
  verbose: boolean;
  /** Exit status of an error that has been told, or that is bound to come. */
  status?: number;
}

/**
 * Runs one command line (without node and script).
 *
 * @param errors filled in at once, for whoever has to tell an error from outside, such as an interrupt
 * @returns the exit status; never rejects
 */
export async function runCli(
  words: readonly string[],
  environment: Environment,
  errors: ErrorForm = { form: 'text', verbose: false },
): Promise<number> {
  // Every command's options at once, since which command it is depends on which words are values.
  const all: OptionTable = Object.assign({}, GLOBAL_OPTIONS, ...COMMANDS.map(({ options }) => options));
  const scan = scanArguments(words, all);
  errors.form = outputForm(scan);
  errors.verbose = has(scan, 'verbose');
  try {
    const failing = (status: number): void => {
      errors.status ??= status;
    };
    return await dispatch(words, scan, errors.form, { ...environment, failing });
  } catch (error) {
    errors.status = statusOf(error);
    return renderError(error, errors.form, errors.verbose, environment);
  }
}

async function dispatch(
  words: readonly string[],
  scan: ScannedArguments,
  form: OutputForm,
  environment: Environment,
): Promise<number> {
  const [first, second] = scan.positionals;
  if (has(scan, 'version')) {
    await write(environment.stdout, `apr ${packageVersion()}\n`);
    return 0;
  }
  if (first === 'help' || words.length === 0 || has(scan, 'help')) {
    const topic = first === 'help' ? second : first;
    if (topic !== undefined) findCommand(topic);
    commandLine().parse(['', '', ...(topic === undefined ? [] : [topic]), '--help'], { run: false });
    return 0;
  }
  if (first === undefined) throw scan.problem ?? usage('no command was given, expected one that "apr --help" lists');
  const command = findCommand(first);
  const own = scanArguments(words, { ...command.options, ...GLOBAL_OPTIONS });
  if (own.problem !== undefined) throw own.problem;
  let status = 0;
  const cli = commandLine(async (action) => {
    if (action === command) status = await command.run(withoutCommand(own), form, environment);
  });
  cli.parse(['', '', command.name], { run: false });
  await cli.runMatchedCommand();
  return status;
}

/** The commands as cac keeps them. It sees command names and --help only; values it would convert. */
function commandLine(act?: (command: Command) => unknown): CAC {
  const cli = cac('apr');
  for (const command of COMMANDS) {
    cli
      .command(command.name, command.summary)
      .usage(command.usage)
      .action(() => act?.(command));
  }
  cli.help(() => {
    const command = COMMANDS.find(({ name }) => name === cli.matchedCommandName);
    return command === undefined ? generalSections(packageVersion(), COMMANDS) : commandSections(command);
  });
  return cli;
}

function withoutCommand(scan: ScannedArguments): ScannedArguments {
  return { ...scan, positionals: scan.positionals.slice(1) };
}

/** @throws AprError USAGE */
function findCommand(name: string): Command {
  const command = COMMANDS.find((one) => one.name === name);
  if (command !== undefined) return command;
  const names = [...COMMANDS.map((one) => one.name), 'help'];
  const near = nearest(name, names);
  const isSource = BUNDLED_MODELS.includes(name) || /\.(gguf|apr)$/i.test(name);
  const suggestion = near ?? (isSource ? `run ${name}` : undefined);
  const advice = suggestion === undefined ? `expected one of ${names.join(', ')}` : `did you mean "apr ${suggestion}"?`;
  throw usage(`unknown command ${quote(name)}; ${advice}`, { found: name });
}

function usage(message: string, details: Record<string, string> = {}): AprError {
  return new AprError('USAGE', message, details);
}

function has(scan: ScannedArguments, name: string): boolean {
  return scan.occurrences.some((occurrence) => occurrence.name === name);
}

/** `--stream` goes before `--json`, and that before `--format`. */
function outputForm(scan: ScannedArguments): OutputForm {
  if (has(scan, 'stream')) return 'stream';
  const format = scan.occurrences.findLast(({ name }) => name === 'format')?.value;
  return has(scan, 'json') || format === 'json' ? 'json' : 'text';
}
