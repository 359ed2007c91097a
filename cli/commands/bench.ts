/** `apr bench SOURCE` */

import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { AprError } from '../../src/errors.ts';
import { findPeer, loadPeer, type Peer } from '../bench/node-llama-cpp.ts';
import { ownSubject } from '../bench/own.ts';
import { type BenchDocument, type BenchResult, benchTable } from '../bench/report.ts';
import { promptOf, type Subject, spreadOf } from '../bench/subject.ts';
import type { Environment } from '../environment.ts';
import { type OptionValues, readNumbers } from '../options.ts';
import { packageVersion } from '../package.ts';
import { onlySource } from '../positionals.ts';
import type { OutputForm } from '../render/error.ts';
import { jsonLine } from '../render/json.ts';
import { visibleLine, write } from '../render/terminal.ts';
import { plural } from '../render/units.ts';
import { resolveSource, withAdvice } from '../source.ts';
import type { BENCH_OPTIONS } from './bench-options.ts';

const MAX_THREADS = 256;
const MAX_TOKENS = 2 ** 20;
/** Threads of an engine that has just finished go on polling for a while, and would take the cores from the next one. */
const SETTLE_MS = 300;

interface Test {
  readonly kind: 'prefill' | 'decode';
  readonly tokens: number;
}

/** @throws AprError for everything that goes wrong */
export async function bench(
  positionals: readonly string[],
  values: OptionValues<typeof BENCH_OPTIONS>,
  form: OutputForm,
  { stdout, stderr, loadCreateEngine }: Environment,
): Promise<void> {
  const source = onlySource(positionals, 'apr bench SOURCE');
  const tests = readTests(values);
  if (tests.length === 0) {
    throw new AprError('USAGE', '--prefill and --decode are both empty, expected something to measure');
  }
  const threads = readNumbers('--threads', values.threads ?? String(availableParallelism()), 1, MAX_THREADS);
  const [iterations, warmup] = [values.iterations ?? 5, values.warmup ?? 1];
  const peerPackage = values.compare === undefined ? undefined : findPeer(process.cwd());
  const path = await resolveSource(source, values, { stderr });
  const createEngine = await loadCreateEngine();
  const longest = Math.max(0, ...tests.map(({ tokens }) => tokens));
  // A few more positions than any test takes.
  const contextLength = longest + 16;
  const progress = (text: string): void => {
    if (stderr.isTTY && !values.quiet) stderr.write(`\r\x1b[2K${visibleLine(text)}`);
  };
  const load = averageLoad();
  const results: BenchResult[] = [];
  let document: Omit<BenchDocument, 'results'> | undefined;
  let peer: Peer | undefined;
  try {
    for (const count of threads) {
      progress(`loading ${source}`);
      const engine = await createEngine(path, { threads: count, contextLength, modelName: source }).catch((error) => {
        throw withAdvice(error, source);
      });
      const subjects: Subject[] = [ownSubject(engine)];
      try {
        const { info } = engine;
        if (peerPackage !== undefined) {
          peer ??= await loadPeer(peerPackage, path, Math.max(...threads));
          subjects.push(await peer.subject(count, contextLength, longest));
        }
        document ??= {
          model: source,
          name: info.name,
          architecture: info.architecture,
          parameters: info.parameterCount,
          apr: packageVersion(),
          node: process.versions.node,
          kernel: info.backend.kernel,
          machine: { cpu: cpus()[0]?.model.trim() ?? 'unknown', cores: cpus().length, memory_bytes: totalmem() },
          load_average: load,
          iterations,
          warmup,
          compared_with: peer === undefined ? null : { name: peer.name, version: peer.version, system: peer.system },
        };
        for (const test of tests) {
          const what = `${test.kind} of ${plural(test.tokens, 'token')}, ${plural(count, 'thread')}`;
          const rates = await measure(test, subjects, info.vocabularySize, warmup, iterations, (round) =>
            progress(`${what}: ${round} of ${iterations}`),
          );
          const [own, other] = rates.map((samples) => ({ ...spreadOf(samples), samples }));
          results.push({
            test: test.kind,
            tokens: test.tokens,
            threads: count,
            tok_per_sec: own!,
            compared: other ?? null,
            ratio: other === undefined ? null : own!.median / other.median,
          });
        }
      } finally {
        for (const subject of subjects) await subject.dispose();
      }
    }
  } finally {
    await peer?.dispose();
    progress('');
  }
  const whole: BenchDocument = { ...document!, results };
  if (load !== null && load > cpus().length / 2 && !values.quiet && form === 'text') {
    const cores = plural(cpus().length, 'core');
    stderr.write(`other work was running (load average ${load.toFixed(1)} on ${cores}): the figures are too low\n`);
  }
  await write(stdout, form === 'json' ? jsonLine(whole) : benchTable(whole));
}

/** Tokens a second of every repetition, of each subject: they take turns, so that a busy moment hits all. */
async function measure(
  { kind, tokens }: Test,
  subjects: readonly Subject[],
  vocabularySize: number,
  warmup: number,
  iterations: number,
  onRound: (round: number) => void,
): Promise<number[][]> {
  const rates: number[][] = subjects.map(() => []);
  for (let round = -warmup; round < iterations; round++) {
    onRound(Math.max(0, round + 1));
    const prompt = promptOf(kind === 'prefill' ? tokens : 1, round + warmup + 1, vocabularySize);
    for (const [i, subject] of subjects.entries()) {
      if (subjects.length > 1) await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
      const rate = kind === 'prefill' ? await subject.prefill(prompt) : await subject.decode(prompt[0]!, tokens);
      if (round >= 0) rates[i]!.push(rate);
    }
  }
  return rates;
}

function readTests(values: OptionValues<typeof BENCH_OPTIONS>): Test[] {
  const list = (name: '--prefill' | '--decode', text: string): number[] =>
    text === '' ? [] : readNumbers(name, text, 1, MAX_TOKENS);
  return [
    ...list('--prefill', values.prefill ?? '128').map((tokens) => ({ kind: 'prefill', tokens }) as const),
    ...list('--decode', values.decode ?? '32').map((tokens) => ({ kind: 'decode', tokens }) as const),
  ];
}

/** Processes that want a core, over the last minute; null where the system does not tell. */
function averageLoad(): number | null {
  const [minute = 0] = loadavg();
  return process.platform === 'win32' ? null : minute;
}
