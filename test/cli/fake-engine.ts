/** An engine that answers from a list, and the streams around a command, all in this process. */

import { Readable } from 'node:stream';
import type { Environment, OutputStream } from '../../cli/environment.ts';
import type { Engine, EngineOptions, FinalEvent, GenerateEvent, GenerateRequest } from '../../src/index.ts';

export class Output implements OutputStream {
  text = '';
  readonly isTTY: boolean;

  constructor(isTTY: boolean) {
    this.isTTY = isTTY;
  }

  write(text: string, done?: (error?: Error | null) => void): boolean {
    this.text += text;
    if (done !== undefined) queueMicrotask(done);
    return true;
  }
}

export interface Fake extends Environment {
  readonly stdout: Output;
  readonly stderr: Output;
  /** What the command asked for. */
  readonly seen: { source?: string; options?: EngineOptions; request?: GenerateRequest; disposed: number };
}

export interface FakeOptions {
  /** Undefined: a terminal. */
  input?: string;
  pieces?: readonly string[];
  hasChatTemplate?: boolean;
  isTTY?: boolean;
  failure?: Error;
}

export function fake({
  input,
  pieces = ['He', '', 'llo'],
  hasChatTemplate = true,
  isTTY = false,
  failure,
}: FakeOptions): Fake {
  const seen: Fake['seen'] = { disposed: 0 };
  const stdin = Object.assign(Readable.from(input === undefined ? [] : [Buffer.from(input)]), {
    isTTY: input === undefined,
  });
  const backend = { requested: 'auto', ran: 'cpu', threads: 2, kernel: 'simd' } as const;
  const info: Engine['info'] = {
    model: 'fake.gguf',
    name: 'fake',
    format: 'gguf',
    architecture: 'llama',
    parameterCount: 1e6,
    layerCount: 1,
    embeddingLength: 8,
    headCount: 1,
    headCountKv: 1,
    expertCount: 0,
    vocabularySize: 8,
    trainedContextLength: 64,
    contextLength: 64,
    sequences: 1,
    tensorTypes: { F32: 3 },
    hasChatTemplate,
    defaults: { ropeFreqBase: 10_000 },
    warnings: [],
    weightBytes: 1e6,
    kvCacheBytes: 1e3,
    loadMs: 12,
    backend,
  };
  async function* generate(request: GenerateRequest): AsyncGenerator<GenerateEvent> {
    seen.request = request;
    const chosen = pieces.slice(0, request.maxTokens);
    for (const [index, text] of chosen.entries()) yield { event: 'token', index, token_id: index + 1, text };
    if (failure !== undefined) throw failure;
    const final: FinalEvent = {
      event: 'final',
      model: info.model,
      text: chosen.join(''),
      tokens: chosen.map((_, index) => index + 1),
      prompt_tokens: [5, 6],
      tokens_generated: chosen.length,
      max_tokens: request.maxTokens ?? 128,
      stop_reason: 'eos',
      cached_tokens: 0,
      timings: {
        load_ms: 12,
        prefill_ms: 4,
        prefill_tok_per_sec: 500,
        decode_ms: 10,
        decode_tok_per_sec: 200,
        total_ms: 14,
      },
      tok_per_sec: 200,
      inference_time_ms: 14,
      backend,
    };
    yield final;
  }
  const engine = {
    info,
    generate,
    applyChatTemplate: (messages) => messages.map(({ content }) => content).join(''),
    dispose: async () => {
      seen.disposed++;
    },
  } as Partial<Engine> as Engine;
  return {
    stdin,
    stdout: new Output(isTTY),
    stderr: new Output(isTTY),
    seen,
    loadCreateEngine: async () => async (source, options) => {
      seen.source = String(source);
      const { onWarning: _, ...asked } = options ?? {};
      seen.options = asked;
      return engine;
    },
  };
}
