/** Requests of one engine run one after the other, in the order in which they came. */

import { AprError } from '../errors.ts';

export class RequestQueue {
  /** Settles when everybody who came before is done. */
  #tail: Promise<void> = Promise.resolve();
  readonly #closing = new AbortController();

  /**
   * Waits for its turn; the returned function gives it back.
   * @throws AprError ABORTED by the signal, DISPOSED when the queue was closed, also while waiting
   */
  async enter(signal: AbortSignal | undefined): Promise<() => void> {
    const before = this.#tail;
    let release = (): void => {};
    const done = new Promise<void>((resolve) => {
      release = resolve;
    });
    // Whoever gives up while waiting does not let those behind it overtake those before it.
    this.#tail = before.then(() => done);
    const waiting = new AbortController();
    try {
      const given = (from: AbortSignal | undefined, code: keyof typeof MESSAGES) => aborted(from, code, waiting.signal);
      await Promise.race([before, given(signal, 'ABORTED'), given(this.#closing.signal, 'DISPOSED')]);
      throwIf(signal, 'ABORTED');
      throwIf(this.#closing.signal, 'DISPOSED');
    } catch (error) {
      release();
      throw error;
    } finally {
      // A signal may outlive a thousand requests: nothing of them stays on it.
      waiting.abort();
    }
    return release;
  }

  /** Turns away everybody who waits or comes later. */
  close(): void {
    this.#closing.abort();
  }
}

const MESSAGES = { ABORTED: 'the generation was aborted', DISPOSED: 'the engine was disposed' } as const;

function throwIf(signal: AbortSignal | undefined, code: keyof typeof MESSAGES): void {
  if (signal?.aborted) throw new AprError(code, MESSAGES[code]);
}

function aborted(signal: AbortSignal | undefined, code: keyof typeof MESSAGES, waiting: AbortSignal): Promise<never> {
  const promise = new Promise<never>((_, reject) => {
    const fail = (): void => reject(new AprError(code, MESSAGES[code]));
    if (signal?.aborted) fail();
    else signal?.addEventListener('abort', fail, { once: true, signal: waiting });
  });
  promise.catch(() => {}); // the race may have been decided already
  return promise;
}
