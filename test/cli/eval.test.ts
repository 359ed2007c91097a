import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { apr } from './command.ts';

const folder = mkdtempSync(join(tmpdir(), 'apr-eval-'));
const text = join(folder, 'text.txt');
writeFileSync(text, 'What is 2+2? 2 + 2 = 4. Hello! How can I help you today? '.repeat(12));
// Cut in the middle of a character.
const cut = join(folder, 'cut.txt');
writeFileSync(cut, Buffer.from('ü'.repeat(400)).subarray(0, -1));
test.after(() => rmSync(folder, { recursive: true }));

test('apr eval prints one line, or one document with --json', async () => {
  const plain = await apr(['eval', 'demo', '--text', text, '-c', '64']);
  assert.is(plain.status, 0, plain.stderr);
  assert.is(plain.stderr, '');
  assert.match(
    plain.stdout,
    /^perplexity \d+\.\d{4} \(\d+\.\d{5} nats\/token over \d+ tokens in \d+ windows of 64, [\d.]+ tok\/s\)\n$/,
  );
  const json = await apr(['eval', 'demo', '--text', text, '-c', '64', '--json']);
  const document = JSON.parse(json.stdout);
  assert.equal(Object.keys(document), [
    'model',
    'text',
    'context_length',
    'perplexity',
    'nats_per_token',
    'scored_tokens',
    'evaluated_tokens',
    'windows',
    'elapsed_ms',
    'tok_per_sec',
    'backend',
  ]);
  assert.is(document.context_length, 64);
  assert.is(document.perplexity.toFixed(4), /[\d.]+/.exec(plain.stdout)![0]);
});

for (const [words, status, message] of [
  [['eval', 'demo'], 2, /--text is missing/],
  [['eval', '--text', text], 2, /expected the path of a model/],
  [['eval', 'demo', '--text', text, '-c', '65'], 2, /--context-length is 65, expected an even number/],
  [['eval', 'demo', '--text', 'no/such.txt'], 3, /no\/such\.txt: no such file/],
  [['eval', 'demo', '--text', cut, '-c', '8'], 2, /cut\.txt: is not valid UTF-8, expected text in UTF-8/],
  [['eval', 'demo', '--text', text, '--backend', 'banana'], 2, /--backend is "banana"/],
  [['eval', 'demo', '--text', text, '-c', '400'], 2, /expected at least two windows of 400/],
] as const) {
  test(`apr ${words.filter((word) => word !== text).join(' ')} → ${status}`, async () => {
    const result = await apr(words);
    assert.is(result.status, status);
    assert.is(result.stdout, '');
    assert.match(result.stderr, message);
  });
}

test.run();
