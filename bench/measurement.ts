/** What one measured process reports on its standard output, as one line of JSON. */

export interface ModelMeasurement {
  readonly engine: string;
  readonly threads: number;
  /** Kernel build of ours, CPU features of the peer. */
  readonly kernel: string;
  readonly loadMs: number;
  readonly prefillTokens: number;
  readonly prefillTokPerSec: number;
  readonly decodeTokens: number;
  readonly decodeTokPerSec: number;
  readonly peakRssBytes: number;
  /** 0 where it is not known. */
  readonly kvCacheBytes: number;
}

export interface ModelTask {
  readonly model: string;
  readonly threads: number;
  readonly prefill: number;
  readonly decode: number;
  readonly context: number;
}

/** The task out of the command line: MODEL THREADS PREFILL DECODE CONTEXT. */
export function readTask(args: readonly string[]): ModelTask {
  const [model, ...numbers] = args;
  const [threads, prefill, decode, context] = numbers.map(Number);
  const whole = [threads, prefill, decode, context].every((value) => Number.isInteger(value) && Number(value) > 0);
  if (model === undefined || !whole || numbers.length !== 4) {
    throw new RangeError('expected MODEL THREADS PREFILL DECODE CONTEXT, whole numbers above 0');
  }
  return { model, threads: threads!, prefill: prefill!, decode: decode!, context: context! };
}

/** Ordinary, all different tokens: the ids from 1000 on, every 37th. Both engines get the same. */
export function promptOf(length: number): number[] {
  return Array.from({ length }, (_, i) => 1000 + 37 * i);
}

export function peakRssBytes(): number {
  return process.resourceUsage().maxRSS * 1024;
}
