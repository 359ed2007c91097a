/** Options of `apr bench`. */

import type { OptionTable } from '../options.ts';
import { OUTPUT_OPTIONS } from './output-options.ts';
import { SOURCE_OPTIONS } from './source-options.ts';

export const BENCH_OPTIONS = {
  prefill: {
    kind: 'text',
    alias: 'p',
    placeholder: 'LIST',
    allowEmpty: true,
    default: '128',
    group: 'Measurements',
    description: 'Sizes of prompts in tokens, with commas between; "" for none',
  },
  decode: {
    kind: 'text',
    alias: 'n',
    placeholder: 'LIST',
    allowEmpty: true,
    default: '32',
    group: 'Measurements',
    description: 'Numbers of tokens to generate; "" for none',
  },
  threads: {
    kind: 'text',
    alias: 't',
    placeholder: 'LIST',
    default: 'all cores',
    group: 'Measurements',
    description: 'Numbers of kernel threads',
  },
  iterations: {
    kind: 'integer',
    placeholder: 'N',
    min: 1,
    max: 1000,
    default: '5',
    group: 'Measurements',
    description: 'Times that each is measured; the median counts, the least and the most are shown',
  },
  warmup: {
    kind: 'integer',
    placeholder: 'N',
    min: 0,
    max: 1000,
    default: '1',
    group: 'Measurements',
    description: 'Times that each is run before, so that the kernels are compiled',
  },
  compare: {
    kind: 'choice',
    placeholder: 'ENGINE',
    choices: ['node-llama-cpp'],
    group: 'Measurements',
    description: 'Measure this package too, in turns, where it is installed in or above the working directory',
  },
  ...OUTPUT_OPTIONS,
  ...SOURCE_OPTIONS,
} as const satisfies OptionTable;
