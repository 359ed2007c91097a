/**
 * Continuous batching: sequences that want tokens computed share passes. Each comes with the tokens behind what its part
 * of the KV cache holds, and gets the logits after its last one; what a pass has no room for goes into the next. A row
 * is computed by the same sums whoever else is in the pass, so that nobody's answer depends on the others.
 */

import { AprError } from './errors.ts';
import type { Backend } from './graph/backend.ts';
import type { PassRecord } from './graph/command.ts';
import { type PassObserver, spanned } from './graph/observer.ts';

/** A part of the KV cache with a sequence of its own. */
export interface SequenceCache {
  /** Number of the sequence, from 0. */
  readonly sequence: number;
  /** Tokens whose keys and values lie in it, by position. */
  readonly cached: number[];
}

/** Tokens of one sequence to be computed. */
export interface PassRequest {
  readonly cache: SequenceCache;
  readonly tokens: readonly number[];
  /** Position of the first token: all before it lie in the cache. */
  readonly position: number;
  /** Logits after no token, after the last one, or after every one. */
  readonly outputs: 'none' | 'last' | 'all';
  /** Looks on at passes of this request alone. */
  readonly observer?: PassObserver | undefined;
  readonly signal?: AbortSignal | undefined;
}

interface Waiting extends PassRequest {
  /** How many of its tokens lie in the cache. */
  done: number;
  /** Its promise is settled: a pass that still computes for it does so in vain. */
  settled: boolean;
  resolve(logits: Float32Array): void;
  reject(error: unknown): void;
}

/** Rows of one request in one pass. */
interface Share {
  readonly entry: Waiting;
  readonly count: number;
}

interface Running {
  readonly shares: readonly Share[];
  readonly abort: AbortController;
}

/**
 * A sequence that was in the last pass is waited for this share of the pass's time, at least and at most so long:
 * whoever takes a moment over its token stays in step with the others, and whoever walked away holds nobody up.
 */
const GRACE_SHARE = 0.1;
const LEAST_GRACE_MS = 1;
const MOST_GRACE_MS = 20;

export class PassScheduler {
  readonly #backend: Backend;
  readonly #record: (rows: number, outputs: number) => PassRecord;
  readonly #waiting: Waiting[] = [];
  /** Sequences of the last pass that have not come back yet. */
  readonly #awaited = new Set<number>();
  #running: Running | undefined;
  #lastPassMs = 0;
  #grace: ReturnType<typeof setTimeout> | undefined;

  constructor(backend: Backend, record: (rows: number, outputs: number) => PassRecord) {
    this.#backend = backend;
    this.#record = record;
  }

  /**
   * Computes the tokens, together with what others want.
   * @returns logits [outputs × vocabulary], a view to be read before anything else is awaited
   * @throws AprError INFERENCE, ABORTED by the signal, DISPOSED
   */
  run(request: PassRequest): Promise<Float32Array> {
    this.#awaited.delete(request.cache.sequence);
    return new Promise((resolve, reject) => {
      const { signal } = request;
      const settle = (): void => {
        entry.settled = true;
        signal?.removeEventListener('abort', abort);
      };
      const entry: Waiting = {
        ...request,
        done: 0,
        settled: false,
        resolve: (logits) => {
          settle();
          resolve(logits);
        },
        reject: (error) => {
          settle();
          reject(error);
        },
      };
      const abort = (): void => this.#abort(entry);
      this.#waiting.push(entry);
      if (signal?.aborted) abort();
      else signal?.addEventListener('abort', abort);
      this.#next();
    });
  }

  /** Nobody waits for this sequence any more. */
  leave(sequence: number): void {
    if (this.#awaited.delete(sequence)) this.#next();
  }

  #abort(entry: Waiting): void {
    const { shares, abort } = this.#running ?? { shares: [] };
    const others = shares.filter((share) => share.entry !== entry);
    if (others.length < shares.length && others.every((share) => share.entry.settled)) {
      // Nobody else wants this pass: it ends now, and its end is what the caller hears of.
      abort?.abort();
      return;
    }
    this.#remove(entry);
    entry.reject(new AprError('ABORTED', 'the generation was aborted'));
    this.#next();
  }

  /** Starts a pass, unless one is running, or sequences in step with those that wait are about to come. */
  #next(): void {
    if (this.#running !== undefined || this.#waiting.length === 0) return;
    if (this.#awaited.size > 0) {
      const grace = Math.min(MOST_GRACE_MS, Math.max(LEAST_GRACE_MS, this.#lastPassMs * GRACE_SHARE));
      this.#grace ??= setTimeout(() => {
        this.#grace = undefined;
        this.#awaited.clear();
        this.#next();
      }, grace);
      return;
    }
    clearTimeout(this.#grace);
    this.#grace = undefined;
    const running = { shares: this.#choose(), abort: new AbortController() };
    this.#running = running;
    void this.#pass(running);
  }

  /** Who goes along: those that want a single row, so that no prompt holds up an answer, then prompts in their order. */
  #choose(): Share[] {
    const { maxRows, maxOutputs } = this.#backend;
    const first = this.#waiting[0]!;
    if (!isShared(first)) return [{ entry: first, count: first.tokens.length }];
    const shared = this.#waiting.filter(isShared).slice(0, maxOutputs);
    const isShort = (entry: Waiting): boolean => entry.tokens.length - entry.done === 1;
    const shares: Share[] = [];
    let room = maxRows;
    for (const entry of [...shared.filter(isShort), ...shared.filter((entry) => !isShort(entry))]) {
      if (room === 0) break;
      const count = Math.min(room, entry.tokens.length - entry.done);
      shares.push({ entry, count });
      room -= count;
    }
    return shares;
  }

  /** Never rejects: what goes wrong goes to those whom the pass was for. */
  async #pass({ shares, abort }: Running): Promise<void> {
    const start = performance.now();
    const tokens: number[] = [];
    const positions: number[] = [];
    const sequences: number[] = [];
    const outputRows: number[] = [];
    /** For each share, its place among the outputs. */
    const places: (number | undefined)[] = [];
    for (const { entry, count } of shares) {
      const { cache, done } = entry;
      const position = entry.position + done;
      // What lies behind `position` is overwritten from here on, also if the pass fails half-way.
      cache.cached.length = Math.min(cache.cached.length, position);
      for (let i = 0; i < count; i++) {
        if (entry.outputs === 'all') outputRows.push(tokens.length);
        tokens.push(entry.tokens[done + i]!);
        positions.push(position + i);
        sequences.push(cache.sequence);
      }
      const complete = done + count === entry.tokens.length;
      const wanted = entry.outputs === 'last' && complete;
      places.push(wanted ? outputRows.push(tokens.length - 1) - 1 : undefined);
    }
    try {
      const { observer } = shares[0]!.entry;
      const record = spanned(observer, 'record', () => this.#record(tokens.length, outputRows.length));
      const inputs = {
        tokens: Int32Array.from(tokens),
        positions: Int32Array.from(positions),
        sequences: Int32Array.from(sequences),
        outputRows: Int32Array.from(outputRows),
      };
      const logits = await this.#backend.execute(record, inputs, observer, abort.signal);
      const size = record.logits?.width ?? 0;
      shares.forEach(({ entry, count }, i) => {
        if (entry.settled) return;
        entry.cache.cached.push(...entry.tokens.slice(entry.done, entry.done + count));
        entry.done += count;
        if (entry.done < entry.tokens.length) return;
        this.#remove(entry);
        this.#awaited.add(entry.cache.sequence);
        const place = places[i];
        // Alone in its pass, unless it wanted one row of logits.
        entry.resolve(place === undefined ? logits : logits.subarray(place * size, (place + 1) * size));
      });
    } catch (error) {
      for (const { entry } of shares) {
        this.#remove(entry);
        entry.reject(error);
      }
    }
    this.#lastPassMs = performance.now() - start;
    this.#running = undefined;
    this.#next();
  }

  #remove(entry: Waiting): void {
    const index = this.#waiting.indexOf(entry);
    if (index !== -1) this.#waiting.splice(index, 1);
  }
}

/** Others may be in its passes. */
function isShared({ observer, outputs }: PassRequest): boolean {
  return observer === undefined && outputs === 'last';
}
