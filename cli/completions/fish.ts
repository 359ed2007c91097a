/** Completions for fish. */

import type { Option, OptionTable } from '../options.ts';
import { type CompletedCommand, MODEL_ENDINGS, MODEL_NAMES, valueKind } from './vocabulary.ts';

/** The script. `common` are the options of every command. */
export function fishScript(commands: readonly CompletedCommand[], common: OptionTable): string {
  const names = commands.map(({ name }) => name);
  return [
    '# apr: completions for fish. Put this into ~/.config/fish/completions/apr.fish',
    '',
    'function __apr_models',
    `  string match -- (commandline -ct)'*' ${MODEL_NAMES.join(' ')}`,
    ...MODEL_ENDINGS.map((ending) => `  __fish_complete_suffix .${ending}`),
    'end',
    '',
    '# The command is the first word that is no option.',
    'function __apr_command',
    '  for word in (commandline -opc)[2..-1]',
    "    string match -q -- '-*' $word; or begin; echo $word; return 0; end",
    '  end',
    '  return 1',
    'end',
    '',
    'function __apr_needs_command',
    '  not __apr_command >/dev/null',
    'end',
    '',
    'function __apr_is',
    '  contains -- (__apr_command; or echo) $argv',
    'end',
    '',
    'complete -c apr -f',
    ...Object.entries(common).map(([name, option]) => optionLine('', name, option)),
    ...commands.map(({ name, summary }) => `complete -c apr -n __apr_needs_command -a ${name} -d ${quoted(summary)}`),
    `complete -c apr -n __apr_needs_command -a help -d 'Explain a command'`,
    `complete -c apr -n '__apr_is help' -a ${quoted(names.join(' '))}`,
    ...commands.flatMap(commandLines),
    '',
  ].join('\n');
}

function commandLines({ name, options, words }: CompletedCommand): string[] {
  const is = `__apr_is ${name}`;
  const arguments_ =
    words === undefined
      ? [`complete -c apr -n '${is}' -a '(__apr_models)'`]
      : [
          `complete -c apr -n '${is}; and test (count (commandline -opc)) -le 2' -a '${words.join(' ')}'`,
          `complete -c apr -n '${is}; and test (count (commandline -opc)) -gt 2' -a '(__apr_models)'`,
        ];
  return ['', ...arguments_, ...Object.entries(options).map(([key, option]) => optionLine(` -n '${is}'`, key, option))];
}

function optionLine(condition: string, name: string, option: Option): string {
  const short = option.alias === undefined ? '' : ` -s ${option.alias}`;
  return `complete -c apr${condition}${short} -l ${name}${value(option)} -d ${quoted(option.description)}`;
}

function value(option: Option): string {
  switch (valueKind(option)) {
    case 'none':
      return '';
    case 'choices':
      return option.kind === 'choice' ? ` -x -a ${quoted(option.choices.join(' '))}` : '';
    case 'file':
      return ' -r -F';
    case 'folder':
      return " -x -a '(__fish_complete_directories)'";
    case 'other':
      return ' -x';
  }
}

/** In fish's single quotes a backslash and the quote itself are special. */
function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`;
}
