/** Options of `apr list`. */

import type { OptionTable } from '../options.ts';
import { OUTPUT_OPTIONS } from './output-options.ts';

export const LIST_OPTIONS = { ...OUTPUT_OPTIONS } as const satisfies OptionTable;
