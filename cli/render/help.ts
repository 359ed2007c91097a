/** Sections of the help, which cac prints. */

import type { Command } from '../commands/index.ts';
import { GLOBAL_OPTIONS } from '../commands/run-options.ts';
import type { Option, OptionTable } from '../options.ts';

/** As cac takes it: a title, and lines below it. */
export interface HelpSection {
  title?: string;
  body: string;
}

const WIDEST_NAME = 27;
const DESCRIPTION_COLUMN = WIDEST_NAME + 4;
const WIDEST_LINE = 120;
/** Arguments by the words that stand for them in a command's usage. */
const ARGUMENTS: readonly (readonly [pattern: RegExp, name: string, description: string])[] = [
  [/\bSOURCE\b/, 'SOURCE', 'A GGUF or .apr file, a folder with one, "demo" (comes with apr), or what "apr pull" takes'],
  [/\bREF\b/, 'REF', 'hf://ORG/REPO[:TYPE], hf://ORG/REPO/FILE, each with [@REVISION]; https://…; a short name'],
  [/\bPROMPT\b/, 'PROMPT', 'The prompt, in quotes; without any, standard input is read if it is no terminal'],
  [/\bTENSOR\b/, 'TENSOR', 'Name of a tensor, as "apr tensors SOURCE" lists it'],
  [/\bA B\b/, 'A, B', 'Two models, each as SOURCE of the other commands'],
];

/** Everything there is, in as many lines as a small terminal has. */
export function generalSections(version: string, commands: readonly Command[]): HelpSection[] {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return [
    {
      body: [
        `apr ${version}: runs GGUF language models on WebAssembly, without a native build`,
        'Usage: apr COMMAND [options]; "apr COMMAND --help" explains it; apr --version',
      ].join('\n'),
    },
    { body: commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`).join('\n') },
    { body: 'To begin with: apr run demo "What is 2+2?"' },
  ];
}

export function commandSections({ summary, usage, options, status, examples: shown }: Command): HelpSection[] {
  const all: OptionTable = { ...options, ...GLOBAL_OPTIONS };
  const groups = [...new Set(Object.values(all).map(({ group }) => group))];
  return [
    { body: summary },
    { title: 'Usage', body: `  $ apr ${usage}` },
    ...argumentSections(usage),
    ...groups.map((group) => ({
      title: group,
      body: optionLines(Object.fromEntries(Object.entries(all).filter(([, option]) => option.group === group))),
    })),
    examples(shown),
    {
      title: 'Exit status',
      body:
        `  0 done, ${status === undefined ? '' : `${status}, `}2 usage, 3 not found, 4 not a readable model file, 5 refused, 6 cannot load,\n` +
        '  7 input or output failed, 8 inference failed, 130 interrupted',
    },
  ];
}

function argumentSections(usage: string): HelpSection[] {
  const lines = ARGUMENTS.filter(([pattern]) => pattern.test(usage)).map(
    ([, name, description]) => `  ${name.padEnd(WIDEST_NAME)}  ${description}`,
  );
  return lines.length === 0 ? [] : [{ title: 'Arguments', body: lines.join('\n') }];
}

function optionLines(table: OptionTable): string {
  return Object.entries(table)
    .map(([name, option]) => {
      const short = option.alias === undefined ? '    ' : `-${option.alias}, `;
      const names = `${short}--${name}${placeholder(option)}`.padEnd(WIDEST_NAME);
      const choices = option.kind === 'choice' ? `: ${option.choices.join(', ')}` : '';
      const preset = option.default === undefined ? '' : ` (default: ${option.default})`;
      return `  ${names}  ${wrapped(`${option.description}${choices}${preset}`)}`;
    })
    .join('\n');
}

/** A description on as many lines as it needs, below one another. */
function wrapped(text: string): string {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1)!;
    if (line !== '' && line.length + 1 + word.length > WIDEST_LINE - DESCRIPTION_COLUMN) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines.join(`\n${' '.repeat(DESCRIPTION_COLUMN)}`);
}

function placeholder(option: Option): string {
  return option.kind === 'flag' ? '' : ` ${option.placeholder}`;
}

function examples(list: readonly (readonly [string, string])[]): HelpSection {
  const lines = list.flatMap(([what, commands]) => [
    `  # ${what}`,
    ...commands.split('; ').map((line) => `  $ ${line}`),
  ]);
  return { title: 'Examples', body: lines.join('\n') };
}
