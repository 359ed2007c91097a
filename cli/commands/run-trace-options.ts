/** Options of `apr run` that trace it, and what they mean together. */

import { AprError } from '../../src/errors.ts';
import type { TraceLevel } from '../../src/index.ts';
import type { OptionTable, OptionValues } from '../options.ts';

export const TRACE_OPTIONS = {
  trace: { kind: 'flag', group: 'Trace', description: 'Measure the run; a table on stderr' },
  'trace-level': {
    kind: 'choice',
    placeholder: 'LEVEL',
    choices: ['none', 'basic', 'layer', 'payload', 'chrome'],
    default: 'basic',
    group: 'Trace',
    description: 'How much',
  },
  'trace-payload': { kind: 'flag', group: 'Trace', description: 'The same as --trace-level payload' },
  'trace-output': {
    kind: 'text',
    placeholder: 'FILE',
    group: 'Trace',
    description: 'Write the events to FILE, one JSON document',
  },
  'trace-steps': {
    kind: 'text',
    placeholder: 'LIST',
    default: 'all',
    group: 'Trace',
    description: 'Only events of these steps, such as attention,ffn',
  },
  'trace-verbose': { kind: 'flag', group: 'Trace', description: 'Every token of a pass, not the last alone' },
  profile: { kind: 'flag', group: 'Trace', description: 'A table of operations and threads on stderr' },
} as const satisfies OptionTable;

export interface TraceRequest {
  readonly level: TraceLevel;
  readonly output: string | undefined;
  readonly steps: string | undefined;
  readonly verbose: boolean;
  /** Print the table of phases. */
  readonly table: boolean;
  readonly profile: boolean;
}

/** Undefined: nothing is to be traced. @throws AprError USAGE for options that do not go together */
export function traceRequest(values: OptionValues<typeof TRACE_OPTIONS>): TraceRequest | undefined {
  const { 'trace-level': asked, 'trace-payload': payload = false, 'trace-output': output } = values;
  if (payload && asked !== undefined && asked !== 'payload') {
    throw usage(`--trace-payload and --trace-level ${asked} exclude each other; give one of them`, '--trace-payload');
  }
  const details = (['trace-steps', 'trace-verbose'] as const).find((name) => values[name] !== undefined);
  const wanted = values.trace === true || payload || asked !== undefined || output !== undefined;
  if (details !== undefined && !wanted) {
    throw usage(`--${details} says how to trace, but nothing is traced; add --trace`, `--${details}`);
  }
  const level = payload ? 'payload' : (asked ?? 'basic');
  if (level === 'none' && output !== undefined) {
    throw usage(
      '--trace-output needs events, and --trace-level none makes none; choose another level',
      '--trace-output',
    );
  }
  if (level === 'chrome' && output === undefined) {
    throw usage('--trace-level chrome makes a file; say where with --trace-output FILE', '--trace-level');
  }
  const profile = values.profile === true;
  const traced = wanted && level !== 'none';
  if (!traced && !profile) return undefined;
  return {
    level: level === 'none' || !traced ? 'basic' : level,
    output,
    steps: values['trace-steps'],
    verbose: values['trace-verbose'] === true,
    table: traced,
    profile,
  };
}

function usage(message: string, option: string): AprError {
  return new AprError('USAGE', message, { option });
}
