/** Options of `apr hex`. */

import type { OptionTable } from '../options.ts';
import { OUTPUT_OPTIONS } from './output-options.ts';
import { SOURCE_OPTIONS } from './source-options.ts';

export const HEX_OPTIONS = {
  tensor: {
    kind: 'text',
    placeholder: 'NAME',
    group: 'Blocks',
    description: 'The tensor; the same as TENSOR behind SOURCE',
  },
  block: {
    kind: 'integer',
    placeholder: 'N',
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    default: '0',
    group: 'Blocks',
    description: 'Begin at block N of the tensor, counted from 0',
  },
  row: {
    kind: 'integer',
    placeholder: 'N',
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    group: 'Blocks',
    description: 'Begin at row N of the tensor',
  },
  limit: {
    kind: 'integer',
    alias: 'n',
    placeholder: 'N',
    min: 1,
    max: 65_536,
    default: '1',
    group: 'Blocks',
    description: 'Show N blocks',
  },
  values: { kind: 'flag', group: 'Output', description: 'Decoded values in place of scales and quants; JSON has both' },
  ...OUTPUT_OPTIONS,
  ...SOURCE_OPTIONS,
} as const satisfies OptionTable;
