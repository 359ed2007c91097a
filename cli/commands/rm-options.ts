/** Options of `apr rm`. */

import type { OptionTable } from '../options.ts';
import { OUTPUT_OPTIONS } from './output-options.ts';

export const RM_OPTIONS = {
  all: {
    kind: 'flag',
    group: 'Models',
    description: 'Every model of a repository that REF names without saying which',
  },
  unfinished: { kind: 'flag', group: 'Models', description: 'What is left of downloads that were never completed' },
  ...OUTPUT_OPTIONS,
} as const satisfies OptionTable;
