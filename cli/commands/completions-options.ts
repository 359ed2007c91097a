/** Options of `apr completions`. */

import type { OptionTable } from '../options.ts';
import { OUTPUT_OPTIONS } from './output-options.ts';

export const COMPLETIONS_OPTIONS = {
  ...OUTPUT_OPTIONS,
  json: { kind: 'flag', group: 'Output', description: 'One JSON document: {"shell":"…","script":"…"}' },
} as const satisfies OptionTable;
