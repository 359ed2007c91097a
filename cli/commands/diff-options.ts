/** Options of `apr diff`. */

import type { OptionTable } from '../options.ts';
import { OUTPUT_OPTIONS } from './output-options.ts';
import { SOURCE_OPTIONS } from './source-options.ts';

export const DIFF_OPTIONS = {
  filter: {
    kind: 'text',
    placeholder: 'NAME',
    group: 'What to compare',
    description: 'Only tensors with NAME in their names, or like it with * and ?',
  },
  'no-metadata': { kind: 'flag', group: 'What to compare', description: 'Leave the metadata out' },
  'no-values': {
    kind: 'flag',
    group: 'What to compare',
    description: 'Compare names, shapes and types of tensors only: no weights are read',
  },
  threshold: {
    kind: 'number',
    placeholder: 'COSINE',
    min: -1,
    max: 1,
    group: 'What to compare',
    description: 'Tensors whose cosine is COSINE or more count as the same, whatever their types',
  },
  ...OUTPUT_OPTIONS,
  quiet: { kind: 'flag', alias: 'q', group: 'Output', description: 'Print nothing; the exit status says it' },
  ...SOURCE_OPTIONS,
} as const satisfies OptionTable;
