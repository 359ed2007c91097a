/** Requests of one engine get its slots, parts of the KV cache, in the order in which they come. */

import type { SequenceCache } from '../batch.ts';
import { AprError } from '../errors.ts';

export interface Turn<Slot> {
  readonly slot: Slot;
  /** Gives the slot to whoever waits. */
  release(): void;
}

interface Waiting<Slot> {
  readonly prompt: readonly number[];
  admit(turn: Turn<Slot>): void;
  refuse(error: AprError): void;
}

const MESSAGES = { ABORTED: 'the generation was aborted', DISPOSED: 'the engine was disposed' } as const;

export class RequestQueue<Slot extends SequenceCache> {
  /** Those used longest ago first. */
  readonly #free: Slot[];
  readonly #count: number;
  readonly #waiting: Waiting<Slot>[] = [];
  #closed = false;

  constructor(slots: readonly Slot[]) {
    this.#free = [...slots];
    this.#count = slots.length;
  }

  /** Slots that somebody holds. */
  get busy(): number {
    return this.#count - this.#free.length;
  }

  /**
   * Waits for a slot, and takes the one whose cache is worth most to this prompt.
   * @throws AprError ABORTED by the signal, DISPOSED when the queue was closed, also while waiting
   */
  async enter(prompt: readonly number[], signal: AbortSignal | undefined): Promise<Turn<Slot>> {
    if (this.#closed) throw failure('DISPOSED');
    if (signal?.aborted) throw failure('ABORTED');
    // Whoever waits is first, also for a slot that has just become free.
    if (this.#free.length > 0 && this.#waiting.length === 0) return this.#take(prompt);
    return new Promise((resolve, reject) => {
      const settle = (): void => signal?.removeEventListener('abort', abort);
      const waiting: Waiting<Slot> = {
        prompt,
        admit: (turn) => {
          settle();
          resolve(turn);
        },
        refuse: (error) => {
          settle();
          reject(error);
        },
      };
      const abort = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        waiting.refuse(failure('ABORTED'));
      };
      signal?.addEventListener('abort', abort);
      this.#waiting.push(waiting);
    });
  }

  /** Turns away everybody who waits or comes later. */
  close(): void {
    this.#closed = true;
    for (const waiting of this.#waiting.splice(0)) waiting.refuse(failure('DISPOSED'));
  }

  #take(prompt: readonly number[]): Turn<Slot> {
    let best = 0;
    let most = Number.NEGATIVE_INFINITY;
    this.#free.forEach((slot, index) => {
      const worth = worthOf(slot, prompt);
      if (worth > most) [best, most] = [index, worth];
    });
    const [slot] = this.#free.splice(best, 1) as [Slot];
    let released = false;
    const release = (): void => {
      if (released) return;
      released = true;
      this.#free.push(slot);
      const next = this.#waiting.shift();
      next?.admit(this.#take(next.prompt));
    };
    return { slot, release };
  }
}

/** Tokens of the cache that the prompt begins with, less those that it would overwrite. */
function worthOf({ cached }: SequenceCache, prompt: readonly number[]): number {
  let shared = 0;
  while (shared < cached.length && shared < prompt.length && cached[shared] === prompt[shared]) shared++;
  return 2 * shared - cached.length;
}

function failure(code: keyof typeof MESSAGES): AprError {
  return new AprError(code, MESSAGES[code]);
}
