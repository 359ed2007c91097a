import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type BenchDocument, benchTable } from '../../cli/bench/report.ts';
import { promptOf, spreadOf } from '../../cli/bench/subject.ts';
import { apr, finished, type Result, start } from './command.ts';
import { assertGolden } from './golden.ts';

const folder = mkdtempSync(join(tmpdir(), 'apr-bench-'));
test.after(() => rmSync(folder, { recursive: true }));

const QUICK = ['bench', 'demo', '-p', '8', '-n', '3', '-t', '1', '--iterations', '3', '-q'];

/** In a folder where such a package is installed. */
function beside(name: string, source: string): (words: readonly string[]) => Promise<Result> {
  const cwd = join(folder, name, 'inner');
  const place = join(folder, name, 'node_modules', 'node-llama-cpp');
  mkdirSync(cwd, { recursive: true });
  mkdirSync(place, { recursive: true });
  const exports = { '.': { import: './main.js' } };
  writeFileSync(
    join(place, 'package.json'),
    JSON.stringify({ name: 'node-llama-cpp', version: '9.9.9', type: 'module', exports }),
  );
  writeFileSync(join(place, 'main.js'), source);
  return (words) => finished(start(words, { cwd }));
}

/** Generates for ever, or as many tokens as it is told. */
const peer = (tokens: number): string => `
export async function getLlama({ build, gpu }) {
  if (build !== 'never' || gpu !== false) throw new Error('it was asked to build, or for a GPU');
  async function* evaluate() { for (let i = 0; i < ${tokens}; i++) yield i; }
  const sequence = { evaluate, clearHistory: async () => {} };
  const context = { getSequence: () => sequence, dispose: async () => {} };
  const loadModel = async () => ({ createContext: async () => context });
  return { systemInfo: 'AVX9 = 1', loadModel, dispose: async () => {} };
}`;

test('--json: one document, every rate measured', async () => {
  const result = await apr(['bench', 'demo', '-p', '8,16', '-n', '3', '-t', '1,2', '--iterations', '3', '--json']);
  for (const { tok_per_sec } of (JSON.parse(result.stdout) as BenchDocument).results) {
    const { samples, median, least, most } = tok_per_sec;
    assert.is(samples.length, 3);
    assert.ok(least > 0 && least <= median && median <= most && samples.includes(median));
  }
  assertGolden(result, 'bench', (document: Record<string, unknown> & { results: { tok_per_sec: unknown }[] }) => {
    for (const key of ['apr', 'node', 'kernel', 'load_average', 'machine']) document[key] = null;
    for (const each of document.results) each.tok_per_sec = null;
  });
});

test('a table in Markdown, whose columns line up', async () => {
  const { status, stdout, stderr } = await apr(QUICK);
  assert.equal([status, stderr], [0, '']);
  const [head, model, , ...table] = stdout.trimEnd().split('\n');
  assert.match(head!, /^apr \d.*, Node \d.*, (simd|relaxed) kernels; .*, \d+ cores/);
  assert.match(model!, /^demo \(qwen3moe, 7\.61 M parameters\): median \(least–most\) of 3, after 1 to warm up$/);
  assert.match(table[0]!, /^\| test +\| threads +\| tok\/s +\|$/);
  assert.match(table[1]!, /^\|-+\|-+\|-+\|$/);
  assert.match(table[2]!, /^\| prefill 8 +\| 1 +\| [\d.]+ \([\d.]+–[\d.]+\) +\|$/);
  assert.match(table[3]!, /^\| decode 3 +\| 1 +\| [\d.]+ \([\d.]+–[\d.]+\) +\|$/);
  assert.is(new Set(table.map(({ length }) => length)).size, 1);
});

test('--compare measures the package of the working directory in turns', async () => {
  const run = beside('good', peer(1e9));
  const { status, stdout } = await run([...QUICK, '--compare', 'node-llama-cpp', '--json']);
  assert.is(status, 0);
  const document = JSON.parse(stdout) as BenchDocument;
  assert.equal(document.compared_with, { name: 'node-llama-cpp', version: '9.9.9', system: 'AVX9 = 1' });
  for (const { compared, ratio, tok_per_sec } of document.results) {
    assert.is(compared!.samples.length, 3);
    assert.is(ratio, tok_per_sec.median / compared!.median);
  }
  assert.match(benchTable(document), /^\| test +\| threads +\| tok\/s +\| node-llama-cpp tok\/s +\| ratio +\|$/m);
});

test('--compare without the package, or with one that cannot work: a sentence, status 5', async () => {
  const nowhere = await finished(start([...QUICK, '--compare', 'node-llama-cpp'], { cwd: folder }));
  assert.equal([nowhere.status, nowhere.stdout], [5, '']);
  assert.match(nowhere.stderr, /no such package is installed in or above .*; run "npm install node-llama-cpp" there/);
  const broken = await beside(
    'broken',
    'export const getLlama = () => { throw new Error("no binary"); };',
  )([...QUICK, '--compare', 'node-llama-cpp']);
  assert.equal([broken.status, broken.stdout], [5, '']);
  assert.match(broken.stderr, /^apr: --compare node-llama-cpp: the package in .* cannot be used: no binary\n$/);
  const short = await beside('short', peer(2))([...QUICK, '--compare', 'node-llama-cpp']);
  assert.equal([short.status, short.stdout], [8, '']);
  assert.match(short.stderr, /node-llama-cpp stopped after 2 tokens, expected 4: nothing was measured/);
});

for (const [words, message] of [
  [['bench'], /SOURCE is missing/],
  [['bench', 'demo', '-t', '0'], /--threads is "0", expected whole numbers from 1 to 256 with commas between/],
  [['bench', 'demo', '-p', '1,x'], /--prefill is "1,x", expected whole numbers/],
  [['bench', 'demo', '-n', '1,,2'], /--decode is "1,,2", expected whole numbers/],
  [['bench', 'demo', '-p', '', '-n', ''], /both empty, expected something to measure/],
  [['bench', 'demo', '--iterations', '0'], /--iterations is "0", expected a whole number from 1/],
  [['bench', 'demo', '--compare', 'ollama'], /--compare is "ollama", expected one of node-llama-cpp/],
] as const) {
  test(`apr ${words.join(' ')} → 2`, async () => {
    const { status, stdout, stderr } = await apr(words);
    assert.equal([status, stdout], [2, '']);
    assert.match(stderr, message);
  });
}

test('prompts share no prefix, and are tokens of the vocabulary', () => {
  const [a, b] = [promptOf(50, 1, 1024), promptOf(50, 2, 1024)];
  assert.is.not(a[0], b[0]);
  assert.equal(a.slice(1), b.slice(1));
  for (const id of [...a, ...promptOf(20, 9, 3)]) assert.ok(Number.isInteger(id) && id >= 0 && id < 922);
  assert.ok(promptOf(20, 9, 3).every((id) => id < 3));
});

test('median and range', () => {
  assert.equal(spreadOf([3, 1, 2]), { median: 2, least: 1, most: 3 });
  assert.equal(spreadOf([4, 1, 2, 3]), { median: 2.5, least: 1, most: 4 });
});

test.run();
