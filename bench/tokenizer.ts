/**
 * The tokenizer by itself: how long a vocabulary takes, what it occupies, and how long a megabyte of text takes.
 *
 *   node --expose-gc dist/bench/tokenizer.js [--all] FILE...     GGUF files, with weights or without
 *
 * Times are the process's own, so that other load does not count. `--all` names each pre-tokeniser in turn in a
 * byte-level file and reports where one takes too long.
 */

import { writeFileSync } from 'node:fs';
import { GgufMetadata } from '../src/formats/gguf/metadata.ts';
import type { Metadata } from '../src/formats/metadata.ts';
import { openModel } from '../src/formats/open-model.ts';
import { openFileSource } from '../src/platform/node/file-source.ts';
import { createTokenizer } from '../src/tokenizer/index.ts';
import { PRE_TOKENIZER_NAMES, preTokenizerOf } from '../src/tokenizer/pre-tokenizer.ts';

const BYTES = 1_000_000;
/** What a second may not be enough for. */
const LIMIT_MS = 1000;

/** About a million bytes each. */
const TEXTS: Readonly<Record<string, string>> = {
  prose: filled('The quick brown fox jumps over the lazy dog, 1234 times; “naïve” cafés say 日本語 and Привет.\n\n'),
  code: filled("  for (let i = 0; i < 10; i++) {\n\t\tresult['key'] += i * 3.14; // don't\n  }\n"),
  letter: 'a'.repeat(BYTES),
  capital: 'A'.repeat(BYTES),
  spaces: ' '.repeat(BYTES),
  breaks: '\n'.repeat(BYTES),
  lines: filled(' \n'),
  digits: '1'.repeat(BYTES),
  symbols: '<'.repeat(BYTES),
  apostrophes: "'".repeat(BYTES),
  ideographs: filled('日'),
  marks: filled('e\u0301'),
};

function filled(unit: string): string {
  return unit.repeat(Math.ceil(BYTES / Buffer.byteLength(unit)));
}

/** Milliseconds that this process has computed. */
function computed(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

const memory = (): number => {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};

async function readMetadata(path: string): Promise<Metadata> {
  const source = await openFileSource(path);
  try {
    return (await openModel(source)).metadata;
  } finally {
    await source.close();
  }
}

/** The same file with another pre-tokeniser named in it. */
function renamed(metadata: Metadata, pre: string): Metadata {
  const keys = [...metadata.keys()];
  const entries = keys.map((key) => [key, { type: metadata.typeOf(key)!, value: metadata.value(key)! }] as const);
  const key = 'tokenizer.ggml.pre';
  return new GgufMetadata(metadata.sourceName, new Map([...entries, [key, { type: 'string', value: pre }]]));
}

function encodeAll(label: string, metadata: Metadata, always: boolean): number {
  const tokenizer = createTokenizer(metadata);
  let slow = 0;
  for (const [name, text] of Object.entries(TEXTS)) {
    const start = computed();
    const { length } = tokenizer.encode(text);
    const ms = computed() - start;
    if (ms > LIMIT_MS) slow++;
    if (!always && ms <= LIMIT_MS) continue;
    const mark = ms > LIMIT_MS ? '  over the limit' : '';
    report(`${label.padEnd(24)} ${name.padEnd(12)} ${ms.toFixed(0).padStart(6)} ms  ${length} tokens${mark}`);
  }
  return slow;
}

const report = (line: string): void => writeFileSync(1, `${line}\n`);

const words = process.argv.slice(2);
const all = words.includes('--all');
const paths = words.filter((word) => word !== '--all');
if (paths.length === 0) {
  process.stderr.write('usage: node [--expose-gc] dist/bench/tokenizer.js [--all] FILE...\n');
  process.exit(2);
}
let slow = 0;
for (const path of paths) {
  const before = memory();
  const start = computed();
  const metadata = await readMetadata(path);
  const read = computed();
  const tokenizer = createTokenizer(metadata);
  const ready = computed();
  const size = (memory() - before) / 1e6;
  const times = `read ${(read - start).toFixed(0)} ms, ready after ${(ready - start).toFixed(0)} ms`;
  report(`${path}: ${tokenizer.vocabularySize} tokens, ${times}, ${size.toFixed(1)} MB`);
  slow += encodeAll('  its own', metadata, true);
  if (!all || tokenizer.model !== 'gpt2') continue;
  const distinct = new Map(PRE_TOKENIZER_NAMES.map((name) => [preTokenizerOf(name), name]));
  for (const name of distinct.values()) slow += encodeAll(`  ${name}`, renamed(metadata, name), false);
}
report(slow === 0 ? `each megabyte took less than ${LIMIT_MS} ms` : `${slow} took longer than ${LIMIT_MS} ms`);
process.exitCode = slow === 0 ? 0 : 1;
