/** Options that every command has; a command says in its own words what they do where there is more to say. */

import type { OptionTable } from '../options.ts';

export const OUTPUT_OPTIONS = {
  json: { kind: 'flag', group: 'Output', description: 'One JSON document' },
  quiet: { kind: 'flag', alias: 'q', group: 'Output', description: 'No notes and no progress on stderr' },
  verbose: { kind: 'flag', alias: 'v', group: 'Output', description: 'Stack traces of errors' },
} as const satisfies OptionTable;
