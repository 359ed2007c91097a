import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { runCli } from '../../cli/cli.ts';
import { AprError } from '../../src/errors.ts';
import type { FinalEvent, GenerateEvent } from '../../src/index.ts';
import { type Fake, type FakeOptions, fake } from './fake-engine.ts';

async function run(words: string[], options: FakeOptions = {}): Promise<Fake & { status: number }> {
  const environment = fake(options);
  const status = await runCli(['run', ...words], environment);
  return { ...environment, status };
}

const user = (content: string) => ({ role: 'user', content });

test('text: the pieces and a newline on stdout, nothing on stderr', async () => {
  const { status, stdout, stderr, seen } = await run(['m.gguf', 'Hi']);
  assert.is(status, 0);
  assert.is(stdout.text, 'Hello\n');
  assert.is(stderr.text, '');
  assert.is(seen.source, 'm.gguf');
  assert.equal(seen.options, { backend: 'auto', modelName: 'm.gguf' });
  assert.equal(seen.request, { messages: [user('Hi')] }, 'defaults are left to the engine');
  assert.is(seen.disposed, 1);
});

test('every option reaches the engine', async () => {
  const words = 'm.gguf Hi -n 2 -t 3 -c 0 --temperature 0.5 --top-k 40 --top-p 0.9 --min-p 0.05 --seed 007'.split(' ');
  const more = '--repeat-penalty 1.1 --repeat-last-n -1 --stop 5 --stop x --ignore-eos --logprobs 2 --json --no-gpu';
  const { status, seen } = await run([...words, ...more.split(' '), '--system', 'Be kind.', '--offline']);
  assert.is(status, 0);
  assert.equal(seen.options, { backend: 'cpu', threads: 3, contextLength: 0, modelName: 'm.gguf' });
  assert.equal(seen.request, {
    messages: [{ role: 'system', content: 'Be kind.' }, user('Hi')],
    maxTokens: 2,
    temperature: 0.5,
    topK: 40,
    topP: 0.9,
    minP: 0.05,
    seed: 7,
    repeatPenalty: 1.1,
    repeatLastN: -1,
    stop: ['5', 'x'],
    ignoreEos: true,
    logprobs: 2,
  });
  assert.is((await run(['m.gguf', 'Hi', '--no-gpu', '--backend', 'reference'])).seen.options?.backend, 'reference');
});

test('template or not', async () => {
  assert.equal((await run(['m', 'Hi', '--raw'])).seen.request, { prompt: 'Hi' });
  assert.equal((await run(['m', 'Hi'], { hasChatTemplate: false })).seen.request, { prompt: 'Hi' });
  assert.equal((await run(['m', 'Hi', '--chat'], { hasChatTemplate: false })).seen.request, { messages: [user('Hi')] });
  const { status, stderr, seen } = await run(['m', 'Hi', '--system', 'S'], { hasChatTemplate: false });
  assert.is(status, 2);
  assert.match(stderr.text, /--system needs a chat template/);
  assert.is(seen.disposed, 1);
});

test('the prompt: argument, -p, file, standard input', async () => {
  const content = async (words: string[], input?: string): Promise<unknown> =>
    (await run(['m', ...words], input === undefined ? {} : { input })).seen.request?.messages?.[0]?.content;
  assert.is(await content(['Hi'], 'not read'), 'Hi');
  assert.is(await content(['-p', '-1 + 2'], 'not read'), '-1 + 2');
  assert.is(await content(['-p', ''], 'not read'), '');
  assert.is(await content(['-p', '123']), '123');
  assert.is(await content([], 'piped\n'), 'piped');
  assert.is(await content([], 'piped\r\n'), 'piped');
  assert.is(await content([], '  two\n\n'), '  two\n', 'one newline goes, nothing else');
  assert.is(await content(['-i', '-'], 'piped'), 'piped');
  const folder = mkdtempSync(join(tmpdir(), 'apr-'));
  try {
    const file = join(folder, 'prompt.txt');
    const exact = '\uFEFF  Grüße, 世界 \u0000\n\n';
    writeFileSync(file, exact);
    assert.is(await content(['-i', file], 'not read'), exact, 'every byte of the file');
    writeFileSync(file, '');
    assert.is(await content(['-i', file]), '');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('no prompt on a terminal says what to do', async () => {
  const { status, stderr, seen } = await run(['m']);
  assert.is(status, 2);
  assert.match(stderr.text, /^apr: no prompt; give it behind SOURCE, with -p TEXT, with -i FILE, or through a pipe\n$/);
  assert.is(seen.source, undefined, 'no model is loaded for it');
});

test('demo is the model of the package; a path of that name is not', async () => {
  assert.match((await run(['demo', 'Hi'])).seen.source ?? '', /models-fixtures.demo-qwen3moe-q4_k_m\.gguf$/);
  assert.is((await run(['./demo', 'Hi'])).seen.source, './demo');
});

test('--json: one document, without the event name', async () => {
  for (const words of [['--json'], ['-f', 'json'], ['--format=json', '-v']]) {
    const { status, stdout } = await run(['m', 'Hi', ...words]);
    assert.is(status, 0);
    const document = JSON.parse(stdout.text) as FinalEvent;
    assert.is(document.text, 'Hello');
    assert.equal(document.tokens, [1, 2, 3]);
    assert.equal(document.backend, { requested: 'auto', ran: 'cpu', threads: 2, kernel: 'simd' });
    assert.not.ok('event' in document);
  }
});

test('--stream: an event a line, also beside --json', async () => {
  for (const words of [['--stream'], ['--stream', '--json']]) {
    const { stdout, stderr } = await run(['m', 'Hi', ...words]);
    assert.is(stderr.text, '');
    const events = stdout.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as GenerateEvent);
    assert.equal(
      events.map(({ event }) => event),
      ['token', 'token', 'token', 'final'],
    );
    assert.equal(
      events
        .map(({ text }) => text)
        .slice(0, -1)
        .join(''),
      events.at(-1)?.text,
    );
  }
});

test('a summary on stderr: on a terminal, with -v or --benchmark, not with -q', async () => {
  const summary = /^3 tokens, prefill of 2: 500\.0 tok\/s, decode: 200\.0 tok\/s, load: 12 ms\n$/m;
  assert.match((await run(['m', 'Hi'], { isTTY: true })).stderr.text, summary);
  assert.is((await run(['m', 'Hi', '-q'], { isTTY: true })).stderr.text, '');
  assert.match((await run(['m', 'Hi', '-v'])).stderr.text, summary);
  assert.match(
    (await run(['m', 'Hi', '-v'])).stderr.text,
    /fake: llama, 1\.00 M parameters.*assumed: ropeFreqBase 10000/,
  );
  assert.match((await run(['m', 'Hi', '--benchmark'])).stderr.text, summary);
  assert.match((await run(['m', 'Hi', '--benchmark', '-q'])).stderr.text, summary);
  assert.is((await run(['m', 'Hi', '--benchmark', '--json'])).stderr.text, '');
});

test('a terminal does not obey what a model says', async () => {
  const pieces = ['a\x1b[2J', 'b\tc\n', '\x9b31m'];
  assert.is((await run(['m', 'Hi'], { pieces, isTTY: true })).stdout.text, 'a\\u001b[2Jb\tc\n\\u009b31m\n');
  assert.is((await run(['m', 'Hi'], { pieces })).stdout.text, `${pieces.join('')}\n`, 'a pipe gets what was generated');
});

test('an error behind some tokens: its status, and a document of its own in the stream', async () => {
  const failure = new AprError('INFERENCE', 'a kernel thread died (x); create a new engine', { thread: 1 });
  const text = await run(['m', 'Hi'], { failure });
  assert.is(text.status, 8);
  assert.is(text.stderr.text, 'apr: a kernel thread died (x); create a new engine\n');
  assert.is(text.seen.disposed, 1);
  const json = await run(['m', 'Hi', '--json'], { failure });
  assert.is(json.status, 8);
  assert.equal(JSON.parse(json.stdout.text), {
    error: { code: 'INFERENCE', message: failure.message, exit_status: 8, details: { thread: 1 } },
  });
  const stream = await run(['m', 'Hi', '--stream'], { failure });
  assert.is(stream.status, 8);
  const events = stream.stdout.text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { event: string });
  assert.equal(
    events.map(({ event }) => event),
    ['token', 'token', 'token', 'error'],
  );
});

test('a fault of apr itself is status 1 and asks for a report', async () => {
  const { status, stderr } = await run(['m', 'Hi'], { failure: new TypeError('x is undefined') });
  assert.is(status, 1);
  assert.is(stderr.text, 'apr: internal error: x is undefined; please report it with what --verbose prints\n');
});

test('the terminal obeys neither an error nor its trace', async () => {
  const cause = new Error('\x1b[31m');
  const { stderr } = await run(['m', 'Hi', '--verbose'], {
    failure: new AprError('BAD_FORMAT', '\x07', {}, { cause }),
  });
  assert.match(stderr.text, /^apr: \\u0007\n(.*\n)*caused by Error: \\u001b\[31m\n/m);
  assert.not.match(stderr.text, /[\x07\x1b]/);
});

test.run();
