/** Options of `apr chat`: those of `apr run` that a conversation has, with defaults of its own. */

import type { OptionTable } from '../options.ts';
import { RUN_OPTIONS } from './run-options.ts';
import { SOURCE_OPTIONS } from './source-options.ts';

/** What `/set` changes too. */
export const CHAT_SETTINGS = {
  temperature: { ...RUN_OPTIONS.temperature, default: '0.7' },
  'top-k': RUN_OPTIONS['top-k'],
  'top-p': { ...RUN_OPTIONS['top-p'], default: '0.9' },
  'min-p': RUN_OPTIONS['min-p'],
  seed: RUN_OPTIONS.seed,
  'repeat-penalty': RUN_OPTIONS['repeat-penalty'],
  'repeat-last-n': RUN_OPTIONS['repeat-last-n'],
  'max-tokens': {
    ...RUN_OPTIONS['max-tokens'],
    min: 1,
    default: 'what the context holds',
    description: 'End an answer after N tokens',
  },
  thinking: RUN_OPTIONS.thinking,
} as const satisfies OptionTable;

export const CHAT_OPTIONS = {
  system: RUN_OPTIONS.system,
  'context-length': RUN_OPTIONS['context-length'],
  ...CHAT_SETTINGS,
  stop: RUN_OPTIONS.stop,
  stream: RUN_OPTIONS.stream,
  json: { kind: 'flag', group: 'Output', description: 'One JSON document an answer, each on a line' },
  quiet: RUN_OPTIONS.quiet,
  verbose: RUN_OPTIONS.verbose,
  threads: RUN_OPTIONS.threads,
  backend: RUN_OPTIONS.backend,
  ...SOURCE_OPTIONS,
} as const satisfies OptionTable;
