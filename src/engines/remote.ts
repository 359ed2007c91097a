/** An engine that runs in another thread, seen from this one. */

import { type Endpoint, type Remote, releaseProxy, wrap } from 'comlink';
import type {
  ChatMessage,
  ChatOptions,
  Engine,
  EngineInfo,
  EngineOptions,
  ForwardOptions,
  GenerateEvent,
  GenerateRequest,
  TokenizeOptions,
} from '../engine.ts';
import { AprError } from '../errors.ts';
import { type ModelSource, nameOfSource } from '../formats/model-source.ts';
import type { EngineHost, LoadEvent, Outcome } from './remote-protocol.ts';

/** An {@link Engine} whose text functions answer later, since they run in the engine's thread too. */
export interface RemoteEngine extends Omit<Engine, 'tokenize' | 'detokenize' | 'applyChatTemplate'> {
  tokenize(text: string, options?: TokenizeOptions): Promise<number[]>;
  detokenize(tokens: readonly number[], options?: { special?: boolean }): Promise<string>;
  applyChatTemplate(messages: readonly ChatMessage[], options?: ChatOptions): Promise<string>;
}

/** The thread that an engine host runs in (see host.ts). */
export interface EngineThread {
  /** Where the host was exposed. */
  readonly endpoint: Endpoint;
  /** Rejects with the reason when the thread dies. */
  readonly death: Promise<never>;
  /** Ends the thread. */
  terminate(): void;
}

/**
 * Loads a model in the thread, which then belongs to the engine and ends with it.
 * @throws AprError whatever loading throws there; LOAD_FAILED when the thread dies; what `onProgress` or `onWarning` throws
 */
export async function connectEngine(
  thread: EngineThread,
  source: ModelSource,
  options: EngineOptions = {},
): Promise<RemoteEngine> {
  const connection = new Connection(thread);
  const { onProgress, onWarning, signal, ...sent } = options;
  try {
    const aborted = (): AprError => new AprError('ABORTED', `loading ${nameOfSource(source)} was aborted`);
    if (signal?.aborted) throw aborted();
    // A URL object cannot be cloned, its text can.
    const sendable = source instanceof URL ? source.href : source;
    const job = connection.newJob();
    await connection.call(connection.host.load(job, sendable, sent));
    // The thread is given up at once: it may be waiting for a server that has forgotten it.
    const abort = new Promise<never>((_, reject) => {
      signal?.addEventListener('abort', () => reject(aborted()), { once: true });
    });
    abort.catch(() => {}); // the load may have ended before
    for (;;) {
      const events = await Promise.race([connection.call(connection.host.next(job)), abort]);
      for (const event of events as readonly LoadEvent[]) {
        if ('info' in event) return new ConnectedEngine(connection, event.info);
        if ('warning' in event) onWarning?.(event.warning);
        else onProgress?.(event.progress);
      }
      if (events.length === 0) throw new AprError('LOAD_FAILED', 'the engine ended without a model');
    }
  } catch (error) {
    connection.close();
    if (error instanceof AprError && error.details.died === true) {
      throw new AprError('LOAD_FAILED', error.message, error.details, { cause: error });
    }
    throw error;
  }
}

/** Calls to the host that end when the thread does. */
class Connection {
  readonly host: Remote<EngineHost>;
  readonly #thread: EngineThread;
  readonly #end: Promise<never>;
  #close!: (reason: AprError) => void;
  #jobs = 0;

  constructor(thread: EngineThread) {
    this.#thread = thread;
    this.host = wrap<EngineHost>(thread.endpoint);
    this.#end = new Promise<never>((_, reject) => {
      this.#close = reject;
    });
    this.#end.catch(() => {}); // whoever calls hears of it
    thread.death.catch((cause: unknown) => {
      const reason = cause instanceof Error ? cause.message : String(cause);
      const message = `the engine's thread died (${reason}); create a new engine`;
      this.#close(new AprError('INFERENCE', message, { died: true }, { cause }));
    });
  }

  newJob(): number {
    return ++this.#jobs;
  }

  /** @throws AprError that the host answered, INFERENCE when the thread dies, DISPOSED, USAGE for what cannot be sent */
  async call<T>(answer: Promise<Outcome<T>>): Promise<T> {
    let outcome: Outcome<T>;
    try {
      outcome = await Promise.race([answer, this.#end]);
    } catch (cause) {
      if (cause instanceof AprError) throw cause;
      if (cause instanceof Error && cause.name === 'DataCloneError') {
        const message = `this cannot be sent to the engine's thread, expected plain data: ${cause.message}`;
        throw new AprError('USAGE', message, {}, { cause });
      }
      throw AprError.from(cause);
    }
    if ('error' in outcome) throw AprError.from(outcome.error);
    return outcome.value;
  }

  close(): void {
    this.#close(new AprError('DISPOSED', 'the engine was disposed'));
    this.host[releaseProxy]();
    this.#thread.terminate();
  }
}

class ConnectedEngine implements RemoteEngine {
  readonly info: EngineInfo;
  readonly #connection: Connection;
  #disposed: Promise<void> | undefined;

  constructor(connection: Connection, info: EngineInfo) {
    this.#connection = connection;
    this.info = info;
  }

  async *generate(request: GenerateRequest): AsyncGenerator<GenerateEvent, void, undefined> {
    const { signal, observer, ...sent } = request ?? {};
    refuseFunctions({ observer });
    const { host } = this.#open();
    const connection = this.#connection;
    const job = connection.newJob();
    await connection.call(host.generate(job, sent));
    const cancel = (): void => void host.cancel(job);
    if (signal?.aborted) cancel();
    else signal?.addEventListener('abort', cancel, { once: true });
    let ended = false;
    try {
      for (;;) {
        const events = await connection.call(host.next(job)).catch((error: unknown) => {
          ended = true;
          throw error;
        });
        if (events.length === 0) {
          ended = true;
          return;
        }
        for (const event of events as readonly GenerateEvent[]) {
          // What had come before the abort is not wanted any more; the error comes next.
          if (signal?.aborted) break;
          yield event;
        }
      }
    } finally {
      signal?.removeEventListener('abort', cancel);
      if (!ended && this.#disposed === undefined) {
        cancel();
        // Its turn is over when this returns, as with an engine in this thread.
        await connection.call(host.next(job)).catch(() => {});
      }
    }
  }

  async forward(tokens: readonly number[], options: ForwardOptions = {}): Promise<Float32Array> {
    const { signal, observer, onLogits, ...sent } = options;
    refuseFunctions({ observer, onLogits });
    const { host } = this.#open();
    // Telling the other side to stop would come too late for a short pass.
    if (signal?.aborted) throw new AprError('ABORTED', 'the forward pass was aborted');
    const job = this.#connection.newJob();
    const answer = this.#connection.call(host.forward(job, Array.from(tokens), sent));
    const cancel = (): void => void host.cancel(job);
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      return await answer;
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  async tokenize(text: string, options?: TokenizeOptions): Promise<number[]> {
    return this.#connection.call(this.#open().host.tokenize(text, options));
  }

  async detokenize(tokens: readonly number[], options?: { special?: boolean }): Promise<string> {
    return this.#connection.call(this.#open().host.detokenize(tokens, options));
  }

  async applyChatTemplate(messages: readonly ChatMessage[], options?: ChatOptions): Promise<string> {
    return this.#connection.call(this.#open().host.applyChatTemplate(messages, options));
  }

  dispose(): Promise<void> {
    this.#disposed ??= this.#dispose();
    return this.#disposed;
  }

  async #dispose(): Promise<void> {
    try {
      await this.#connection.call(this.#connection.host.dispose());
    } catch (error) {
      // A thread that is dead holds nothing any more.
      if (!(error instanceof AprError && error.details.died === true)) throw error;
    } finally {
      this.#connection.close();
    }
  }

  #open(): Connection {
    if (this.#disposed !== undefined) throw new AprError('DISPOSED', 'the engine was disposed');
    return this.#connection;
  }
}

function refuseFunctions(given: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    const message = `${name} is called in the middle of a computation, which an engine in another thread cannot wait for; create the engine in this thread for it (createLocalEngine)`;
    throw new AprError('USAGE', message, { option: name });
  }
}
