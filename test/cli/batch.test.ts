/** `apr run --batch-jsonl` in this process, with the demo model. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { fittingSequences } from '../../cli/batch/fit.ts';
import { inOrder } from '../../cli/batch/in-order.ts';
import { runCli } from '../../cli/cli.ts';
import { readLines } from '../../cli/lines.ts';
import { jsonLine } from '../../cli/render/json.ts';
import { AprError } from '../../src/errors.ts';
import { createEngine } from '../../src/index.ts';
import { DEMO, FIXTURES } from '../repository.ts';
import { finished, start } from './command.ts';
import { fake, Output } from './fake-engine.ts';
import { golden } from './golden.ts';

const folder = mkdtempSync(join(tmpdir(), 'apr-'));
const QWEN2 = join(FIXTURES, 'demo-qwen2-q4_k_m.gguf');

interface Line {
  readonly task_id?: string | number;
  readonly line: number;
  readonly text?: string;
  readonly tokens?: readonly number[];
  readonly seed?: number;
  readonly tokens_generated?: number;
  readonly error?: { readonly code: string; readonly message: string };
}

interface Batch {
  readonly status: number;
  readonly lines: Line[];
  readonly stderr: string;
}

async function batch(
  input: string | Uint8Array | AsyncIterable<Uint8Array>,
  words: readonly string[] = [],
  model = 'demo',
): Promise<Batch> {
  const [stdout, stderr] = [new Output(false), new Output(false)];
  const bytes = typeof input === 'string' ? Buffer.from(input) : input;
  const stdin = Readable.from(bytes instanceof Uint8Array ? [bytes] : bytes);
  const environment = { ...fake({ input: '' }), stdin, stdout, stderr, loadCreateEngine: async () => createEngine };
  const status = await runCli(['run', model, '--batch-jsonl', '-', '-c', '64', ...words], environment);
  const lines = stdout.text.split('\n').filter((line) => line !== '');
  return { status, lines: lines.map((line) => JSON.parse(line) as Line), stderr: stderr.text };
}

const ask = (prompt: string, more: object = {}): string => `${JSON.stringify({ prompt, ...more })}\n`;
const texts = ({ lines }: Batch): (string | undefined)[] => lines.map(({ text }) => text);

test('a result a line, in order; a bad line is an error and the others go on', async () => {
  const input =
    ask('What is 2+2?', { task_id: 'a' }) +
    '\n' +
    `${JSON.stringify({ task_id: 3, messages: [{ role: 'user', content: 'Hello' }] })}\n` +
    'not json\n' +
    ask('What is 5+1?', { stop: ['6'] }) +
    ask('What is 2+3?', { max_tokens: 2 });
  const { status, lines, stderr } = await batch(input);
  assert.equal([status, stderr], [1, '']);
  // Rates and times are this machine's.
  const blank = lines.map((line) =>
    'text' in line ? { ...line, tok_per_sec: 'measured', inference_ms: 'measured' } : line,
  );
  assert.equal({ lines: blank }, golden('batch'));
});

test('ids do not depend on how many run together', async () => {
  const questions = Array.from({ length: 12 }, (_, i) =>
    ask(`What is ${i % 5}+${(3 * i) % 4}?`, { max_tokens: 3 + i }),
  );
  const input = questions.join('');
  const [alone, together] = [await batch(input, ['--parallel', '1']), await batch(input, ['--parallel', '5'])];
  assert.equal([alone.status, together.status], [0, 0]);
  assert.equal(texts(together), texts(alone));
});

test('sampled tokens are those of each request alone', async () => {
  const requests = Array.from({ length: 6 }, (_, seed) => ({
    prompt: `What is ${seed}+${seed}? Tell me more.`,
    seed,
    temperature: 1.3,
    max_tokens: 12,
  }));
  const input = requests.map((request) => `${JSON.stringify(request)}\n`).join('');
  const together = await batch(input, ['--parallel', '6'], QWEN2);
  const engine = await createEngine(QWEN2, { contextLength: 64 });
  for (const [i, { prompt, seed, temperature, max_tokens: maxTokens }] of requests.entries()) {
    const messages = [{ role: 'user', content: prompt }];
    let tokens: readonly number[] = [];
    for await (const event of engine.generate({ messages, seed, temperature, maxTokens })) {
      if (event.event === 'final') tokens = event.tokens;
    }
    assert.equal([together.lines[i]!.tokens, together.lines[i]!.seed], [tokens, seed]);
  }
  await engine.dispose();
  // Otherwise one answer for all of them would do.
  assert.is(new Set(texts(together)).size, requests.length);
  // Drawn, and not told how: the line says with which seed it can be had again.
  const [free] = (await batch(ask('Tell me more.', { temperature: 1.3, max_tokens: 12 }), [], QWEN2)).lines;
  const [again] = (await batch(ask('Tell me more.', { temperature: 1.3, max_tokens: 12, seed: free!.seed }), [], QWEN2))
    .lines;
  assert.equal(again!.tokens, free!.tokens);
});

test('every field of a line reaches the request', async () => {
  const environment = fake({ input: '' });
  const line = { prompt: 'x', max_tokens: 3, temperature: 0.5, top_p: 0.25, seed: 7, stop: 'y', task_id: null };
  const stdin = Readable.from([Buffer.from(`${JSON.stringify(line)}\n`)]);
  const words = ['run', 'x.gguf', '--batch-jsonl', '-', '--temperature', '1', '--stop', 'z', '--top-k', '5'];
  assert.is(await runCli(words, { ...environment, stdin }), 0);
  assert.equal(environment.seen.request, {
    messages: [{ role: 'user', content: 'x' }],
    maxTokens: 3,
    temperature: 0.5,
    topP: 0.25,
    topK: 5,
    seed: 7,
    stop: ['y'],
  });
});

test('messages beside --system, --raw and --thinking', async () => {
  const ran = async (messages: object[], words: readonly string[], hasChatTemplate = true) => {
    const environment = fake({ input: '', hasChatTemplate });
    const stdin = Readable.from([Buffer.from(`${JSON.stringify({ messages })}\n`)]);
    const status = await runCli(['run', 'x.gguf', '--batch-jsonl', '-', ...words], { ...environment, stdin });
    return { status, request: environment.seen.request, said: environment.stdout.text + environment.stderr.text };
  };
  const user = { role: 'user', content: 'x' };
  const own = { role: 'system', content: 'own' };
  const given = { role: 'system', content: 'given' };
  assert.equal((await ran([user], ['--system', 'given'])).request!.messages, [given, user]);
  assert.equal((await ran([own, user], ['--system', 'given'])).request!.messages, [own, user]);
  assert.equal((await ran([user, own], ['--system', 'given'])).request!.messages, [user, own]);
  assert.is((await ran([user], ['--thinking', 'on'])).request!.thinking, true);
  const raw = await ran([user], ['--raw']);
  assert.equal([raw.status, raw.request], [1, undefined]);
  assert.match(raw.said, /messages need a chat template, and --raw leaves it out/);
  // What no line could have is told once.
  for (const words of [
    ['--system', 'given'],
    ['--thinking', 'on'],
  ]) {
    const { status, request, said } = await ran([user], words, false);
    assert.equal([status, request], [2, undefined]);
    assert.match(said, /^apr: --(system|thinking on) needs a chat template.*\n$/);
  }
});

test('a reader that walks away hears of lines that failed by the status', async () => {
  const input = join(folder, 'failing.jsonl');
  writeFileSync(input, `nonsense\n${ask('Tell me a story.', { max_tokens: 30 }).repeat(40)}`);
  for (const [file, expected] of [
    [input, 1],
    [join(folder, 'good.jsonl'), 0],
  ] as const) {
    if (expected === 0) writeFileSync(file, ask('Tell me a story.', { max_tokens: 30 }).repeat(40));
    const child = start(['run', 'demo', '--batch-jsonl', file]);
    const ended = finished(child);
    child.stdout!.once('data', () => child.stdout!.destroy());
    assert.is((await ended).status, expected);
  }
});

test('an interrupt ends a batch with 130 and leaves the lines that are done', async () => {
  const file = join(folder, 'long.jsonl');
  writeFileSync(file, ask('Tell me a story.', { max_tokens: 60 }).repeat(400));
  const child = start(['run', 'demo', '--batch-jsonl', file]);
  const ended = finished(child);
  child.stdout!.once('data', () => child.kill('SIGINT'));
  const { status, stdout } = await ended;
  assert.is(status, 130);
  const lines = stdout.split('\n').slice(0, -1);
  assert.ok(lines.length >= 1 && lines.length < 400);
  for (const line of lines.slice(0, -1)) assert.ok('text' in JSON.parse(line));
});

test('a file that cannot be read to its end: what was asked before is answered', async () => {
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(ask('What is 2+2?'));
    await new Promise((resolve) => setTimeout(resolve, 50));
    throw Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' });
  }
  const { status, lines, stderr } = await batch(broken());
  assert.equal([status, texts({ status, lines, stderr })], [7, ['2 + 2 = 4']]);
  assert.match(stderr, /^apr: standard input: cannot be read: EIO/);
});

test('another file than one of requests is refused as a whole', async () => {
  const { status, lines, stderr } = await batch(readFileSync(DEMO));
  assert.equal([status, lines], [4, []]);
  assert.match(stderr, /standard input: its first line holds a zero byte/);
  const environment = fake({ input: '' });
  assert.is(await runCli(['run', 'x.gguf', '--batch-jsonl', folder], { ...environment, sourceExists: () => true }), 2);
  assert.match(environment.stdout.text + environment.stderr.text, /is a folder, expected a file/);
  assert.is(environment.seen.source, undefined);
});

test('a prompt that no context holds is refused before it is cut into tokens', async () => {
  const start = performance.now();
  const { lines } = await batch(ask('word '.repeat(2_000_000)));
  assert.match(lines[0]!.error!.message, /the prompt has 10000\d{3} characters, more than the 64 tokens/);
  // Millions of tokens take seconds.
  assert.ok(performance.now() - start < 5000);
});

test('what a terminal would obey is escaped, and the value is the same', () => {
  const document = { text: '\x1b[2J\x9b2J\x7f\u202eevil\u2066 \u2028 ü 語 😀' };
  const line = jsonLine(document);
  assert.match(line, /^[ -~ü語😀]*\n$/u);
  assert.equal(JSON.parse(line), document);
});

test('lines of a stream that gives a byte at a time', async () => {
  const text = `${'x'.repeat(300)}\r\n\ny\n`;
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for (const byte of Buffer.from(text)) yield Uint8Array.of(byte);
  }
  const lines: string[] = [];
  for await (const line of readLines(Readable.from(bytes()), 'it')) lines.push(Buffer.from(line).toString());
  assert.equal(lines, ['x'.repeat(300), '', 'y']);
});

test('what a line leaves out the command line says', async () => {
  const { lines } = await batch(ask('What is 2+2?') + ask('What is 2+2?', { max_tokens: 1 }), ['-n', '3']);
  assert.equal(
    lines.map(({ tokens_generated }) => tokens_generated),
    [3, 1],
  );
});

test('every fault of a line by its name', async () => {
  const faults: [string, RegExp][] = [
    ['[1]', /the line is an array, expected a JSON object/],
    ['{"prompt":5}', /prompt is 5, expected a text/],
    ['{}', /the line has neither of prompt and messages/],
    ['{"prompt":"x","messages":[]}', /the line has both of prompt and messages/],
    ['{"messages":[]}', /messages is an empty array/],
    ['{"messages":[{"role":"user"}]}', /messages\[0\]\.content is missing/],
    ['{"messages":[{"role":1,"content":"x"}]}', /messages\[0\]\.role is 1/],
    ['{"prompt":"x","max_token":3}', /unknown key "max_token"/],
    ['{"prompt":"x","max_tokens":-1}', /max_tokens is -1/],
    ['{"prompt":"x","max_tokens":1.5}', /max_tokens is 1\.5/],
    ['{"prompt":"x","temperature":"hot"}', /temperature is "hot"/],
    ['{"prompt":"x","top_p":2}', /top_p is 2/],
    ['{"prompt":"x","stop":[""]}', /stop\[0\] is ""/],
    ['{"prompt":"x","task_id":[]}', /task_id is an empty array/],
    ['{"prompt":"x","task_id":12345678901234567890}', /task_id is 12345678901234567000, expected .*below 2\^53/],
    ['{"prompt":"x","task_id":1e999}', /task_id is Infinity/],
    [`{"prompt":"x","task_id":"${'i'.repeat(1025)}"}`, /task_id is "iii/],
    ['{"prompt":"x","prompt":"y"}', /the key "prompt" twice/],
    ['{"prompt":"a\\\\","\\u0070rompt":"y"}', /the key "prompt" twice/],
    ['{"messages":[{"role":"user","content":"x"}],"prompt":"x","x":{"prompt":1}}', /unknown key "x"/],
    [`{"prompt":"${'many words '.repeat(200)}"}`, /context/],
  ];
  const { status, lines } = await batch(`${faults.map(([line]) => line).join('\n')}\n`);
  assert.is(status, 1);
  faults.forEach(([, expected], i) => {
    assert.is(lines[i]!.line, i + 1);
    assert.match(lines[i]!.error!.message, expected);
  });
});

test('a byte-order mark, other line ends, none behind the last line, bytes that are no UTF-8, an empty file', async () => {
  const bytes = Buffer.concat([
    Buffer.from(`\ufeff${JSON.stringify({ prompt: 'What is 2+2?' })}\r\n  \r\n`),
    Buffer.from([0x22, 0xff, 0x22, 0x0a]),
    Buffer.from(JSON.stringify({ prompt: 'What is 2+2?' })),
  ]);
  const { status, lines } = await batch(bytes);
  assert.is(status, 1);
  assert.equal(
    lines.map(({ line, text }) => [line, text]),
    [
      [1, '2 + 2 = 4'],
      [3, undefined],
      [4, '2 + 2 = 4'],
    ],
  );
  assert.match(lines[1]!.error!.message, /line 3 is not valid UTF-8/);
  assert.equal(await batch(''), { status: 0, lines: [], stderr: '' });
});

test('a line that is too long is skipped, not kept', async () => {
  async function* stream(): AsyncGenerator<Uint8Array> {
    const megabyte = Buffer.alloc(1 << 20, 0x20);
    yield Buffer.from('"');
    for (let i = 0; i < 17; i++) yield megabyte;
    yield Buffer.from(`"\n${ask('What is 2+2?')}`);
  }
  const { status, lines } = await batch(stream());
  assert.is(status, 1);
  assert.match(lines[0]!.error!.message, /a line is longer than/);
  assert.is(lines[1]!.text, '2 + 2 = 4');
});

test('what makes no sense beside a batch is refused before anything is loaded', async () => {
  const file = join(folder, 'requests.jsonl');
  writeFileSync(file, ask('Hello'));
  const cases: [string[], RegExp][] = [
    [['run', 'demo', 'Hello', '--batch-jsonl', file], /--batch-jsonl and a PROMPT exclude each other/],
    [['run', 'demo', '-p', 'x', '--batch-jsonl', file], /and -p exclude/],
    [['run', 'demo', '--stream', '--batch-jsonl', file], /and --stream exclude/],
    [['run', 'demo', '--trace', '--batch-jsonl', file], /and a trace or --profile exclude/],
    [['run', 'demo', 'Hello', '--parallel', '2'], /--parallel is for the lines of a batch/],
  ];
  for (const [words, expected] of cases) {
    const environment = fake({ input: '' });
    assert.is(await runCli(words, environment), 2, words.join(' '));
    assert.match(environment.stdout.text + environment.stderr.text, expected);
    assert.is(environment.seen.source, undefined);
  }
});

test('a file that is not there', async () => {
  const [stdout, stderr] = [new Output(false), new Output(false)];
  const environment = { ...fake({ input: '' }), stdout, stderr, loadCreateEngine: async () => createEngine };
  assert.is(await runCli(['run', 'demo', '--batch-jsonl', join(folder, 'none.jsonl')], environment), 3);
  assert.match(stderr.text, /none\.jsonl: no such file/);
});

test('as many at a time as fit into memory, unless a number was asked for', async () => {
  const refusal = (sequences: number): AprError =>
    new AprError('OUT_OF_MEMORY', 'needs more', { needed: 1300, available: 1000, kvCacheBytes: 800, sequences });
  assert.is(fittingSequences(refusal(8)), 5);
  assert.is(fittingSequences(new AprError('OUT_OF_MEMORY', 'refused by the system', { needed: 5 })), undefined);
  const tried: (number | undefined)[] = [];
  const run = async (words: readonly string[]): Promise<[number, string]> => {
    const environment = fake({ input: ask('Hello') });
    const create = await environment.loadCreateEngine();
    const loadCreateEngine = async (): Promise<typeof create> => async (source, options) => {
      tried.push(options?.sequences);
      if ((options?.sequences ?? 1) > 5) throw refusal(options!.sequences!);
      return create(source, options);
    };
    const status = await runCli(['run', 'x.gguf', '--batch-jsonl', '-', ...words], {
      ...environment,
      loadCreateEngine,
    });
    return [status, environment.stderr.text];
  };
  assert.equal(await run([]), [0, 'apr: there is memory for 5 of 8 lines at a time\n']);
  const [status, said] = await run(['--parallel', '7']);
  assert.is(status, 6);
  assert.match(said, /fewer lines at a time \(--parallel\)/);
  assert.equal(tried, [8, 5, 7]);
});

test('results come in order, work goes on meanwhile, and no further ahead than is allowed', async () => {
  let [running, most, taken] = [0, 0, 0];
  async function* numbers(): AsyncGenerator<number> {
    for (let i = 0; i < 20; i++) {
      taken++;
      yield i;
    }
  }
  const work = async (i: number): Promise<number> => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setTimeout(resolve, i === 0 ? 40 : 1));
    running--;
    return i;
  };
  const seen: number[] = [];
  for await (const i of inOrder(numbers(), work, { running: 3, taken: 6 })) {
    if (i === 0) assert.ok(taken <= 7, `${taken} were taken while the first one took its time`);
    seen.push(i);
  }
  assert.equal(
    seen,
    Array.from({ length: 20 }, (_, i) => i),
  );
  assert.is(most, 3);
});

test('the folder of this test is removed', () => {
  rmSync(folder, { recursive: true });
});

test.run();
