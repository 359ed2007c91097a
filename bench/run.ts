/**
 * The benchmark: this engine and llama.cpp on the same file, in turn, on the same machine.
 *
 *   npm run bench                          everything
 *   npm run bench -- speed --threads 2     some rows; parts can be combined
 */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { ModelMeasurement } from './measurement.ts';
import { generateModel, PRESETS } from './model/presets.ts';
import { installNode24, PEER_VERSION } from './peers/install.ts';
import type { WllamaComparison } from './peers/wllama.ts';
import { measureModel, measureStart } from './processes.ts';
import { CACHE, compiled, REPOSITORY } from './repository.ts';
import { measureSingle, SINGLES, type SinglePart } from './single.ts';
import { type Spread, showSpread, spreadOf } from './statistics.ts';
import { type MemoryRow, render, type SinglesRow, type SpeedRow, START_RUNS, type StartRow } from './table.ts';
import { findChromium } from './web/chromium.ts';

const PARTS = [
  ...(['speed', 'memory', 'types', 'start', 'context', 'load', 'batch', 'tracing', 'bandwidth', 'kernels'] as const),
  ...(['web'] as const),
] as const;
/** Models of `types`: one shape in other tensor types. */
const TYPES = ['q8_0', 'q4_0', 'q6_k', 'iq4_xs', 'mxfp4'].map((type) => `qwen3-0.6b-${type}`);
const LARGE = 'qwen3-coder-30b-a3b-q4_k_m';
const LARGE_CONTEXT = 2048;
/** Two threads against one. */
const THREADS_REACH = 1.7;
const WEB_REACH = 4;
/** What the engine may use beyond 1.06 × file and KV cache. */
const MEMORY_ALLOWANCE = 150e6;
const USAGE = `usage: npm run bench -- [PART …] [options]

  speed      prefill and decode, beside llama.cpp
  memory     the most that a process used
  types      speed of Qwen3-0.6B-shaped files in other tensor types
  start      \`apr run demo\` to its first token
  context    decode far into the context against its start
  load       load to ready against reading the file once
  batch      several sequences decoded together against one
  tracing    what a trace adds to a token
  bandwidth  share of the machine's read bandwidth that decoding moves
  kernels    the prefill kernel beside dots of the same instructions
  web        beside wllama in a page of headless Chromium, where that is installed

  --model NAME      ${Object.keys(PRESETS).join(', ')}, or a GGUF file (default: the first)
  --threads LIST    default 1,2
  --node LIST       current, and 24 which is installed on demand where npm has it (default: both)
  --rounds N        runs of each engine, taken in turn (default 3)
  --prefill N       prompt tokens (default 128)
  --decode N        decode passes (default 32)
  --large           a 30B mixture of experts too (18.6 GB, in 24 GB of memory; not part of "everything")
  --no-peer         without llama.cpp
  --json            the figures as one JSON document
`;

interface NodeBinary {
  readonly version: string;
  readonly path: string;
}

const options = readOptions();
if (options !== undefined) {
  try {
    await bench(options);
  } catch (error) {
    process.stderr.write(`bench: ${(error as Error).message}\n`);
    process.exitCode = 1;
  }
}

function parseOptions() {
  return parseArgs({
    allowPositionals: true,
    options: {
      model: { type: 'string', default: Object.keys(PRESETS)[0]! },
      threads: { type: 'string', default: '1,2' },
      node: { type: 'string', default: 'current,24' },
      rounds: { type: 'string', default: '3' },
      prefill: { type: 'string', default: '128' },
      decode: { type: 'string', default: '32' },
      'no-peer': { type: 'boolean', default: false },
      large: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
}

function readOptions() {
  let parsed: ReturnType<typeof parseOptions>;
  try {
    parsed = parseOptions();
  } catch (error) {
    process.stderr.write(`bench: ${(error as Error).message}\n\n${USAGE}`);
    process.exitCode = 2;
    return undefined;
  }
  const { values, positionals } = parsed;
  if (values.help) {
    process.stdout.write(USAGE);
    return undefined;
  }
  const whole = (text: string): number => (/^[1-9]\d*$/.test(text) ? Number(text) : Number.NaN);
  const threads = values.threads.split(',').map(whole);
  const [rounds, prefill, decode] = [whole(values.rounds), whole(values.prefill), whole(values.decode)];
  const parts = PARTS.filter((part) => positionals.length === 0 || positionals.includes(part));
  const unknown = positionals.filter((part) => !PARTS.some((known) => known === part));
  const nodes = values.node.split(',');
  if (
    unknown.length > 0 ||
    [...threads, rounds, prefill, decode].some(Number.isNaN) ||
    nodes.some((name) => name !== 'current' && name !== '24')
  ) {
    process.stderr.write(USAGE);
    process.exitCode = 2;
    return undefined;
  }
  return {
    model: values.model,
    threads,
    nodes,
    rounds,
    prefill,
    decode,
    parts,
    peer: !values['no-peer'],
    large: values.large,
    json: values.json,
  };
}

async function bench(given: NonNullable<ReturnType<typeof readOptions>>): Promise<void> {
  const { threads, rounds, prefill, decode, parts, peer, large, json } = given;
  const nodes = nodeBinaries(given.nodes);
  // Other work on the machine: rates measured beside it say little, so the table shows it.
  const loadAverage = loadavg()[0]!;
  const speed: SpeedRow[] = [];
  const memory: MemoryRow[] = [];
  const start: StartRow[] = [];
  const singles: SinglesRow[] = [];
  const wantsModel = parts.some((part) => !['types', 'start', 'tracing', 'kernels'].includes(part));
  const model = wantsModel ? modelFile(given.model) : '';
  const fileBytes = wantsModel ? statSync(model).size : 0;
  const compare = async (name: string, file: string, { version, path }: NodeBinary): Promise<void> => {
    for (const count of threads) {
      const context = name === LARGE ? LARGE_CONTEXT : prefill + decode + 64;
      const task = { model: file, threads: count, prefill, decode, context };
      const ours: ModelMeasurement[] = [];
      const theirs: ModelMeasurement[] = [];
      // Memory alone needs one run; rates need both engines in turn, so that a busy minute hits both.
      for (let round = 0; round < (parts.includes('speed') || name !== given.model ? rounds : 1); round++) {
        progress(`${name}, Node ${version}, ${count} threads, round ${round + 1}`);
        ours.push(await measureModel(path, 'ours', task));
        if (peer) theirs.push(await measureModel(path, 'peer', task));
      }
      const spread = (runs: ModelMeasurement[], key: 'decodeTokPerSec' | 'prefillTokPerSec' | 'loadMs'): Spread =>
        spreadOf(runs.map((run) => run[key]));
      const most = (runs: ModelMeasurement[]): number => Math.max(...runs.map((run) => run.peakRssBytes));
      const { kernel, kvCacheBytes } = ours[0]!;
      speed.push({
        model: name,
        node: version,
        threads: count,
        kernel,
        decode: spread(ours, 'decodeTokPerSec'),
        prefill: spread(ours, 'prefillTokPerSec'),
        loadMs: spread(ours, 'loadMs'),
        ...(peer
          ? { peerDecode: spread(theirs, 'decodeTokPerSec'), peerPrefill: spread(theirs, 'prefillTokPerSec') }
          : {}),
      });
      if (name !== given.model) continue;
      memory.push({
        node: version,
        threads: count,
        peakRssBytes: most(ours),
        limitBytes: 1.06 * fileBytes + kvCacheBytes + MEMORY_ALLOWANCE,
        ...(peer ? { peerPeakRssBytes: most(theirs) } : {}),
      });
    }
  };
  for (const node of nodes) {
    if (parts.includes('speed') || parts.includes('memory')) await compare(given.model, model, node);
    for (const name of parts.includes('types') ? TYPES : []) await compare(name, modelFile(name), node);
    if (large) await compare(LARGE, modelFile(LARGE), node);
  }
  for (const part of Object.keys(SINGLES) as SinglePart[]) {
    for (const { version, path } of parts.includes(part) ? nodes : []) {
      for (const count of part === 'kernels' ? [1] : threads) {
        progress(`${part}, Node ${version}, ${count} threads`);
        const row = measureSingle(part, { node: path, model, threads: count, rounds });
        singles.push({ ...row, node: version, threads: count });
      }
    }
  }
  if (parts.includes('speed')) singles.push(...threadRows(speed.filter(({ model: name }) => name === given.model)));
  if (parts.includes('web')) singles.push(...webRows({ model, threads, rounds, prefill, decode }));
  for (const { version, path } of parts.includes('start') ? nodes : []) {
    progress(`Node ${version}, start of the demo`);
    const runs: number[] = [];
    for (let run = 0; run < START_RUNS; run++) runs.push(await measureStart(path, Math.max(...threads)));
    start.push({ node: version, firstTokenMs: spreadOf(runs) });
  }
  const machine = {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryBytes: totalmem(),
    loadAverage,
  };
  const apr = (JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as { version: string }).version;
  const head = {
    apr,
    ...(peer ? { nodeLlamaCpp: PEER_VERSION } : {}),
    machine,
    model: given.model,
    fileBytes,
    prefill,
    decode,
    rounds,
  };
  const rows = {
    ...(parts.includes('speed') || parts.includes('types') || large
      ? { speed: speed.filter(({ model: name }) => name !== given.model || parts.includes('speed')) }
      : {}),
    ...(parts.includes('memory') ? { memory } : {}),
    ...(parts.includes('start') ? { start } : {}),
    ...(singles.length > 0 ? { singles } : {}),
  };
  process.stdout.write(json ? `${JSON.stringify({ ...head, ...rows }, undefined, 2)}\n` : render(head, rows));
}

/** What a second thread brings. */
function threadRows(rows: readonly SpeedRow[]): SinglesRow[] {
  return rows.flatMap((two) => {
    const one = rows.find(({ node, threads }) => node === two.node && threads === 1);
    if (two.threads !== 2 || one === undefined) return [];
    const theirs =
      one.peerDecode === undefined || two.peerDecode === undefined
        ? ''
        : `; theirs ${(two.peerDecode.median / one.peerDecode.median).toFixed(2)}`;
    return {
      title: 'decode with two threads against one',
      node: two.node,
      threads: 2,
      figure: two.decode.median / one.decode.median,
      reach: THREADS_REACH,
      lessIsBetter: false,
      detail: `${showSpread(two.decode)} of ${showSpread(one.decode)} tok/s${theirs}`,
      measured: { one: one.decode, two: two.decode },
    };
  });
}

/** Beside wllama in a page; its published module lacks the instruction that its kernels would need, see wllama.ts. */
function webRows(task: {
  readonly model: string;
  readonly threads: readonly number[];
  readonly rounds: number;
  readonly prefill: number;
  readonly decode: number;
}): SinglesRow[] {
  if (findChromium() === undefined) {
    progress('no Chromium: the comparison in a page is left out');
    return [];
  }
  progress('beside wllama in a page');
  const { model, threads, rounds, prefill, decode } = task;
  const options = { model, threads: threads.join(','), rounds, prefill, decode };
  const words = Object.entries(options).flatMap(([name, value]) => [`--${name}`, `${value}`]);
  const child = spawnSync(process.execPath, [compiled('bench/peers/wllama.js'), ...words, '--json'], {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  if (child.status !== 0) throw new Error(`bench/peers/wllama.js: ${child.stderr.trim() || 'no output'}`);
  const found = JSON.parse(child.stdout) as WllamaComparison;
  return found.rows.flatMap((row) =>
    (['decode', 'prefill'] as const).map((what) => {
      const [ours, theirs] = what === 'decode' ? [row.decode, row.peerDecode] : [row.prefill, row.peerPrefill];
      return {
        title: `${what} in a page against wllama ${found.wllama}, whose module has ${found.peerDotInstructions} dot instructions`,
        node: found.browser,
        threads: row.threads,
        figure: ours.median / theirs.median,
        reach: WEB_REACH,
        lessIsBetter: false,
        detail: `${showSpread(ours)} of ${showSpread(theirs)} tok/s`,
        measured: row,
      };
    }),
  );
}

/** The file itself, or the generated one of that name. */
function modelFile(name: string): string {
  if (PRESETS[name] === undefined) {
    if (existsSync(name)) return name;
    throw new Error(`--model ${name}: no such file, and none of ${Object.keys(PRESETS).join(', ')}`);
  }
  const path = join(CACHE, 'models', `${name}.gguf`);
  if (!existsSync(path)) {
    mkdirSync(join(CACHE, 'models'), { recursive: true });
    progress(`writing ${name}`);
    generateModel(name, path);
  }
  return path;
}

function nodeBinaries(wanted: readonly string[]): NodeBinary[] {
  const binaries: NodeBinary[] = [];
  if (wanted.includes('current')) binaries.push({ version: process.versions.node, path: process.execPath });
  const path = wanted.includes('24') ? installNode24() : undefined;
  if (path !== undefined) {
    const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' });
    binaries.push({ version: stdout.trim().replace(/^v/, ''), path });
  } else if (wanted.includes('24')) progress('no package of Node 24 for this platform: left out');
  return binaries;
}

function progress(text: string): void {
  process.stderr.write(`${text}\n`);
}
