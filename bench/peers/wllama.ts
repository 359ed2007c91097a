/**
 * This engine and wllama (llama.cpp compiled to WebAssembly) in one page of headless Chromium, cross-origin isolated, on
 * the same file with the same threads.
 *
 *   node dist/bench/peers/wllama.js [--model NAME|FILE] [--threads 1,2] [--prefill N] [--decode N] [--rounds N] [--json]
 */

import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { generateModel, PRESETS } from '../model/presets.ts';
import { CACHE, compiled } from '../repository.ts';
import { type Spread, showSpread, spreadOf } from '../statistics.ts';
import { findChromium, openChromium } from '../web/chromium.ts';
import { serveFiles } from '../web/file-server.ts';
import { installWllama, WLLAMA_VERSION } from './install.ts';
import type { PageRates, PageReport, PageTask } from './wllama-page.ts';

export interface WllamaOptions {
  /** A GGUF file. */
  readonly model: string;
  readonly threads: readonly number[];
  /** Prompt tokens, and decode passes. */
  readonly prefill: number;
  readonly decode: number;
  readonly rounds: number;
  /** Told what is being done. */
  readonly onProgress?: (text: string) => void;
}

export interface WllamaRow {
  readonly threads: number;
  /** Build of our kernels. */
  readonly kernel: string;
  readonly decode: Spread;
  readonly peerDecode: Spread;
  readonly decodeRatio: number;
  readonly prefill: Spread;
  readonly peerPrefill: Spread;
  readonly prefillRatio: number;
  readonly loadMs: Spread;
  readonly peerLoadMs: Spread;
}

export interface WllamaComparison {
  readonly wllama: string;
  readonly browser: string;
  readonly isolated: boolean;
  /** Of the prompt, which is a text: as many as were asked for, or few more. */
  readonly promptTokens: number;
  /** How often `i32x4.dot_i16x8_s` can occur in the peer's module at most. */
  readonly peerDotInstructions: number;
  readonly rows: readonly WllamaRow[];
}

/** Between two reports of the page: one measurement with the slowest peer that was met needs minutes. */
const REPORT_MS = 900_000;

/**
 * Runs the comparison; installs wllama into .cache on demand.
 * @throws Error without Chromium, or with what went wrong in the page
 */
export async function measureWllama(options: WllamaOptions): Promise<WllamaComparison> {
  const chromium = findChromium();
  if (chromium === undefined) throw new Error('no Chromium here; install it, or name one with APR_CHROMIUM');
  const peer = installWllama();
  const wasm = join(peer, 'esm', 'wasm', 'wllama.wasm');
  const rates: PageRates[] = [];
  let settle: { resolve: (report: PageReport & { kind: 'done' }) => void; reject: (error: Error) => void };
  const done = new Promise<PageReport & { kind: 'done' }>((resolve, reject) => {
    settle = { resolve, reject };
  });
  const silent = (): NodeJS.Timeout =>
    setTimeout(() => settle.reject(new Error(`the page has not reported for ${REPORT_MS / 1000} s`)), REPORT_MS);
  let timer = silent();
  const task: PageTask = {
    model: '/model.gguf',
    wllama: '/peer/index.js',
    wllamaWasm: '/peer/wasm/wllama.wasm',
    threads: options.threads,
    prefill: options.prefill,
    decode: options.decode,
    rounds: options.rounds,
  };
  const server = await serveFiles({
    routes: [
      ['/model.gguf', options.model],
      ['/peer/', join(peer, 'esm')],
      // The page's own code lies beside the modules that it imports.
      ['/', compiled('web')],
      ['/', compiled('.')],
    ],
    page: `<!doctype html><title>bench</title><script type="module">
      const fail = (error) =>
        fetch('/report', { method: 'POST', body: JSON.stringify({ kind: 'error', message: String(error) }) });
      import('/bench/peers/wllama-page.js').then((page) => page.measurePage(${JSON.stringify(task)})).catch(fail);
    </script>`,
    onReport: (value) => {
      const report = value as PageReport;
      clearTimeout(timer);
      timer = silent();
      if (report.kind === 'done') settle.resolve(report);
      else if (report.kind === 'error') settle.reject(new Error(`in the page: ${report.message}`));
      else {
        rates.push(report.rates);
        const { engine, threads, decodeTokPerSec, prefillTokPerSec } = report.rates;
        const text = `decode ${decodeTokPerSec.toFixed(2)}, prefill ${prefillTokPerSec.toFixed(2)} tok/s`;
        options.onProgress?.(`${engine}, ${threads} threads: ${text}`);
      }
    },
  });
  const close = openChromium(chromium, `${server.origin}/`);
  try {
    const { browser, isolated } = await done;
    return {
      wllama: WLLAMA_VERSION,
      browser: /Chrome\/[\d.]+/.exec(browser)?.[0].replace('/', ' ') ?? browser,
      isolated,
      promptTokens: rates[0]!.promptTokens,
      peerDotInstructions: countDots(readFileSync(wasm)),
      rows: options.threads.map((threads) => rowOf(rates, threads)),
    };
  } finally {
    clearTimeout(timer);
    await close();
    await server.close();
  }
}

function rowOf(rates: readonly PageRates[], threads: number): WllamaRow {
  const of = (engine: PageRates['engine']): PageRates[] => {
    const found = rates.filter((rate) => rate.engine === engine && rate.threads === threads);
    if (found.length === 0) throw new Error(`${engine} did not run with ${threads} threads`);
    return found;
  };
  const [ours, theirs] = [of('apr'), of('wllama')];
  const spread = (runs: readonly PageRates[], key: 'decodeTokPerSec' | 'prefillTokPerSec' | 'loadMs'): Spread =>
    spreadOf(runs.map((run) => run[key]));
  const [decode, peerDecode] = [spread(ours, 'decodeTokPerSec'), spread(theirs, 'decodeTokPerSec')];
  const [prefill, peerPrefill] = [spread(ours, 'prefillTokPerSec'), spread(theirs, 'prefillTokPerSec')];
  return {
    threads,
    kernel: ours[0]!.kernel!,
    decode,
    peerDecode,
    decodeRatio: decode.median / peerDecode.median,
    prefill,
    peerPrefill,
    prefillRatio: prefill.median / peerPrefill.median,
    loadMs: spread(ours, 'loadMs'),
    peerLoadMs: spread(theirs, 'loadMs'),
  };
}

/** Occurrences of the instruction's bytes, `0xfd 0xba 0x01`, anywhere in the module. */
function countDots(wasm: Uint8Array): number {
  let count = 0;
  for (let at = wasm.indexOf(0xfd); at >= 0; at = wasm.indexOf(0xfd, at + 1)) {
    if (wasm[at + 1] === 0xba && wasm[at + 2] === 0x01) count++;
  }
  return count;
}

export function renderWllama({
  wllama,
  browser,
  isolated,
  promptTokens,
  peerDotInstructions,
  rows,
}: WllamaComparison): string {
  const lines = [
    `wllama ${wllama} in ${browser}${isolated ? ', cross-origin isolated' : ''}; decode, and prefill of ${promptTokens}, in tok/s, load in s`,
    '',
    '| threads | kernel | decode: ours | wllama | ratio | prefill: ours | wllama | ratio | load: ours | wllama |',
    '|---|---|---|---|---|---|---|---|---|---|',
  ];
  for (const row of rows) {
    const seconds = ({ median }: Spread): string => (median / 1000).toFixed(2);
    lines.push(
      `| ${row.threads} | ${row.kernel} | ${showSpread(row.decode, 2)} | ${showSpread(row.peerDecode, 2)} | ` +
        `${row.decodeRatio.toFixed(1)} × | ${showSpread(row.prefill, 2)} | ${showSpread(row.peerPrefill, 2)} | ` +
        `${row.prefillRatio.toFixed(1)} × | ${seconds(row.loadMs)} | ${seconds(row.peerLoadMs)} |`,
    );
  }
  lines.push('');
  lines.push(
    peerDotInstructions === 0
      ? "wllama's published module has no i32x4.dot_i16x8_s in it: llama.cpp's SIMD dot products seem not to be compiled in. Native llama.cpp is the peer to measure by."
      : `wllama's module has i32x4.dot_i16x8_s up to ${peerDotInstructions} times.`,
  );
  return `${lines.join('\n')}\n`;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      model: { type: 'string', default: 'qwen2.5-0.5b-q4_k_m' },
      threads: { type: 'string', default: '1,2' },
      prefill: { type: 'string', default: '64' },
      decode: { type: 'string', default: '16' },
      rounds: { type: 'string', default: '3' },
      json: { type: 'boolean', default: false },
    },
  });
  const whole = (name: string, text: string): number => {
    if (!/^[1-9]\d*$/.test(text)) throw new RangeError(`--${name} is "${text}", expected a whole number above 0`);
    return Number(text);
  };
  const progress = (text: string): void => void process.stderr.write(`${text}\n`);
  const model = modelFile(values.model, progress);
  const [prefill, decode] = [whole('prefill', values.prefill), whole('decode', values.decode)];
  const load = loadavg()[0]!;
  const comparison = await measureWllama({
    model,
    threads: values.threads.split(',').map((text) => whole('threads', text)),
    prefill,
    decode,
    rounds: whole('rounds', values.rounds),
    onProgress: progress,
  });
  if (values.json) {
    process.stdout.write(`${JSON.stringify({ model: values.model, decode, ...comparison }, undefined, 2)}\n`);
    return;
  }
  const machine = `${cpus()[0]?.model.trim() ?? 'unknown'}, ${cpus().length} cores, load average at the start ${load.toFixed(1)}`;
  const size = `${(statSync(model).size / 1e6).toFixed(0)} MB`;
  process.stdout.write(`${machine}\n${values.model} (${size}), ${decode} decode passes\n`);
  process.stdout.write(renderWllama(comparison));
}

/** The file itself, or the generated one of that name. */
function modelFile(name: string, progress: (text: string) => void): string {
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

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    await main();
  } catch (error) {
    process.stderr.write(`wllama: ${(error as Error).message}\n`);
    process.exitCode = error instanceof RangeError || error instanceof TypeError ? 2 : 1;
  }
}
