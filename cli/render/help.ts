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
const PROMPT_LINE =
  '  PROMPT                       The prompt, in quotes; without any, standard input is read if it is no terminal';

export function generalSections(version: string, commands: readonly Command[]): HelpSection[] {
  return [
    { body: `apr ${version}: runs GGUF language models on WebAssembly and worker threads, without a native build` },
    { title: 'Usage', body: '  $ apr COMMAND [options]' },
    {
      title: 'Commands',
      body: commands.map(({ name, summary }) => `  ${name.padEnd(WIDEST_NAME)}  ${summary}`).join('\n'),
    },
    { title: 'Options', body: optionLines(GLOBAL_OPTIONS) },
    examples(commands.flatMap((command) => command.examples.slice(0, 2))),
    { body: `"apr COMMAND --help" tells everything about a command.` },
  ];
}

export function commandSections({ summary, usage, options, status, examples: shown }: Command): HelpSection[] {
  const all: OptionTable = { ...options, ...GLOBAL_OPTIONS };
  const groups = [...new Set(Object.values(all).map(({ group }) => group))];
  return [
    { body: summary },
    { title: 'Usage', body: `  $ apr ${usage}` },
    {
      title: 'Arguments',
      body:
        '  SOURCE                       Path of a GGUF or .apr file, or "demo": a tiny chat model that comes with apr' +
        (usage.includes('PROMPT') ? `\n${PROMPT_LINE}` : ''),
    },
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

function optionLines(table: OptionTable): string {
  return Object.entries(table)
    .map(([name, option]) => {
      const short = option.alias === undefined ? '    ' : `-${option.alias}, `;
      const names = `${short}--${name}${placeholder(option)}`.padEnd(WIDEST_NAME);
      const choices = option.kind === 'choice' ? `: ${option.choices.join(', ')}` : '';
      return `  ${names}  ${option.description}${choices}${option.default === undefined ? '' : ` (default: ${option.default})`}`;
    })
    .join('\n');
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
