/** Serves one engine to another thread. */

import { transfer } from 'comlink';
import type { Engine, EngineOptions, GenerateEvent } from '../engine.ts';
import { AprError } from '../errors.ts';
import type { ModelSource } from '../formats/model-source.ts';
import { Job } from './job.ts';
import type { EngineHost, LoadEvent, Outcome } from './remote-protocol.ts';

/** @param create makes the engine, such as `createLocalEngine` over a platform */
export function createEngineHost(create: (source: ModelSource, options: EngineOptions) => Promise<Engine>): EngineHost {
  let engine: Engine | undefined;
  const jobs = new Map<number, Job<LoadEvent> | Job<GenerateEvent>>();
  const loaded = (): Engine => {
    if (engine === undefined) throw new AprError('USAGE', 'no model is loaded yet');
    return engine;
  };

  async function* load(job: Job<LoadEvent>, source: ModelSource, options: EngineOptions): AsyncGenerator<LoadEvent> {
    const onProgress: EngineOptions['onProgress'] = (progress) => job.push({ progress });
    const onWarning: EngineOptions['onWarning'] = (warning) => job.push({ warning });
    engine = await create(source, { ...options, onProgress, onWarning, signal: job.signal });
    yield { info: engine.info };
  }

  return {
    load: (number, source, options) =>
      outcome(() => {
        if (engine !== undefined) throw new AprError('USAGE', 'a model is loaded already; one Worker runs one');
        const job = new Job<LoadEvent>();
        jobs.set(number, job);
        void job.run(load(job, source, options));
        return null;
      }),
    generate: (number, request) =>
      outcome(() => {
        const job = new Job<GenerateEvent>();
        const events = loaded().generate({ ...request, signal: job.signal });
        jobs.set(number, job);
        void job.run(events);
        return null;
      }),
    next: (number) =>
      later(async () => {
        const job = jobs.get(number);
        if (job === undefined) return [];
        try {
          const events = await job.next();
          if (events.length === 0) jobs.delete(number);
          return events;
        } catch (error) {
          jobs.delete(number);
          throw error;
        }
      }),
    cancel: (number) => jobs.get(number)?.cancel(),
    forward: (number, tokens, options) =>
      later(async () => {
        const job = new Job<never>();
        jobs.set(number, job);
        try {
          return await loaded().forward(tokens, { ...options, signal: job.signal });
        } finally {
          jobs.delete(number);
        }
      }).then((result) => ('value' in result ? transfer(result, [result.value.buffer]) : result)),
    tokenize: (text, options) => outcome(() => loaded().tokenize(text, options)),
    detokenize: (tokens, options) => outcome(() => loaded().detokenize(tokens, options)),
    applyChatTemplate: (messages, options) => outcome(() => loaded().applyChatTemplate(messages, options)),
    dispose: () =>
      later(async () => {
        // Jobs of an engine learn from it that it is gone; a load is not one's yet.
        if (engine === undefined) for (const job of jobs.values()) job.cancel();
        await engine?.dispose();
        return null;
      }),
  };
}

function outcome<T>(run: () => T): Outcome<T> {
  try {
    return { value: run() };
  } catch (error) {
    return { error: AprError.from(error).toRecord() };
  }
}

async function later<T>(run: () => Promise<T>): Promise<Outcome<T>> {
  try {
    return { value: await run() };
  } catch (error) {
    return { error: AprError.from(error).toRecord() };
  }
}
