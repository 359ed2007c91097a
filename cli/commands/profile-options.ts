/** Options of `apr profile`. */

import type { OptionTable } from '../options.ts';
import { MACHINE_OPTIONS } from './machine-options.ts';
import { OUTPUT_OPTIONS } from './output-options.ts';
import { RUN_OPTIONS } from './run-options.ts';
import { SOURCE_OPTIONS } from './source-options.ts';

const { prompt, input, raw } = RUN_OPTIONS;

export const PROFILE_OPTIONS = {
  prompt: { ...prompt, default: 'a short question' },
  input,
  raw,

  'max-tokens': {
    kind: 'integer',
    alias: 'n',
    placeholder: 'N',
    min: 1,
    max: 2 ** 20,
    default: '32',
    group: 'Measurement',
    description: 'Generate N tokens, whatever they are',
  },
  warmup: {
    kind: 'integer',
    placeholder: 'N',
    min: 0,
    max: 1000,
    default: '8',
    group: 'Measurement',
    description: 'Generate N tokens before, so that code is compiled and memory touched',
  },

  ...OUTPUT_OPTIONS,
  flamegraph: {
    kind: 'text',
    placeholder: 'FILE',
    group: 'Output',
    description: 'Write folded stacks with microseconds, for flame graphs',
  },
  html: { kind: 'text', placeholder: 'FILE', group: 'Output', description: 'A picture: one page that loads nothing' },

  ...MACHINE_OPTIONS,
  ...SOURCE_OPTIONS,
} as const satisfies OptionTable;
