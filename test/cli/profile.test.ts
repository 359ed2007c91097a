/** `apr profile` in this process. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { runCli } from '../../cli/cli.ts';
import type { PhaseDocument, ProfileDocument } from '../../cli/commands/profile.ts';
import { createEngine } from '../../src/index.ts';
import { FIXTURES } from '../repository.ts';
import { fake, Output } from './fake-engine.ts';
import { golden } from './golden.ts';

const folder = mkdtempSync(join(tmpdir(), 'apr-'));

async function profile(
  words: readonly string[],
): Promise<{ status: number; stdout: string; stderr: string; loaded: boolean }> {
  const [stdout, stderr] = [new Output(false), new Output(false)];
  let loaded = false;
  const loadCreateEngine = async () => {
    loaded = true;
    return createEngine;
  };
  const environment = { ...fake({ input: '' }), stdout, stderr, loadCreateEngine };
  const status = await runCli(['profile', ...words], environment);
  return { status, stdout: stdout.text, stderr: stderr.text, loaded };
}

const close = (found: number, expected: number, what: string): void => {
  assert.ok(Math.abs(found - expected) <= 1e-6 * Math.abs(expected) + 1e-3, `${what}: ${found}, expected ${expected}`);
};
/** A document with the kinds of its values in their place; of an array the element that says most. */
function kinds(value: unknown): unknown {
  if (Array.isArray(value)) {
    const length = (kind: unknown): number => JSON.stringify(kind).length;
    return value
      .map(kinds)
      .sort((a, b) => length(b) - length(a))
      .slice(0, 1);
  }
  if (typeof value !== 'object' || value === null) return value === null ? null : typeof value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, kinds(item)]));
}

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

test('a mixture of experts: parts add up, calls are counted, the experts that were chosen are what was read', async () => {
  const stacks = join(folder, 'stacks.txt');
  const page = join(folder, 'page.html');
  const words = ['demo', 'Hello', '-n', '5', '-t', '2', '--json', '--flamegraph', stacks, '--html', page];
  const { status, stdout, stderr } = await profile(words);
  assert.equal([status, stderr], [0, '']);
  const document = JSON.parse(stdout) as ProfileDocument;
  assert.equal(
    [document.model, document.generated_tokens, document.backend.threads, document.warnings],
    ['demo', 5, 2, []],
  );
  const { prefill, decode, load } = document;
  assert.equal([prefill.tokens, decode.tokens], [document.prompt_tokens, 4]);
  const phases: [string, PhaseDocument][] = [
    ['prefill', prefill],
    ['decode', decode],
  ];
  for (const [name, phase] of phases) {
    close(sum(phase.operations.map(({ total_us }) => total_us)) + phase.other_us, phase.total_us, name);
    close(sum(phase.operations.map(({ weight_bytes }) => weight_bytes ?? 0)), phase.weight_bytes, `bytes of ${name}`);
    close((phase.tokens * 1e6) / phase.total_us, phase.tok_per_sec, `rate of ${name}`);
    for (const { operation, calls, total_us, mean_us, weight_bytes, gb_per_sec, type } of phase.operations) {
      close(mean_us * calls, total_us, operation);
      assert.is(weight_bytes === null, type === null, `${operation} reads weights if it has a type`);
      if (weight_bytes !== null) close(gb_per_sec! * 1e3 * total_us, weight_bytes, operation);
    }
  }
  close(sum(load.parts.map(({ us }) => us)) + load.other_us, load.total_us, 'load');
  const calls = (operation: string): number =>
    sum(decode.operations.filter((one) => one.operation === operation).map((one) => one.calls));
  // Four blocks; gate, up and down of the experts.
  assert.equal([calls('top_k'), calls('mul_mat_id'), calls('embed')], [4 * 4, 3 * 4 * 4, 4]);
  const experts = decode.operations.filter(({ operation }) => operation === 'mul_mat_id');
  // One token chooses as many experts as the model uses: the same bytes in every pass.
  for (const { weight_bytes, type } of experts) assert.is(weight_bytes! % 4, 0, type ?? '');
  assert.equal(
    document.threads.map(({ thread }) => thread),
    [0, 1],
  );
  for (const { busy_us, waiting_us } of document.threads) assert.ok(busy_us > 0 && waiting_us > 0);
  const whole = document.threads.map(({ busy_us, waiting_us }) => busy_us + waiting_us);
  close(whole[0]!, whole[1]!, 'what a thread does not compute it waits');
  const { read_bandwidth } = document;
  if (read_bandwidth !== null) {
    assert.equal(kinds({ ...document, read_bandwidth: null }), golden('profile'));
    assert.ok(read_bandwidth.gb_per_sec > 0 && read_bandwidth.threads === 2);
    close(decode.bandwidth_share!, decode.gb_per_sec / read_bandwidth.gb_per_sec, 'share');
  }

  const lines = readFileSync(stacks, 'utf8').trimEnd().split('\n');
  const totals: Record<string, number> = {};
  for (const line of lines) {
    const [, phase, us] = /^([^; ]+)[^\d]*.* (\d+)$/.exec(line)!;
    totals[phase!] = (totals[phase!] ?? 0) + Number(us);
  }
  for (const [name, phase] of phases) assert.ok(Math.abs(totals[name]! - phase.total_us) <= lines.length, name);
  assert.ok(lines.some((line) => /^decode;gate_up;mul_mat_id Q4_K \d+$/.test(line)));

  const html = readFileSync(page, 'utf8');
  assert.ok(html.startsWith('<!doctype html>') && !/<script|src=|href=/.test(html));
  assert.match(html, /The last pass of decode: 1 row at position \d+/);
  assert.match(html, /thread 1<\/text>/);
});

test('a dense model: a token reads every matrix once', async () => {
  const model = join(FIXTURES, 'demo-qwen2-q8_0.gguf');
  const { status, stdout } = await profile([model, '-n', '3', '-t', '1', '--json', '--warmup', '0']);
  assert.is(status, 0);
  const { decode } = JSON.parse(stdout) as ProfileDocument;
  const engine = await createEngine(model, { threads: 1 });
  const { weightBytes } = engine.info;
  await engine.dispose();
  const products = decode.operations.filter(({ operation }) => operation === 'mul_mat');
  const perToken = sum(products.map(({ weight_bytes }) => weight_bytes!)) / decode.tokens;
  // In memory rows lie interleaved, some with their scales unpacked; vectors and a separate embedding are not multiplied.
  assert.ok(perToken > 0.7 * weightBytes && perToken < 1.1 * weightBytes, `${perToken} of ${weightBytes}`);
});

test('--no-selfcheck: loading has every part but the check', async () => {
  const parts = async (...words: string[]): Promise<string[]> => {
    const { status, stdout } = await profile(['demo', 'Hi', '-n', '1', '--warmup', '0', '--json', ...words]);
    assert.is(status, 0);
    return (JSON.parse(stdout) as ProfileDocument).load.parts.map(({ name }) => name);
  };
  const all = await parts();
  assert.ok(all.includes('self_check'));
  assert.equal(
    await parts('--no-selfcheck'),
    all.filter((name) => name !== 'self_check'),
  );
});

test('the table, and the reference backend', async () => {
  const { status, stdout } = await profile([
    'demo',
    'Hi',
    '-n',
    '2',
    '--warmup',
    '0',
    '--backend',
    'reference',
    '--raw',
  ]);
  assert.is(status, 0);
  assert.match(stdout, /^prefill: [\d.]+ ms, \d+ tokens?, [\d.]+ tok\/s, [\d.]+ GB\/s of weights/m);
  assert.match(stdout, /^ {2}mulMatId Q4_K +\d+ +[\d.]+ ms/m);
  assert.match(stdout, /^thread 0: busy [\d.]+ ms, waiting /m);
  assert.match(stdout, /^read bandwidth: /m);
});

for (const [words, status, message] of [
  [[], 2, /found 0 arguments, expected a model and at most one prompt/],
  [['demo', '--kernel', 'fast'], 2, /--kernel is "fast", expected one of simd, relaxed/],
  [['demo', '-n', '0'], 2, /expected a whole number from 1 to/],
  [['demo', '--flamegraph', join(folder, 'absent', 'x')], 3, /there is no folder .*absent to write it to/],
  [['demo', '--html', join(folder, 'x'), '--flamegraph', `${folder}/./x`], 2, /--flamegraph and --html are both .*x;/],
  [['demo', '--kernel', 'simd', '--backend', 'reference'], 2, /--kernel and --backend reference exclude each other/],
  [['demo', '--quiet', '--verbose'], 2, /--quiet and --verbose exclude each other/],
  [['demo', '--html', join(FIXTURES, 'tiny-qwen3-q5_k.gguf')], 2, /--html is .*tiny-qwen3-q5_k\.gguf, a model file;/],
  [['demo', '--html', '/dev/null'], 2, /is a device or pipe, expected the name of a file/],
] as const) {
  test(`refused before anything is loaded: profile ${words.join(' ')}`, async () => {
    const outcome = await profile(words);
    assert.equal([outcome.status, outcome.loaded], [status, false]);
    assert.match(outcome.stderr, message);
  });
}

test('the folder of this test is removed', () => {
  rmSync(folder, { recursive: true });
});

test.run();
