/** Options of `apr validate`. */

import type { OptionTable } from '../options.ts';
import { SOURCE_OPTIONS } from './source-options.ts';

export const VALIDATE_OPTIONS = {
  quality: {
    kind: 'flag',
    group: 'Checks',
    description: 'Read all weights: NaN, infinities, zeros, dead rows of the vocabulary, duplicates',
  },
  json: { kind: 'flag', group: 'Output', description: 'One JSON document with every finding, and statistics' },
  quiet: { kind: 'flag', alias: 'q', group: 'Output', description: 'Findings only' },
  verbose: { kind: 'flag', alias: 'v', group: 'Output', description: 'Stack traces of errors' },
  ...SOURCE_OPTIONS,
} as const satisfies OptionTable;
