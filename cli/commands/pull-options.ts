/** Options of `apr pull`. */

import type { OptionTable } from '../options.ts';
import { OUTPUT_OPTIONS } from './output-options.ts';
import { SOURCE_OPTIONS } from './source-options.ts';

export const PULL_OPTIONS = {
  verify: {
    kind: 'flag',
    group: 'Model',
    description: 'Read what is on this disk already, too, and compare its SHA-256 with the hub',
  },
  ...SOURCE_OPTIONS,
  ...OUTPUT_OPTIONS,
} as const satisfies OptionTable;
