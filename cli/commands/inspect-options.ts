/** Options of `apr inspect`. */

import type { OptionTable } from '../options.ts';
import { OUTPUT_OPTIONS } from './output-options.ts';
import { SOURCE_OPTIONS } from './source-options.ts';

export const INSPECT_OPTIONS = {
  metadata: { kind: 'flag', group: 'Output', description: 'All metadata too; arrays by their length' },
  vocab: { kind: 'flag', group: 'Output', description: 'All tokens too: id, type, text' },
  template: { kind: 'flag', group: 'Output', description: 'The source of the chat template, and nothing else' },
  ...OUTPUT_OPTIONS,
  'context-length': {
    kind: 'integer',
    alias: 'c',
    placeholder: 'N',
    min: 0,
    max: 2 ** 24,
    default: "the file's, at most 4096",
    group: 'Memory',
    description: "Count the memory for N positions; 0 for the file's",
  },
  threads: {
    kind: 'integer',
    alias: 't',
    placeholder: 'N',
    min: 1,
    max: 256,
    default: 'all cores',
    group: 'Memory',
    description: 'Count the memory for N threads',
  },
  ...SOURCE_OPTIONS,
} as const satisfies OptionTable;
