/** Options of `apr tokenize`. */

import type { OptionTable } from '../options.ts';

export const TOKENIZE_OPTIONS = {
  prompt: { kind: 'text', alias: 'p', placeholder: 'TEXT', allowEmpty: true, group: 'Text', description: 'The text' },
  input: {
    kind: 'text',
    alias: 'i',
    placeholder: 'PATH',
    group: 'Text',
    description: 'Read the text from PATH, every byte of it; "-" is standard input',
  },
  special: {
    kind: 'flag',
    group: 'Tokens',
    description: 'encode: recognise special tokens in the text; decode: show their text',
  },
  bos: { kind: 'flag', group: 'Tokens', description: 'encode: begin with the token that begins every text (BOS)' },
  json: { kind: 'flag', group: 'Output', description: 'One JSON document: {"tokens":[…]}, or {"text":"…"}' },
  verbose: { kind: 'flag', alias: 'v', group: 'Output', description: 'Stack traces of errors' },
} as const satisfies OptionTable;
