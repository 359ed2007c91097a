/** Another attempt after a failure that may pass. */

import { setTimeout as delay } from 'node:timers/promises';
import { AprError } from '../errors.ts';

export interface RetryOptions {
  /** Attempts in a row that may fail. */
  readonly attempts: number;
  /** Before the second attempt, ms; doubled before each further one. */
  readonly delayMs: number;
  /** The longest that a server may ask us to wait, ms. */
  readonly patienceMs: number;
  /** Told before each wait. */
  readonly onRetry?: (error: AprError, waitMs: number) => void;
}

/**
 * Calls `attempt` until it does not fail, or fails for good.
 * @param progressed whether the attempt that failed got further than the one before: then counting begins anew
 * @throws AprError of the last attempt; ABORTED
 */
export async function withRetries<T>(
  { attempts, delayMs, patienceMs, onRetry }: RetryOptions,
  signal: AbortSignal | undefined,
  attempt: () => Promise<T>,
  progressed: () => boolean = () => false,
): Promise<T> {
  let reached = false;
  for (let failed = 0; ; ) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof AprError) || error.details.passing !== true) throw error;
      const further = progressed();
      reached ||= further;
      // A name that nobody knew from the beginning: this machine is offline, or the name is wrong.
      if (error.details.unknownHost === true && !reached) throw error;
      failed = further ? 1 : failed + 1;
      const asked = error.details.retryAfterMs;
      if (typeof asked === 'number' && asked > patienceMs) {
        const minutes = Math.ceil(asked / 60_000);
        const message = `${error.message}; try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}, as it asks`;
        throw new AprError(error.code, message, error.details, { cause: error });
      }
      if (failed >= attempts) {
        const message = `${error.message}, ${failed} times in a row`;
        throw new AprError(error.code, message, error.details, { cause: error });
      }
      const wait = Math.max(typeof asked === 'number' ? asked : 0, delayMs * 2 ** (failed - 1));
      onRetry?.(error, wait);
      try {
        await delay(wait, undefined, signal === undefined ? {} : { signal });
      } catch (cause) {
        throw new AprError('ABORTED', 'the download was interrupted', {}, { cause });
      }
    }
  }
}
