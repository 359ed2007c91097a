/** Work whose results are fetched from another thread. */

import { AprError } from '../errors.ts';

/** The work waits when so many results have not been fetched: enough to never make it wait for a message's way. */
const RUN_AHEAD = 16;

export class Job<T> {
  readonly #controller = new AbortController();
  #results: T[] = [];
  #end: { readonly error?: AprError } | undefined;
  /** Somebody waits for results, or the work for its results to be fetched. */
  #wake = (): void => {};

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Runs the work; what it yields are the results. */
  async run(work: AsyncIterable<T>): Promise<void> {
    try {
      for await (const result of work) {
        this.push(result);
        while (this.#results.length >= RUN_AHEAD && !this.signal.aborted) await this.#change();
      }
      this.#finish({});
    } catch (error) {
      this.#finish({ error: AprError.from(error) });
    }
  }

  push(result: T): void {
    this.#results.push(result);
    this.#wake();
  }

  /**
   * All results that are there, at least one; none when the work has ended.
   * @throws AprError that ended the work
   */
  async next(): Promise<T[]> {
    for (;;) {
      // Whoever aborts wants no results any more, but to know that it is over.
      if (this.signal.aborted) this.#results = [];
      if (this.#results.length > 0) {
        const results = this.#results;
        this.#results = [];
        this.#wake();
        return results;
      }
      if (this.#end?.error !== undefined) throw this.#end.error;
      if (this.#end !== undefined) return [];
      await this.#change();
    }
  }

  cancel(): void {
    this.#controller.abort();
    this.#wake();
  }

  #finish(end: { readonly error?: AprError }): void {
    this.#end = end;
    this.#wake();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      const before = this.#wake;
      this.#wake = () => {
        this.#wake = () => {};
        before();
        resolve();
      };
    });
  }
}
