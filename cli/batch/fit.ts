/** How many sequences fit into memory. */

import { AprError } from '../../src/errors.ts';

/**
 * Out of the refusal of as many as were wanted: how many KV caches would have fitted.
 * @returns undefined for any other error, and where not even one fits
 */
export function fittingSequences(error: unknown): number | undefined {
  if (!(error instanceof AprError) || error.code !== 'OUT_OF_MEMORY') return undefined;
  const [needed, available, kvCacheBytes, sequences] = ['needed', 'available', 'kvCacheBytes', 'sequences'].map((key) =>
    Number(error.details[key]),
  ) as [number, number, number, number];
  const fitting = sequences - Math.ceil((needed - available) / (kvCacheBytes / sequences));
  return fitting >= 1 && fitting < sequences ? fitting : undefined;
}
