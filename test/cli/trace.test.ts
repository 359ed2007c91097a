import {
  existsSync,
  linkSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { DEMO } from '../repository.ts';
import { damagedCopy, scaled } from '../trace/damaged.ts';
import { apr } from './command.ts';
import { golden } from './golden.ts';

const PROMPT = 'What is 2+2?';
const folder = mkdtempSync(join(tmpdir(), 'apr-trace-'));
test.after(() => rmSync(folder, { recursive: true }));

/** The same document with statistics as [mean, std], and what differs from machine to machine left out. */
function condensed(value: unknown, key = ''): unknown {
  if (typeof value === 'number') return Number.isInteger(value) ? value : Number(value.toPrecision(4));
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => condensed(item));
  const fields = value as Record<string, unknown>;
  if (key === 'backend') return Object.keys(fields);
  if ('nan_count' in fields && key !== 'logits') return condensed([fields.mean, fields.std]);
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, condensed(field, name)]));
}

test('a table of every layer, the router among its stages, and a verdict', async () => {
  const { status, stdout, stderr } = await apr(['trace', 'demo', PROMPT]);
  assert.is(status, 0);
  assert.is(stderr, '');
  assert.match(stdout, /^demo: qwen3moe, 4 layers of width 256, vocabulary of 1024$/m);
  assert.match(stdout, /^prompt: 20 tokens, figures of the last one, at position 19$/m);
  assert.match(stdout, /^ +3 {2}attn_norm +-?\d\S+ +0\.96\d+ /m);
  assert.is(
    stdout.match(/^ {7}router {18}entropy \S+ of 2\.079 nats, experts \d \(0\.\d{3}\), \d \(0\.\d{3}\)$/gm)?.length,
    4,
  );
  assert.is(stdout.match(/^ {7}output /gm)?.length, 4);
  assert.match(stdout, /^top 5: "2" 14\.54 \(100\.0 %\), /m);
  assert.match(stdout, /^verdict: all values of 4 layers are finite, and no layer's spread jumps\n$/m);
});

test('--json: one document, also followed by generation', async () => {
  const { status, stdout } = await apr(['trace', 'demo', '-p', PROMPT, '--json', '-n', '2', '--layer', '2']);
  assert.is(status, 0);
  assert.is(stdout.match(/\n/g)?.length, 1);
  assert.equal(condensed(JSON.parse(stdout)), golden('trace'));
});

test('--layer and --payload: every activation', async () => {
  const one = await apr(['trace', 'demo', PROMPT, '--layer', '1']);
  assert.is(one.status, 0);
  assert.match(one.stdout, /^ {4}1 {2}attn_norm/m);
  assert.match(one.stdout, /^ {7}attn_q_rope /m);
  assert.not.match(one.stdout, /^ {4}[023] /m);
  const all = await apr(['trace', 'demo', PROMPT, '--payload', '--tokens', 'all']);
  assert.match(all.stdout, /^prompt: 20 tokens, figures of all of them$/m);
  assert.is(all.stdout.match(/^ {7}attn_q_rope /gm)?.length, 4);
});

test('bisection: status 5, the place marked and named', async () => {
  const copy = join(folder, 'scaled.gguf');
  await damagedCopy(DEMO, copy, 'blk.2.attn_norm.weight', scaled(1.5));
  const { status, stdout } = await apr(['trace', 'demo', '-p', PROMPT, '--reference', copy]);
  assert.is(status, 5);
  assert.match(stdout, /^ {4}2 {2}attn_norm +1\.00000 +0\.33333 .* {2}<- first$/m);
  assert.match(
    stdout,
    /: layer 2, attention norm \(blk\.2\.attn_norm\) is where the two part first: .* expected at most 0\.05\n$/,
  );
  const json = await apr(['trace', 'demo', '-p', PROMPT, '--reference', copy, '--json']);
  assert.is(json.status, 5);
  const { comparison } = JSON.parse(json.stdout);
  assert.equal([comparison.first_divergence.layer, comparison.first_divergence.stage], [2, 'attn_norm']);
  assert.is(comparison.reference, copy);
  // Larger limits, and it is none.
  const wide = await apr(['trace', 'demo', '-p', PROMPT, '--reference', copy, '--max-l2', '10', '--threshold', '-1']);
  assert.is(wide.status, 0);
  assert.match(wide.stdout, /no divergence in 83 activations/);
});

test('values that are not finite: status 5, and what can be said all the same', async () => {
  const copy = join(folder, 'nan.gguf');
  await damagedCopy(DEMO, copy, 'blk.1.attn_norm.weight', (bytes) => bytes.setFloat32(0, Number.NaN, true));
  const { status, stdout } = await apr(['trace', copy, PROMPT, '-n', '4']);
  assert.is(status, 5);
  assert.match(stdout, /^ {4}1 {2}attn_norm .* 1 NaN of 256$/m);
  assert.match(stdout, /^generated: nothing, since values are not finite$/m);
  assert.match(stdout, /^verdict: layer 1, attention norm \(blk\.1\.attn_norm\) is the first that is not finite/m);
});

test('--save-tensors and --html write what they were asked for, and nothing else', async () => {
  const [saved, page] = [join(folder, 'saved'), join(folder, 'page.html')];
  const before = readdirSync(folder);
  const words = [
    'trace',
    'demo',
    '-p',
    '<b>&"\x1b[31m\x9b0m',
    '--raw',
    '--save-tensors',
    saved,
    '--stages',
    'output, logits',
    '--html',
    page,
  ];
  const { status, stdout } = await apr(words);
  assert.is(status, 0);
  assert.match(stdout, /^saved: 5 files in /m);
  assert.equal(readdirSync(folder).sort(), [...before, 'page.html', 'saved'].sort());
  const html = readFileSync(page, 'utf8');
  assert.match(html, /^<!doctype html>/);
  assert.match(html, /<title>layer 3, output: std /);
  assert.match(html, /&#60;b&#62;&#38;&#34;/);
  assert.not.match(html, /<b>|<script|https?:|src=/);
  assert.match(html, /\\u001b\[31m\\u009b0m<\/pre>/);
  assert.not.match(html, /[\0-\x08\x0b-\x1f\x7f-\x9f]/);
  const second = await apr([
    'trace',
    'demo',
    '-p',
    '<b>&"\x1b[31m\x9b0m',
    '--raw',
    '--reference',
    saved,
    '--html',
    page,
  ]);
  assert.is(second.status, 0);
  assert.match(second.stdout, /not in the reference: embd, blk\.0\.attn_norm, .* and 70 more$/m);
  assert.match(readFileSync(page, 'utf8'), /aria-label="Difference from the reference/);
});

test('the model is never written over, nor the one that it is compared with', async () => {
  const model = join(folder, 'model.gguf');
  const [symbolic, hard] = [join(folder, 'symbolic.gguf'), join(folder, 'hard.gguf')];
  writeFileSync(model, 'GGUF');
  symlinkSync(model, symbolic);
  linkSync(model, hard);
  for (const [words, what] of [
    [['trace', model, '-p', 'x', '--html', join(folder, '.', 'model.gguf')], 'the model itself'],
    [['trace', model, '-p', 'x', '--html', symbolic], 'the model itself'],
    [['trace', symbolic, '-p', 'x', '--html', hard], 'the model itself'],
    [['trace', 'demo', '-p', 'x', '--reference', model, '--html', model], 'the model itself'],
    // A further part of a split file, for example.
    [['trace', 'demo', '-p', 'x', '--html', model], 'a model file'],
  ] as const) {
    const { status, stderr } = await apr(words);
    assert.is(status, 2);
    assert.match(stderr, new RegExp(`--html is .*\\.gguf, ${what}; give another file`));
    for (const path of [model, symbolic, hard]) assert.is(readFileSync(path, 'utf8'), 'GGUF');
  }
});

test('what is wrong with the command line is said before anything is computed', async () => {
  const page = join(folder, 'no', 'page.html');
  for (const [words, status, message] of [
    [['trace'], 2, /found 0 arguments, expected a model/],
    [['trace', 'demo', '--raw', '-p', ''], 2, /the prompt is empty/],
    [['trace', 'demo', '-p', 'x', '--layer', '9'], 2, /layer is 9, expected one from 0 to 3/],
    [['trace', 'demo', '-p', 'x', '--tokens', 'first'], 2, /--tokens is "first", expected one of last, all/],
    [['trace', 'demo', '-p', 'x', '--stages', 'output'], 2, /add --save-tensors or --reference/],
    [['trace', 'demo', '-p', 'x', '--stages', 'qvk', '--save-tensors', `${folder}/x`], 2, /"qvk" is unknown/],
    [['trace', 'demo', '-p', 'x', '--max-l2', '1'], 2, /add --reference/],
    [['trace', 'demo', '-p', 'x', '--reference', 'backend:gpu'], 2, /"backend:gpu"/],
    [
      ['trace', 'demo', '-p', 'x', '--html', 'x', '--save-tensors', './x'],
      2,
      /--html and --save-tensors are both \.\/x;/,
    ],
    [['trace', 'demo', '-p', 'x', '--html', page], 3, /there is no folder/],
    [['trace', 'demo', '-p', 'x', '--reference', 'other.gguf'], 3, /other\.gguf/],
  ] as const) {
    const result = await apr(words);
    assert.is(result.status, status, `${words.join(' ')}: ${result.stderr}`);
    assert.is(result.stdout, '');
    assert.match(result.stderr, message);
  }
  assert.not(existsSync(join(folder, 'x')));
});

test.run();
