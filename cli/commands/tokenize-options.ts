/** Options of `apr tokenize`. */

import type { OptionTable } from '../options.ts';
import { OUTPUT_OPTIONS } from './output-options.ts';
import { SOURCE_OPTIONS } from './source-options.ts';

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
  pieces: {
    kind: 'flag',
    group: 'Output',
    description: 'A line for each token, its id and its text; bytes in hex where they are part of a character',
  },
  count: { kind: 'flag', group: 'Output', description: 'encode: only how many tokens there are' },
  json: {
    ...OUTPUT_OPTIONS.json,
    description: 'One JSON document: {"tokens":[…]}, with "pieces":[…] beside it, {"count":…}, or {"text":"…"}',
  },
  quiet: OUTPUT_OPTIONS.quiet,
  verbose: OUTPUT_OPTIONS.verbose,
  ...SOURCE_OPTIONS,
} as const satisfies OptionTable;
