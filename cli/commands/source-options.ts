/** Options of every command that takes a model. */

import type { OptionTable } from '../options.ts';

export const SOURCE_OPTIONS = {
  offline: {
    kind: 'flag',
    group: 'Model',
    description: 'Never use the network: a model that is not on this disk is not found',
  },
} as const satisfies OptionTable;
