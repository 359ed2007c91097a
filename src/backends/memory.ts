/** Memory is counted before it is allocated. */

import { AprError } from '../errors.ts';

export interface MemoryNeed {
  readonly sourceName: string;
  readonly totalBytes: number;
  /** Part of the total. */
  readonly kvCacheBytes: number;
  readonly contextLength: number;
  readonly sequences: number;
}

/** @throws AprError OUT_OF_MEMORY with both numbers; without a number of available bytes it lets everything pass */
export function checkMemory(need: MemoryNeed, available: number | undefined): void {
  const { sourceName, totalBytes, kvCacheBytes, contextLength, sequences } = need;
  const many = sequences === 1 ? '' : `${sequences} sequences of `;
  if (available === undefined || totalBytes <= available) return;
  throw new AprError(
    'OUT_OF_MEMORY',
    `${sourceName}: needs ${gib(totalBytes)} of memory (of that ${gib(kvCacheBytes)} KV cache for ${many}${contextLength} ` +
      `positions), ${gib(available)} are available; a smaller context length (-c) needs less`,
    { needed: totalBytes, available, kvCacheBytes, sequences },
  );
}

/** The system refused what had been counted. */
export function allocationFailed(bytes: number, cause: unknown): AprError {
  const message = `cannot allocate ${gib(bytes)} of memory: the system refused (a limit on address space, perhaps)`;
  return new AprError('OUT_OF_MEMORY', message, { needed: bytes }, { cause });
}

function gib(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(2)} GiB`;
}
