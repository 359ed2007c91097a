/** `apr tokenize`: ids and text as they stand on stdout. */

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { skipped } from '../skip.ts';
import { SHARED } from '../tokenizer/fixtures.ts';
import { apr } from './command.ts';

let folder: string;
test.before(() => {
  folder = mkdtempSync(join(tmpdir(), 'apr-'));
});
test.after(() => rmSync(folder, { recursive: true }));

const output = async (...words: string[]): Promise<string> => {
  const { status, stdout, stderr } = await apr(['tokenize', ...words]);
  assert.equal([status, stderr], [0, ''], words.join(' '));
  return stdout;
};

test('text to ids: nothing is added, and nothing in it is special unless asked for', async () => {
  assert.is(await output('encode', 'demo', '-p', 'Hello'), '480\n');
  const plain = JSON.parse(await output('encode', 'demo', '-p', '<|im_end|>', '--json'));
  assert.equal(Object.keys(plain), ['tokens']);
  assert.ok(plain.tokens.length > 1 && !plain.tokens.includes(1023));
  assert.is(await output('encode', 'demo', '-p', '<|im_end|>', '--special'), '1023\n');
  assert.is(await output('encode', 'demo', '-p', '', '--json'), '{"tokens":[]}\n');
});

test('a file goes in byte for byte, and comes out again', async () => {
  const path = join(folder, 'text.txt');
  const text = '\ufeff one\r\n\n日本 👋 <|im_end|>\n\n';
  writeFileSync(path, text);
  const { tokens } = JSON.parse(await output('encode', 'demo', '-i', path, '--json'));
  const words = (tokens as number[]).map(String);
  assert.is(await output('decode', 'demo', ...words), `${text}\n`);
  assert.equal(JSON.parse(await output('decode', 'demo', `[${words.join(', ')}]`, '--json')), { text });
  const piped = await apr(['tokenize', 'encode', 'demo', '-i', '-'], text);
  assert.is(piped.stdout, `${words.join(' ')}\n`);
});

test('control tokens have no text unless asked for', async () => {
  assert.is(await output('decode', 'demo', '1022', '480', '1023'), 'Hello\n');
  assert.is(await output('decode', 'demo', '1022,480', '--special'), '<|im_start|>Hello\n');
});

test('pieces and counts', async () => {
  assert.is(await output('encode', 'demo', '-p', 'Hello 日', '--count'), '5\n');
  assert.is(await output('encode', 'demo', '-p', '', '--count', '--quiet'), '0\n');
  assert.equal(JSON.parse(await output('encode', 'demo', '-p', 'Hello', '--count', '--json')), { count: 1 });
  const { tokens, pieces } = JSON.parse(await output('encode', 'demo', '-p', 'Hello 日\n', '--pieces', '--json'));
  assert.is(tokens.length, pieces.length);
  assert.is(pieces[0], 'Hello');
  const bytes = pieces.flatMap((piece: string | number[]) =>
    typeof piece === 'string' ? [...Buffer.from(piece)] : piece,
  );
  assert.is(Buffer.from(bytes).toString('utf8'), 'Hello 日\n');
  const lines = (await output('encode', 'demo', '-p', '<|im_start|>Hello 日', '--pieces', '--special')).split('\n');
  assert.is(lines[0], '1022  "<|im_start|>"');
  assert.is(lines[1], ' 480  "Hello"');
  assert.ok(
    lines.some((line) => /^ *\d+ {2}<e6( [0-9a-f]{2})*>$/.test(line)),
    lines.join('\n'),
  );
  assert.is(await output('decode', 'demo', '480', '--pieces'), '480  "Hello"\n');
});

test('the text may stand behind the model, as for apr run', async () => {
  assert.is(await output('encode', 'demo', 'Hello you'), await output('encode', 'demo', '-p', 'Hello you'));
});

test('words that are wrong', async () => {
  const cases: [string[], RegExp][] = [
    [[], /expected apr tokenize encode SOURCE/],
    [['count', 'demo'], /found "count", expected apr tokenize encode SOURCE/],
    [['encode'], /SOURCE is missing/],
    [['encode', 'demo', 'Hello', 'you'], /found 2 words behind SOURCE, expected one text; put quotes around it/],
    [['encode', 'demo', 'Hello', '-p', 'you'], /the prompt is given by the PROMPT argument and -p/],
    [['encode', 'demo', '-p', 'a', '-i', 'b'], /the prompt is given by -p and -i/],
    [['decode', 'demo'], /no ids/],
    [['decode', 'demo', '1', 'two'], /found "two" among the ids/],
    [['decode', 'demo', '1.5'], /found "1.5"/],
    [['decode', 'demo', '1024'], /token 1024 is not in the vocabulary of 1024 tokens/],
    [['decode', 'demo', '1', '--bos'], /--bos is for encode/],
    [['decode', 'demo', '1', '--count'], /--count is for encode/],
    [['encode', 'demo', '-p', 'a', '--count', '--pieces'], /--count and --pieces exclude each other/],
  ];
  for (const [words, message] of cases) {
    const { status, stdout, stderr } = await apr(['tokenize', ...words]);
    assert.equal([status, stdout], [2, ''], words.join(' '));
    assert.match(stderr, message);
  }
  const { status, stdout } = await apr(['tokenize', 'encode', join(folder, 'none.gguf'), '-p', 'a', '--json']);
  assert.is(status, 3);
  assert.is(JSON.parse(stdout).error.code, 'NOT_FOUND');
});

const vocabulary = `${SHARED}vocab/ggml-vocab-llama-spm.gguf`;
if (existsSync(vocabulary)) {
  test('files that hold a vocabulary and no weights', async () => {
    assert.is(await output('encode', vocabulary, '-p', 'Hello', '--bos'), '1 15043\n');
    assert.is(await output('encode', vocabulary, '-p', '<s>Hello', '--bos', '--special'), '1 15043\n');
    assert.is(await output('decode', vocabulary, '15043', '3186'), 'Hello world\n');
    const [first] = readFileSync(`${vocabulary}.inp`, 'utf8').split('\n__ggml_vocab_test__\n');
    const [ids] = readFileSync(`${vocabulary}.out`, 'utf8').split('\n');
    assert.is(await output('encode', vocabulary, '-p', first!), `${ids!.trim()}\n`);
  });
} else skipped(1, 'no ../shared beside the repository: files without weights were not tried');

test.run();
