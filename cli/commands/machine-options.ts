/** What computes: options that several commands have, all in the same words. */

import type { OptionTable } from '../options.ts';
import { RUN_OPTIONS } from './run-options.ts';

export const MACHINE_OPTIONS = {
  threads: RUN_OPTIONS.threads,
  backend: {
    kind: 'choice',
    placeholder: 'NAME',
    choices: ['auto', 'cpu', 'reference'],
    default: 'auto',
    group: 'Machine',
    description: 'What computes',
  },
  kernel: {
    kind: 'choice',
    placeholder: 'NAME',
    choices: ['simd', 'relaxed'],
    default: 'the fastest present',
    group: 'Machine',
    description: 'Build of the kernels',
  },
  'context-length': RUN_OPTIONS['context-length'],
  'no-selfcheck': RUN_OPTIONS['no-selfcheck'],
} as const satisfies OptionTable;
