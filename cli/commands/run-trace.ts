/** Traces a run of the engine: opens the file before anything is computed, writes it when the run is over. */

import type { EngineInfo, FinalEvent, Recording, TraceRecorder, TraceRun } from '../../src/index.ts';
import type { OutputStream } from '../environment.ts';
import { visibleLine } from '../render/terminal.ts';
import type { TraceRequest } from './run-trace-options.ts';

export interface RunTrace {
  /** For `createEngine` and for the request. */
  readonly observer: TraceRecorder;
  /** The run is over, or has failed with `error`: nothing is recorded any more. The first call counts. */
  end(info: EngineInfo, final: FinalEvent | undefined, error?: unknown): void;
  /** Writes the file and prints the tables. A run that failed has its own error to tell: this one is a warning then. */
  write(): Promise<void>;
  /** Leaves no file behind; after {@link write} it does nothing. */
  discard(): Promise<void>;
}

/**
 * @param stderr where the tables go; undefined prints none
 * @throws AprError USAGE for steps that there are not, NOT_FOUND, OVERWRITE, IO for a file that cannot be written
 */
export async function openRunTrace(request: TraceRequest, stderr: OutputStream, quiet: boolean): Promise<RunTrace> {
  const { createTraceRecorder, createFileSink } = await import('../../src/index.ts');
  const { level, output, steps, verbose, profile } = request;
  const observer = await createTraceRecorder({ level, verbose, profile, ...(steps === undefined ? {} : { steps }) });
  const sink = output === undefined ? undefined : await createFileSink(output, { force: true });
  let ended: { readonly info: EngineInfo; readonly recording: Recording } | undefined;
  return {
    observer,
    end: (info, final, error) => {
      if (ended !== undefined) return;
      if (error !== undefined) observer.fail(error);
      ended = { info, recording: observer.finish(describeRun(info, final)) };
    },
    write: async () => {
      if (ended === undefined) return;
      const { info, recording } = ended;
      const failed = recording.failure !== undefined;
      try {
        if (sink !== undefined) {
          const encoder = new TextEncoder();
          for (const piece of batches(observer.text(recording))) await sink.write(encoder.encode(piece));
          await sink.commit();
        }
      } catch (error) {
        if (!failed) throw error;
        stderr.write(`apr: warning: the trace was not written: ${visibleLine(String(error))}\n`);
      } finally {
        await sink?.discard();
      }
      for (const warning of recording.warnings) stderr.write(`apr: warning: ${visibleLine(warning)}\n`);
      if (quiet || failed) return;
      const { layerTable, payloadTable, phaseTable, profileTable } = await import('../render/trace-table.ts');
      if (request.table) {
        const summary = observer.summary(recording);
        stderr.write(phaseTable(summary, recording.counters));
        if (level !== 'basic') stderr.write(layerTable(summary));
        if (level === 'payload') stderr.write(payloadTable(observer.lastPass(recording), verbose));
      }
      if (profile) {
        const { measureReadBandwidth } = await import('../../src/index.ts');
        const bandwidth = await measureReadBandwidth(info.backend.threads);
        stderr.write(profileTable(observer.profile(recording), bandwidth));
      }
    },
    discard: async () => sink?.discard(),
  };
}

export function describeRun(info: EngineInfo, final: FinalEvent | undefined): TraceRun {
  return {
    model: {
      name: info.name,
      architecture: info.architecture,
      num_layers: info.layerCount,
      hidden_dim: info.embeddingLength,
      vocab_size: info.vocabularySize,
      num_heads: info.headCount,
    },
    threads: info.backend.threads,
    kernel: info.backend.kernel,
    ...(final === undefined
      ? {}
      : {
          outcome: {
            promptTokens: final.prompt_tokens.length,
            cachedTokens: final.cached_tokens,
            generatedTokens: final.tokens_generated,
            ended: final.stop_reason === 'eos',
            prefillMs: final.timings.prefill_ms,
            decodeMs: final.timings.decode_ms,
          },
        }),
  };
}

const BATCH_CHARACTERS = 1 << 18;

/** Small pieces joined, so that a write is worth its while. */
function* batches(pieces: Iterable<string>): Generator<string> {
  let batch = '';
  for (const piece of pieces) {
    batch += piece;
    if (batch.length < BATCH_CHARACTERS) continue;
    yield batch;
    batch = '';
  }
  yield batch;
}
