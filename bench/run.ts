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
import { measureModel, measureStart } from './processes.ts';
import { CACHE, REPOSITORY } from './repository.ts';
import { measureSingle, SINGLES, type SinglePart, type SingleRow } from './single.ts';
import { type Spread, showSpread, spreadOf } from './statistics.ts';

const PARTS = ['speed', 'memory', 'types', 'start', 'context', 'load', 'batch', 'tracing'] as const;
/** Models of `types`: one shape in other tensor types. */
const TYPES = ['q8_0', 'q4_0', 'q6_k', 'iq4_xs', 'mxfp4'].map((type) => `qwen3-0.6b-${type}`);
/** What decoding is to reach of llama.cpp's rate. */
const REACH = { simd: 0.7, relaxed: 0.85, types: 0.7 } as const;
const START_RUNS = 5;
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

  --model NAME      ${Object.keys(PRESETS).join(', ')}, or a GGUF file (default: the first)
  --threads LIST    default 1,2
  --node LIST       current, and 24 which is installed on demand where npm has it (default: both)
  --rounds N        runs of each engine, taken in turn (default 3)
  --prefill N       prompt tokens (default 128)
  --decode N        decode passes (default 32)
  --no-peer         without llama.cpp
  --json            the figures as one JSON document
`;

interface SpeedRow {
  readonly model: string;
  readonly node: string;
  readonly threads: number;
  readonly kernel: string;
  readonly decode: Spread;
  readonly prefill: Spread;
  readonly peerDecode?: Spread;
  readonly peerPrefill?: Spread;
  readonly loadMs: Spread;
}

interface MemoryRow {
  readonly node: string;
  readonly threads: number;
  readonly peakRssBytes: number;
  readonly limitBytes: number;
  readonly peerPeakRssBytes?: number;
}

interface StartRow {
  readonly node: string;
  readonly firstTokenMs: Spread;
}

interface SinglesRow extends SingleRow {
  readonly node: string;
  readonly threads: number;
}

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
    json: values.json,
  };
}

async function bench(given: NonNullable<ReturnType<typeof readOptions>>): Promise<void> {
  const { threads, rounds, prefill, decode, parts, peer, json } = given;
  const nodes = nodeBinaries(given.nodes);
  // Other work on the machine: rates measured beside it say little, so the table shows it.
  const loadAverage = loadavg()[0]!;
  const speed: SpeedRow[] = [];
  const memory: MemoryRow[] = [];
  const start: StartRow[] = [];
  const singles: SinglesRow[] = [];
  const wantsModel = parts.some((part) => part !== 'types' && part !== 'start' && part !== 'tracing');
  const model = wantsModel ? modelFile(given.model) : '';
  const fileBytes = wantsModel ? statSync(model).size : 0;
  const compare = async (name: string, file: string, { version, path }: NodeBinary): Promise<void> => {
    for (const count of threads) {
      const task = { model: file, threads: count, prefill, decode, context: prefill + decode + 64 };
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
  }
  for (const part of Object.keys(SINGLES) as SinglePart[]) {
    for (const { version, path } of parts.includes(part) ? nodes : []) {
      for (const count of threads) {
        progress(`${part}, Node ${version}, ${count} threads`);
        const row = measureSingle(part, { node: path, model, threads: count, rounds });
        singles.push({ ...row, node: version, threads: count });
      }
    }
  }
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
    ...(parts.includes('speed') || parts.includes('types')
      ? { speed: speed.filter(({ model: name }) => name !== given.model || parts.includes('speed')) }
      : {}),
    ...(parts.includes('memory') ? { memory } : {}),
    ...(parts.includes('start') ? { start } : {}),
    ...(singles.length > 0 ? { singles } : {}),
  };
  process.stdout.write(json ? `${JSON.stringify({ ...head, ...rows }, undefined, 2)}\n` : render(head, rows));
}

type Head = {
  apr: string;
  nodeLlamaCpp?: string;
  machine: { cpu: string; cores: number; memoryBytes: number; loadAverage: number };
  model: string;
  fileBytes: number;
  prefill: number;
  decode: number;
  rounds: number;
};

interface Rows {
  speed?: SpeedRow[];
  memory?: MemoryRow[];
  start?: StartRow[];
  singles?: SinglesRow[];
}

function render(head: Head, rows: Rows): string {
  const { machine } = head;
  const peer = head.nodeLlamaCpp === undefined ? 'no peer' : `node-llama-cpp ${head.nodeLlamaCpp} on the CPU`;
  const lines = [
    `apr ${head.apr}, ${peer}; ${machine.cpu}, ${machine.cores} cores, ${(machine.memoryBytes / 2 ** 30).toFixed(0)} GiB; load average at the start ${machine.loadAverage.toFixed(1)}`,
  ];
  if (head.fileBytes > 0) {
    const size = `${(head.fileBytes / 1e6).toFixed(0)} MB`;
    lines.push(
      `${head.model} (${size}), prefill of ${head.prefill}, ${head.decode} decode passes, median (least–most) of ${head.rounds}`,
    );
  }
  if (rows.speed) {
    lines.push(
      '',
      '| model | Node | threads | kernel | decode tok/s: ours | theirs | ratio | prefill tok/s: ours | theirs | ratio | load s |',
    );
    lines.push('|---|---|---|---|---|---|---|---|---|---|---|');
    for (const row of rows.speed) {
      const pair = (ours: Spread, theirs: Spread | undefined): string =>
        theirs === undefined
          ? `${showSpread(ours, 2)} | – | –`
          : `${showSpread(ours, 2)} | ${showSpread(theirs, 2)} | ${((100 * ours.median) / theirs.median).toFixed(0)} %`;
      const { model, node, threads, kernel, decode, peerDecode, prefill, peerPrefill, loadMs } = row;
      const reach = model !== head.model ? REACH.types : REACH[kernel === 'relaxed' ? 'relaxed' : 'simd'];
      const short = peerDecode !== undefined && decode.median / peerDecode.median < reach ? ' **short**' : '';
      lines.push(
        `| ${model}${short} | ${node} | ${threads} | ${kernel} | ${pair(decode, peerDecode)} | ${pair(prefill, peerPrefill)} | ${(loadMs.median / 1000).toFixed(2)} |`,
      );
    }
  }
  if (rows.memory) {
    lines.push(
      '',
      '| Node | threads | peak memory MB | limit MB (1.06 × file + KV cache + 150) | theirs MB |',
      '|---|---|---|---|---|',
    );
    for (const { node, threads, peakRssBytes, limitBytes, peerPeakRssBytes } of rows.memory) {
      const over = peakRssBytes > limitBytes ? ' **over**' : '';
      const theirs = peerPeakRssBytes === undefined ? '–' : megabytes(peerPeakRssBytes);
      lines.push(`| ${node} | ${threads} | ${megabytes(peakRssBytes)}${over} | ${megabytes(limitBytes)} | ${theirs} |`);
    }
  }
  if (rows.start) {
    lines.push('', `| Node | start of \`apr run demo\` to its first token, ms, of ${START_RUNS} |`, '|---|---|');
    for (const { node, firstTokenMs } of rows.start) lines.push(`| ${node} | ${showSpread(firstTokenMs, 0)} |`);
  }
  if (rows.singles) {
    lines.push('', '| what | Node | threads | figure | to reach | of |', '|---|---|---|---|---|---|');
    for (const { title, node, threads, figure, reach, lessIsBetter, detail } of rows.singles) {
      const short = (lessIsBetter ? figure > reach : figure < reach) ? ' **short**' : '';
      const bar = `${lessIsBetter ? '≤' : '≥'} ${reach}`;
      lines.push(`| ${title} | ${node} | ${threads} | ${figure.toFixed(2)}${short} | ${bar} | ${detail} |`);
    }
  }
  return `${lines.join('\n')}\n`;
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
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
