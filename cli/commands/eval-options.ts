/** Options of `apr eval`. */

import type { OptionTable } from '../options.ts';
import { SOURCE_OPTIONS } from './source-options.ts';

export const EVAL_OPTIONS = {
  text: { kind: 'text', placeholder: 'FILE', group: 'Input', description: 'Text to score' },
  'context-length': {
    kind: 'integer',
    alias: 'c',
    placeholder: 'N',
    min: 4,
    max: 1 << 24,
    group: 'Input',
    description: 'Tokens of a window, an even number; half is context, half is scored',
    default: '512',
  },
  threads: {
    kind: 'integer',
    alias: 't',
    placeholder: 'N',
    min: 1,
    max: 256,
    group: 'Engine',
    description: 'Kernel threads',
    default: 'all cores',
  },
  backend: {
    kind: 'choice',
    placeholder: 'NAME',
    choices: ['auto', 'cpu', 'reference'],
    group: 'Engine',
    description: 'Where to compute',
    default: 'auto',
  },
  json: { kind: 'flag', group: 'Output', description: 'One JSON document' },
  quiet: { kind: 'flag', alias: 'q', group: 'Output', description: 'No progress' },
  verbose: { kind: 'flag', alias: 'v', group: 'Output', description: 'Stack traces of errors' },
  ...SOURCE_OPTIONS,
} as const satisfies OptionTable;
