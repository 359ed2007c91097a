/** Completions for bash, from version 3.2 on, which macOS has. */

import type { Option, OptionTable } from '../options.ts';
import { type CompletedCommand, MODEL_ENDINGS, MODEL_NAMES, spellings, valueKind } from './vocabulary.ts';

/** The script. `common` are the options of every command. */
export function bashScript(commands: readonly CompletedCommand[], common: OptionTable): string {
  const names = [...commands.map(({ name }) => name), 'help'].join(' ');
  return `# apr: completions for bash. To load them: source <(apr completions bash)

# Sets COMPREPLY to files and folders, of the given endings only where there are some.
_apr_files() {
  local IFS=$'\\n' ending
  COMPREPLY=($(compgen -d -- "$word"))
  if [ $# -eq 0 ]; then COMPREPLY=($(compgen -f -- "$word")); fi
  for ending in "$@"; do
    COMPREPLY=("\${COMPREPLY[@]}" $(compgen -f -X "!*.$ending" -- "$word"))
  done
  compopt -o filenames 2>/dev/null
}

_apr() {
  local word=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} command= options= words= index
  COMPREPLY=()
  # bash makes three words of --format=json.
  if [ "$word" = = ]; then word=; elif [ "$previous" = = ]; then previous=\${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((index = 1; index < COMP_CWORD; index++)); do
    case \${COMP_WORDS[index]} in
      -*) ;;
      *) command=\${COMP_WORDS[index]}; break ;;
    esac
  done
  case $command in
    '' | help)
      COMPREPLY=($(compgen -W '${names} ${optionWords(common)}' -- "$word"))
      return
      ;;
${commands.map((command) => commandCase(command, common)).join('\n')}
    *) return ;;
  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *)
      if [ -n "$words" ] && [ $index -eq $((COMP_CWORD - 1)) ]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
      else
        _apr_files ${MODEL_ENDINGS.join(' ')}
        COMPREPLY=("\${COMPREPLY[@]}" $(compgen -W '${MODEL_NAMES.join(' ')}' -- "$word"))
      fi
      ;;
  esac
}

complete -F _apr apr
`;
}

function optionWords(options: OptionTable): string {
  return Object.entries(options)
    .flatMap(([name, option]) => spellings(name, option))
    .join(' ');
}

function commandCase({ name, options, words }: CompletedCommand, common: OptionTable): string {
  const values = Object.entries(options).flatMap(([key, option]) => {
    const act = valueAction(option);
    return act === undefined ? [] : [`        ${spellings(key, option).join(' | ')}) ${act}return ;;`];
  });
  const lines = [
    `    ${name})`,
    `      options='${optionWords({ ...options, ...common })}'`,
    ...(words === undefined ? [] : [`      words='${words.join(' ')}'`]),
    ...(values.length === 0 ? [] : ['      case $previous in', ...values, '      esac']),
    '      ;;',
  ];
  return lines.join('\n');
}

/** What offers the values of an option; undefined for one that has none. */
function valueAction(option: Option): string | undefined {
  switch (valueKind(option)) {
    case 'none':
      return undefined;
    case 'choices':
      return `COMPREPLY=($(compgen -W '${option.kind === 'choice' ? option.choices.join(' ') : ''}' -- "$word")); `;
    case 'file':
      return '_apr_files; ';
    case 'folder':
      return 'COMPREPLY=($(compgen -d -- "$word")); ';
    case 'other':
      // Nothing can be offered, and the shell must not offer files in its place.
      return '';
  }
}
