/**
 * A pass as the interpreter runs it: int32 words, one record a call.
 *
 *   word 0  kernel number (index in KERNELS, or TRANSFER)
 *   word 1  bank
 *   word 2  1 when all workers must meet before this call, otherwise 0
 *   word 3  items
 *   word 4  items that a worker takes at least
 *   word 5  how workers divide it, a number of SHARE (shares.ts)
 *   word 6… MAX_ARGUMENTS arguments, unused ones 0
 *
 * TRANSFER's arguments: source pointer, destination bank, destination pointer, bytes; word 1 is the source bank.
 */

import { MAX_ARGUMENTS } from './kernels.ts';

export const CALL = { KERNEL: 0, BANK: 1, BARRIER: 2, ITEMS: 3, LEAST: 4, SHARE: 5, ARGUMENTS: 6 } as const;
export const CALL_WORDS = CALL.ARGUMENTS + MAX_ARGUMENTS;
