/** `apr completions SHELL` */

import { AprError } from '../../src/errors.ts';
import { bashScript } from '../completions/bash.ts';
import { fishScript } from '../completions/fish.ts';
import { type CompletedCommand, SHELLS, type Shell } from '../completions/vocabulary.ts';
import { zshScript } from '../completions/zsh.ts';
import type { Environment } from '../environment.ts';
import { nearest } from '../nearest.ts';
import { type OptionTable, quote } from '../options.ts';
import type { OutputForm } from '../render/error.ts';
import { jsonLine } from '../render/json.ts';
import { write } from '../render/terminal.ts';
import { GLOBAL_OPTIONS } from './run-options.ts';

const SCRIPTS: Readonly<Record<Shell, (commands: readonly CompletedCommand[], common: OptionTable) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** The action, over the whole table of commands. */
export function completions(commands: readonly CompletedCommand[]) {
  return async (
    positionals: readonly string[],
    _values: unknown,
    form: OutputForm,
    { stdout }: Environment,
  ): Promise<void> => {
    const shell = readShell(positionals);
    const script = SCRIPTS[shell](commands, GLOBAL_OPTIONS);
    await write(stdout, form === 'json' ? jsonLine({ shell, script }) : script);
  };
}

/** @throws AprError USAGE */
function readShell(positionals: readonly string[]): Shell {
  const [given, surplus] = positionals;
  const expected = `one of ${SHELLS.join(', ')}: apr completions SHELL`;
  if (given === undefined) throw new AprError('USAGE', `SHELL is missing, expected ${expected}`);
  if (surplus !== undefined) {
    const message = `found ${positionals.length} arguments, expected ${expected}`;
    throw new AprError('USAGE', message, { found: positionals.length, expected: 1 });
  }
  const shell = SHELLS.find((one) => one === given);
  if (shell !== undefined) return shell;
  const near = nearest(given, SHELLS);
  const advice = near === undefined ? `expected ${expected}` : `did you mean "apr completions ${near}"?`;
  throw new AprError('USAGE', `there are no completions for the shell ${quote(given)}; ${advice}`, { found: given });
}
