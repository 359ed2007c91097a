/** Options of `apr convert`. */

import type { OptionTable } from '../options.ts';
import { SOURCE_OPTIONS } from './source-options.ts';

export const CONVERT_OPTIONS = {
  output: {
    kind: 'text',
    alias: 'o',
    placeholder: 'FILE',
    group: 'Output',
    description: 'File to write; its ending says the format, .apr or .gguf',
  },
  force: { kind: 'flag', group: 'Output', description: 'Replace FILE if it exists' },
  json: { kind: 'flag', group: 'Output', description: 'Report what was written as one JSON document' },
  quiet: { kind: 'flag', alias: 'q', group: 'Output', description: 'Report nothing' },
  verbose: { kind: 'flag', alias: 'v', group: 'Output', description: 'Stack traces of errors' },
  ...SOURCE_OPTIONS,
} as const satisfies OptionTable;
