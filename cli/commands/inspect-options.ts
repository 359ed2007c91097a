/** Options of `apr inspect`. */

import type { OptionTable } from '../options.ts';

export const INSPECT_OPTIONS = {
  metadata: { kind: 'flag', group: 'Output', description: 'All metadata too; arrays by their length' },
  json: { kind: 'flag', group: 'Output', description: 'One JSON document' },
  verbose: { kind: 'flag', alias: 'v', group: 'Output', description: 'Stack traces of errors' },
} as const satisfies OptionTable;
