/** Options of `apr trace`. */

import type { OptionTable } from '../options.ts';
import { MACHINE_OPTIONS } from './machine-options.ts';
import { RUN_OPTIONS } from './run-options.ts';
import { SOURCE_OPTIONS } from './source-options.ts';

const { prompt, input, system, thinking, chat, raw } = RUN_OPTIONS;

export const TRACE_OPTIONS = {
  prompt,
  input,
  system,
  thinking,
  chat,
  raw,

  layer: {
    kind: 'integer',
    placeholder: 'N',
    min: 0,
    max: 2 ** 31 - 1,
    group: 'What to look at',
    description: 'Only this layer, every activation of it; counted from 0',
  },
  payload: { kind: 'flag', group: 'What to look at', description: 'Every activation of every layer' },
  tokens: {
    kind: 'choice',
    placeholder: 'WHICH',
    choices: ['last', 'all'],
    default: 'last',
    group: 'What to look at',
    description: 'Figures of these tokens of the prompt',
  },
  'max-tokens': {
    kind: 'integer',
    alias: 'n',
    placeholder: 'N',
    min: 0,
    max: 2 ** 31 - 1,
    default: '0',
    group: 'What to look at',
    description: 'Then generate up to N tokens, and watch every pass',
  },

  reference: {
    kind: 'text',
    placeholder: 'OTHER',
    group: 'Comparison',
    description: 'A like model, backend:reference or saved tensors: where do they part? (status 5)',
  },
  threshold: {
    kind: 'number',
    placeholder: 'COSINE',
    min: -1,
    max: 1,
    default: '0.99',
    group: 'Comparison',
    description: 'Least cosine that still agrees',
  },
  'max-l2': {
    kind: 'number',
    placeholder: 'X',
    min: 0,
    max: Number.MAX_VALUE,
    default: '0.05',
    group: 'Comparison',
    description: 'Largest relative difference (L2) that still agrees',
  },

  'save-tensors': {
    kind: 'text',
    placeholder: 'DIR',
    group: 'Output',
    description: 'Activations as .npy files, for numpy.load, in a new folder',
  },
  stages: {
    kind: 'text',
    placeholder: 'LIST',
    group: 'Output',
    description: 'Save and compare only these, such as attn_norm,qkv,output',
  },
  html: { kind: 'text', placeholder: 'FILE', group: 'Output', description: 'A picture: one page that loads nothing' },
  json: { kind: 'flag', group: 'Output', description: 'One JSON document' },
  quiet: { kind: 'flag', alias: 'q', group: 'Output', description: 'No progress on stderr' },
  verbose: { kind: 'flag', alias: 'v', group: 'Output', description: 'Stack traces of errors' },

  ...MACHINE_OPTIONS,
  'skip-contract': RUN_OPTIONS['skip-contract'],
  ...SOURCE_OPTIONS,
} as const satisfies OptionTable;
