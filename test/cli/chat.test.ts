/** `apr chat` through a pipe, as a script drives it. */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { FinalEvent } from '../../src/index.ts';
import { apr, finished, start } from './command.ts';

const GREEDY = ['chat', 'demo', '--temperature', '0'];
const chat = (input: string | Uint8Array, ...words: string[]) => apr([...GREEDY, ...words], input);
const documents = (stdout: string): FinalEvent[] =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as FinalEvent);

let folder = '';
test.before(() => {
  folder = mkdtempSync(join(tmpdir(), 'apr-chat-'));
});
test.after(() => rmSync(folder, { recursive: true }));

test('a message a line; only answers go to stdout', async () => {
  const { status, stdout, stderr } = await chat('What is 2+2?\n\nList 3 colors:\r\nSay hello in Japanese.');
  assert.equal([status, stderr], [0, '']);
  assert.is(stdout, '2 + 2 = 4\nRed, blue, and green.\nこんにちは\n');
});

test('the model is the demo where none is named, sampling is on, and a seed repeats it', async () => {
  const words = ['chat', '--seed', '3', '--json'];
  const one = documents((await apr(words, 'Tell me a story.\n')).stdout);
  const again = documents((await apr(words, 'Tell me a story.\n')).stdout);
  const other = documents(
    (await apr(['chat', '--seed', '4', '--temperature', '2', '--json'], 'Tell me a story.\n')).stdout,
  );
  assert.is(one[0]?.model, 'demo');
  assert.equal(one[0]?.tokens, again[0]?.tokens);
  assert.not.equal(one[0]?.tokens, other[0]?.tokens);
});

test('the last ten of twenty turns compute less than 5 % of their context', async () => {
  const lines = Array.from({ length: 20 }, () => 'fn factorial');
  const { status, stdout, stderr } = await chat(`${lines.join('\n')}\n`, '--json', '-c', '1024');
  assert.equal([status, stderr], [0, '']);
  const turns = documents(stdout);
  assert.is(turns.length, 20);
  for (const [index, { prompt_tokens, cached_tokens }] of turns.entries()) {
    const share = (prompt_tokens.length - cached_tokens) / prompt_tokens.length;
    if (index >= 10) assert.ok(share < 0.05, `turn ${index + 1} computed ${(100 * share).toFixed(1)} %`);
    // What a turn computes is its message and the signs around it.
    if (index > 0) assert.ok(prompt_tokens.length - cached_tokens < 30);
  }
});

test('a full context: the oldest turns are forgotten whole, the system message stays', async () => {
  const lines = Array.from({ length: 12 }, () => 'fn factorial');
  const { status, stdout, stderr } = await chat(`${lines.join('\n')}\n`, '--json', '-c', '256', '--system', 'Be kind.');
  assert.is(status, 0);
  assert.match(
    stderr,
    /^\(the context of 256 tokens is full: (the \d oldest turns are|the oldest turn is) forgotten\)$/m,
  );
  const turns = documents(stdout);
  const first = turns[0]?.prompt_tokens ?? [];
  const begin = JSON.stringify(first.slice(0, 12));
  for (const { prompt_tokens, tokens } of turns) {
    assert.is(JSON.stringify(prompt_tokens.slice(0, 12)), begin, 'it begins with the system message');
    assert.ok(prompt_tokens.length + tokens.length <= 256);
  }
  assert.ok(turns.some(({ prompt_tokens }, i) => i > 0 && prompt_tokens.length < turns[i - 1]!.prompt_tokens.length));
});

test('a message that no context holds fails alone, and makes the exit status', async () => {
  const { status, stdout, stderr } = await chat(`${'word '.repeat(200)}\nWhat is 2+2?\n`, '-c', '128');
  assert.is(status, 8);
  assert.is(stdout, '2 + 2 = 4\n');
  assert.match(stderr, /^apr: the prompt has \d+ tokens, the context holds 128;/);
});

test('an answer that fills the context or reaches --max-tokens says so', async () => {
  const cut = await chat('fn factorial\n', '-n', '3');
  assert.is(cut.status, 0);
  assert.match(cut.stderr, /^\(ended at --max-tokens 3\)\n$/);
  assert.match((await chat('fn factorial\n', '-c', '24')).stderr, /^\(the context is full: the answer ends here\)\n$/);
});

test('several lines: a block in quotes, and a backslash', async () => {
  const { stdout } = await chat('"""\nWhat is\n2+2?\n"""\nWhat is \\\n2+2?\n"""What is\n2+2?\n', '--json', '-n', '1');
  const block = apr([
    'tokenize',
    'encode',
    'demo',
    '--special',
    '-p',
    '<|im_start|>user\nWhat is\n2+2?<|im_end|>',
    '--json',
  ]);
  const { tokens } = JSON.parse((await block).stdout) as { tokens: number[] };
  const turns = documents(stdout);
  assert.is(turns.length, 3, 'a block that is never closed ends with the input');
  assert.equal(turns[0]?.prompt_tokens.slice(0, tokens.length), tokens);
});

test('a slash: commands, and messages that only look like one', async () => {
  const input = '/set temperature 9e9\n/sett\n//set\n/etc/hosts is what?\n/set thinking on\n/clear x\n';
  const { status, stdout, stderr } = await chat(input, '-n', '2');
  assert.is(status, 2);
  assert.is(stdout.trimEnd().split('\n').length, 2);
  assert.match(stderr, /--temperature is "9e9", expected a number from 0 to 100/);
  assert.match(stderr, /unknown command \/sett; did you mean \/set\?/);
  assert.match(stderr, /\/clear takes nothing behind it, found "x"/);
});

test('/exit leaves, /help and /set list', async () => {
  const { status, stdout, stderr } = await chat('/help\n/set seed 7\n/set\n/set seed default\n/exit\nHello\n');
  assert.equal([status, stdout], [0, '']);
  for (const name of ['help', 'clear', 'system', 'save', 'load', 'regen', 'stats', 'set', 'exit']) {
    assert.match(stderr, new RegExp(`^ {2}/${name}\\b`, 'm'));
  }
  assert.match(stderr, /^ {2}seed +7$/m);
  assert.match(stderr, /^ {2}temperature +0$/m);
  assert.match(stderr, /^ {2}top-p +0\.9 \(default\)$/m);
  for (const line of stderr.split('\n')) assert.ok(line.length <= 80, line);
});

test('/system, /regen, /clear and /stats', async () => {
  const input = '/system\n/system Be kind.\n/system\nWhat is 2+2?\n/regen\n/stats\n/clear\n/regen\n';
  const { status, stdout, stderr } = await chat(input, '--json');
  const [one, two, failed] = documents(stdout);
  assert.is(status, 2, 'there is nothing to answer anew after /clear');
  assert.equal(two?.tokens, one?.tokens);
  assert.is(two?.cached_tokens, (two?.prompt_tokens.length ?? 0) - 1);
  assert.match(JSON.stringify(failed), /nothing was said yet/);
  assert.match(stderr, /^\(no system message\)\n\(the system message is set\)\nBe kind\.\n/);
  const prompt = one?.prompt_tokens.length;
  assert.match(stderr, new RegExp(`prompt +${prompt} tokens, ${prompt! - 1} of them from the KV cache, 1 computed`));
});

test('/save and /load: the conversation goes on, and no file is overwritten unasked', async () => {
  const path = join(folder, 'talk.json');
  const saved = await chat(`/system Be kind.\nWhat is 2+2?\n/save ${path}\nHello\n/save ${path}\n`, '--json');
  assert.is(saved.status, 0, saved.stderr);
  const document = JSON.parse(readFileSync(path, 'utf8')) as { messages: { role: string; content: string }[] };
  assert.equal(
    document.messages.map(({ role }) => role),
    ['system', 'user', 'assistant', 'user', 'assistant'],
  );
  assert.is(document.messages[2]?.content, '2 + 2 = 4');
  const straight = documents((await chat('/system Be kind.\nWhat is 2+2?\nHello\nList 3 colors:\n', '--json')).stdout);
  const loaded = documents((await chat(`/load ${path}\nList 3 colors:\n`, '--json')).stdout);
  assert.equal(loaded[0]?.prompt_tokens, straight[2]?.prompt_tokens);
  const refused = await chat(`Hello\n/save ${path}\n`);
  assert.is(refused.status, 5);
  assert.match(refused.stderr, /talk\.json: exists; \/save --force /);
  assert.is((await chat(`Hello\n/save --force ${path}\n`)).status, 0);
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const other = await chat(`Hello\n/save --force ${folder}\n/save --force ${pipe}\n`);
  assert.is(other.status, 2);
  assert.match(other.stderr, /is a folder, expected the name of a file\n.*pipe: is a device or pipe, expected/);
  assert.ok(statSync(pipe).isFIFO());
});

for (const [name, text, expected, status] of [
  ['no JSON', '{', /is not JSON/, 4],
  ['no messages', '{"a":1}', /has no "messages"/, 4],
  ['null', 'null', /has no "messages"/, 4],
  ['a bad message', '[{"role":"user"}]', /messages\[0\] is not an object with the texts/, 4],
  ['an answer first', '[{"role":"assistant","content":"a"}]', /the first message is of role "assistant"/, 4],
] as const) {
  test(`/load refuses ${name}, and the conversation stays`, async () => {
    const path = join(folder, 'bad.json');
    writeFileSync(path, text);
    const result = await chat(`/load ${path}\nWhat is 2+2?\n`);
    assert.equal([result.status, result.stdout], [status, '2 + 2 = 4\n']);
    assert.match(result.stderr, expected);
  });
}

test('/load of a file that is not there is status 3', async () => {
  assert.is((await chat('/load no/such.json\n')).status, 3);
});

test('/save into a folder that is not there names it; ~ is the home folder', async () => {
  const missing = await chat(`Hello\n/save ${join(folder, 'none', 'talk.json')}\n`);
  assert.is(missing.status, 7);
  assert.match(missing.stderr, /talk\.json: cannot be written: there is no folder \S+none$/m);
  const env = { ...process.env, HOME: folder, USERPROFILE: folder };
  const child = start(GREEDY, { stdio: ['pipe', 'pipe', 'pipe'], env });
  child.stdin?.end('Hello\n/save ~/home.json\n/clear\n/load ~/home.json\n');
  const { status, stderr } = await finished(child);
  assert.is(status, 0, stderr);
  assert.ok(readFileSync(join(folder, 'home.json'), 'utf8').includes('"assistant"'));
});

test('input that is not UTF-8 is refused by its line', async () => {
  const { status, stdout, stderr } = await chat(Buffer.from('What is 2+2?\n\xff\n', 'latin1'));
  assert.equal([status, stdout], [2, '2 + 2 = 4\n']);
  assert.match(stderr, /standard input: line 2 is not valid UTF-8/);
});

test('usage', async () => {
  for (const words of [
    ['a', 'b'],
    ['demo', '--temperature', 'x'],
    ['demo', '-q', '-v'],
    ['demo', '-n', '0'],
  ]) {
    const { status, stdout } = await apr(['chat', ...words], '');
    assert.equal([status, stdout], [2, ''], words.join(' '));
  }
  assert.is((await apr(['chat', 'no/such.gguf'], 'Hello\n')).status, 3);
});

test('the first interrupt ends the answer, the second the session', async () => {
  // Goes on to the end of a long context, were it not stopped.
  const child = start([...GREEDY, '--temperature', '2', '--seed', '1', '-c', '65536', '--stop', 'zzzzz', '--stream'], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const result = finished(child);
  child.stdin?.write('Tell me a story.\n');
  await new Promise((resolve) => child.stdout?.once('data', resolve));
  child.kill('SIGINT');
  child.stdin?.end('/stats\n');
  const { status, stdout } = await result;
  assert.is(status, 0);
  const events = stdout.trimEnd().split('\n');
  assert.ok(/"event":"final"|"code":"ABORTED"/.test(events.at(-1) ?? ''), events.at(-1));
});

test.run();
