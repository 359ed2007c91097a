/** Options of `apr tensors`. */

import type { OptionTable } from '../options.ts';
import { OUTPUT_OPTIONS } from './output-options.ts';
import { SOURCE_OPTIONS } from './source-options.ts';

export const TENSORS_OPTIONS = {
  filter: {
    kind: 'text',
    placeholder: 'NAME',
    group: 'Tensors',
    description: 'Only names with NAME in them, or like it with * and ?, such as "blk.0.*"',
  },
  limit: {
    kind: 'integer',
    placeholder: 'N',
    min: 0,
    max: 2 ** 31 - 1,
    group: 'Tensors',
    description: 'No more than N of them',
  },
  stats: {
    kind: 'flag',
    group: 'Tensors',
    description: 'Read their data too: least, most, mean, deviation, zeros, NaN, infinities',
  },
  ...OUTPUT_OPTIONS,
  ...SOURCE_OPTIONS,
} as const satisfies OptionTable;
