/** Completions for zsh. */

import { OUTPUT_OPTIONS } from '../commands/output-options.ts';
import type { Option, OptionTable } from '../options.ts';
import { type CompletedCommand, MODEL_ENDINGS, MODEL_NAMES, singleQuoted, spellings, valueKind } from './vocabulary.ts';

/**
 * The script. `common` are the options that are the same for all commands and for none; before the command, zsh must
 * know those too that every command has.
 */
export function zshScript(commands: readonly CompletedCommand[], common: OptionTable): string {
  const described = [...commands, { name: 'help', summary: 'Explain a command' }];
  const list = described.map(({ name, summary }) => `        ${singleQuoted(`${name}:${summary}`)}`).join('\n');
  return `#compdef apr
# apr: completions for zsh. Put this into a folder of $fpath as _apr, or: source <(apr completions zsh)

_apr_models() {
  _alternative \\
    'names:model:(${MODEL_NAMES.join(' ')})' \\
    'files:model file:_files -g "*.(${MODEL_ENDINGS.join('|')})(-.)"'
}

_apr() {
  local context state state_descr line
  local -a commands
  typeset -A opt_args
  _arguments -C \\
${argumentLines({ ...common, ...OUTPUT_OPTIONS })} \\
    '1: :->command' \\
    '*:: :->arguments' && return
  case $state in
    command)
      commands=(
${list}
      )
      _describe -t commands command commands
      ;;
    arguments)
      case $words[1] in
${commands.map((command) => commandCase(command, common)).join('\n')}
        help) _arguments '1:command:(${commands.map(({ name }) => name).join(' ')})' ;;
      esac
      ;;
  esac
}

if [ "$funcstack[1]" = _apr ]; then
  _apr "$@"
else
  compdef _apr apr
fi
`;
}

function commandCase({ name, options, words }: CompletedCommand, common: OptionTable): string {
  const positional =
    words === undefined ? "'*:model:_apr_models'" : `'1:what:(${words.join(' ')})' \\\n    '*:model:_apr_models'`;
  const lines = `_arguments -s -S \\\n${argumentLines({ ...options, ...common })} \\\n    ${positional}`;
  return `        ${name})\n          ${lines.replaceAll('\n', '\n        ')}\n          ;;`;
}

function argumentLines(options: OptionTable): string {
  return Object.entries(options)
    .map(([name, option]) => `    ${argument(name, option)}`)
    .join(' \\\n');
}

/** One specification: `'(-n --name)'{-n,--name}'[description]:placeholder:action'`. */
function argument(name: string, option: Option): string {
  const names = spellings(name, option);
  const repeatable = option.kind === 'text' && option.repeatable === true;
  const description = `[${escaped(option.description).replace(/[[\]]/g, '\\$&')}]`;
  const value = option.kind === 'flag' ? '' : `:${escaped(option.placeholder)}:${action(option)}`;
  const rest = singleQuoted(`${description}${value}`);
  // A long option may have its value behind an equals sign.
  const spelled = names.map((one) => (option.kind !== 'flag' && one.startsWith('--') ? `${one}=` : one));
  if (repeatable) return spelled.map((one) => `'*'${one}${rest}`).join(' ');
  if (spelled.length === 1) return `${spelled[0]}${rest}`;
  return `'(${names.join(' ')})'{${spelled.join(',')}}${rest}`;
}

function action(option: Option): string {
  switch (valueKind(option)) {
    case 'choices':
      return option.kind === 'choice' ? `(${option.choices.join(' ')})` : '';
    case 'file':
      return '_files';
    case 'folder':
      return '_files -/';
    default:
      return ' ';
  }
}

/** A colon separates the parts of a specification. */
function escaped(text: string): string {
  return text.replace(/[\\:]/g, '\\$&');
}
