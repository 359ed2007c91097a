import { readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { RUN_OPTIONS } from '../../cli/commands/run-options.ts';
import { ROOT } from '../repository.ts';
import { apr, finished, type Result, start } from './command.ts';

/** One sentence on stderr, nothing on stdout, no stack. */
function fails({ status, stdout, stderr }: Result, expected: number, message: RegExp): void {
  assert.is(status, expected, stderr);
  assert.is(stdout, '');
  assert.match(stderr, message);
  assert.match(stderr, /^apr: [^\n]+\n$/);
}

test('--version prints the version of package.json', async () => {
  const { status, stdout, stderr } = await apr(['--version']);
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  assert.equal([status, stdout, stderr], [0, `apr ${version}\n`, '']);
  assert.is((await apr(['-V'])).stdout, stdout);
});

test('--help, help and no word at all', async () => {
  const help = await apr(['--help']);
  assert.is(help.status, 0);
  assert.is(help.stderr, '');
  assert.match(help.stdout, /^Usage: apr COMMAND/m);
  assert.match(help.stdout, /^ {2}run /m);
  assert.is((await apr([])).stdout, help.stdout);
  assert.is((await apr(['help'])).stdout, help.stdout);
});

test('help of run names every option', async () => {
  const { status, stdout } = await apr(['run', '--help']);
  assert.is(status, 0);
  for (const [name, option] of Object.entries(RUN_OPTIONS)) {
    assert.match(stdout, new RegExp(`^ {2}(${'alias' in option ? `-${option.alias}, ` : ' {4}'})--${name}\\b`, 'm'));
  }
  for (const line of stdout.split('\n')) assert.ok(line.length <= 120, line);
  assert.match(stdout, /Examples:/);
  assert.is((await apr(['help', 'run'])).stdout, stdout);
  assert.is((await apr(['run', 'demo', '--top-p', '5', '-h'])).stdout, stdout, 'help goes before what is wrong');
  fails(await apr(['help', 'banana']), 2, /unknown command "banana"/);
});

for (const [words, message] of [
  [['rum', 'demo'], /unknown command "rum"; did you mean "apr run"\?/],
  [['banana'], /unknown command "banana"; expected one of run, .*help/],
  [['demo', 'Hello'], /did you mean "apr run demo"\?/],
  [['toString'], /unknown command "toString"/],
  [['--quiet'], /no command was given/],
  [['--banana'], /unknown option "--banana"/],
  [['run'], /SOURCE is missing/],
  [['run', 'demo'], /no prompt; standard input was empty/],
  [['run', 'demo', 'a', 'b'], /found 3 arguments, expected SOURCE and at most one PROMPT/],
  [['run', '', 'Hello'], /SOURCE is empty/],
  [['run', 'demo', 'a', '-p', 'b'], /given by the PROMPT argument and -p, expected one/],
  [['run', 'demo', '-p', 'b', '-i', 'c'], /given by -p and -i, expected one/],
  [['run', 'demo', 'a', '--chat', '--raw'], /--chat and --raw exclude each other/],
  [['run', 'demo', 'a', '--raw', '--system', 'b'], /--system and --raw exclude each other/],
  [['run', 'demo', 'a', '-q=1'], /-q takes no value/],
  [['run', 'demo', 'a', '--gpu', '--no-gpu'], /--gpu and --no-gpu exclude each other/],
  [['run', 'demo', 'a', '--no-gpu', '--backend', 'cuda'], /--no-gpu and --backend cuda exclude each other/],
  [['run', 'demo', 'a', '--logprobs', '2'], /--logprobs shows up in JSON only/],
  [['run', 'ftp://org/name', 'a'], /reads no ftp:\/\/ addresses/],
  [['run', 'hf://name', 'a'], /"name\/" is no repository/],
] as const) {
  test(`apr ${words.join(' ')} → 2`, async () => fails(await apr(words), 2, message));
}

test('a file that is not there goes before a prompt that is not there', async () => {
  fails(await apr(['run', 'no-such.gguf']), 3, /^apr: no-such\.gguf: no such file; expected the path/);
  fails(await apr(['run', 'demoo']), 3, /did you mean "demo"\?/);
});

for (const [option, value] of [
  ['-n', 'x'],
  ['-t', '0'],
  ['-c', '-1'],
  ['-f', 'banana'],
  ['--backend', 'banana'],
  ['--temperature', '-1'],
  ['--top-k', '-1'],
  ['--top-p', '5'],
  ['--min-p', '2'],
  ['--seed', 'x'],
  ['--repeat-penalty', '0'],
  ['--repeat-last-n', '-2'],
  ['--stop', ''],
  ['--logprobs', 'x'],
] as const) {
  test(`apr run demo Hello ${option} ${value} → 2`, async () => {
    fails(await apr(['run', 'demo', 'Hello', option, value]), 2, new RegExp(`${option}.* is "${value}", expected `));
    fails(await apr(['run', 'demo', 'Hello', option]), 2, new RegExp(`${option} has no value, expected `));
  });
}

test('a GPU that is not there is refused, never replaced', async () => {
  fails(await apr(['run', 'demo', 'Hello', '--gpu']), 5, /--gpu asks for a GPU backend, and none is present/);
  fails(await apr(['run', 'demo', 'Hello', '--backend', 'cuda']), 5, /"cuda" is not present/);
  fails(await apr(['run', 'demo', 'Hello', '--backend', 'wgpu']), 5, /"wgpu" is not present/);
  fails(await apr(['run', 'demo', 'Hello', '--gpu', '--backend', 'cuda']), 5, /"cuda" is not present/);
});

test('what does not exist is status 3', async () => {
  fails(await apr(['run', 'no/such.gguf', 'Hello']), 3, /no\/such\.gguf: no such file/);
  fails(await apr(['run', 'demo', '-i', 'no/such.txt']), 3, /-i no\/such\.txt: no such file/);
});

test('what was perhaps meant is named', async () => {
  fails(await apr(['run', 'Demo', 'Hello']), 3, /Demo: no such file; did you mean "demo"\?/);
  const near = 'models-fixtures/demo-qwen3moe-q4_k_m';
  fails(
    await finished(start(['run', near, 'Hello'], { cwd: ROOT })),
    3,
    /did you mean "models-fixtures\/demo-qwen3moe-q4_k_m\.gguf"\?/,
  );
  fails(await apr(['run', 'demo', 'Hello', '--temp', '0.7']), 2, /did you mean --temperature\?/);
});

test('an error has its status, whether somebody reads it or not', async () => {
  const child = start(['run', 'no/such.gguf', 'Hello', '--json']);
  child.stdout?.destroy();
  const { status } = await finished(child);
  assert.is(status, 3);
});

test('a prompt that cannot be read', async () => {
  fails(await apr(['run', 'demo', '-i', '.']), 7, /^apr: -i \.: the prompt cannot be read: it is a directory/);
  fails(await apr(['run', 'demo'], Uint8Array.of(0x41, 0xff)), 2, /standard input: is not valid UTF-8/);
  fails(await apr(['run', 'demo', '-i', '-'], Uint8Array.of(0x41, 0xc3)), 2, /standard input: is not valid UTF-8/);
});

test('control characters in a message are shown, not sent to the terminal', async () => {
  fails(await apr(['run', 'no\x1b[31m\nsuch.gguf', 'Hello']), 3, /no\\u001b\[31m\\u000asuch\.gguf/);
});

test('with --json an error is one document on stdout, whatever else is wrong', async () => {
  for (const words of [
    ['run', 'demo', 'a', '--backend', 'banana', '--json'],
    ['run', '--json', 'demo', '--banana'],
    ['run', 'demo', '--top-p', '5', '-f', 'json'],
    ['banana', '--json'],
  ]) {
    const { status, stdout, stderr } = await apr(words);
    assert.is(status, 2);
    assert.is(stderr, '');
    const { error } = JSON.parse(stdout) as { error: { code: string; message: string; exit_status: number } };
    assert.is(error.code, 'USAGE');
    assert.is(error.exit_status, 2);
    assert.ok(error.message.length > 10);
  }
  const { status, stdout } = await apr(['run', 'no-such.gguf', 'Hello', '--json']);
  assert.is(status, 3);
  assert.is((JSON.parse(stdout) as { error: { code: string } }).error.code, 'NOT_FOUND');
});

test('with --stream an error is one event', async () => {
  const { status, stdout, stderr } = await apr(['run', 'no-such.gguf', 'Hello', '--stream']);
  assert.is(status, 3);
  assert.is(stderr, '');
  assert.is(stdout.trimEnd().split('\n').length, 1);
  const event = JSON.parse(stdout) as { event: string; error: { code: string } };
  assert.is(event.event, 'error');
  assert.is(event.error.code, 'NOT_FOUND');
});

test('-v adds the stack to an error', async () => {
  const { status, stdout, stderr } = await apr(['run', 'no-such.gguf', 'Hello', '-v']);
  assert.is(status, 3);
  assert.is(stdout, '');
  assert.match(stderr, /^apr: no-such\.gguf: no such file; expected the path of a model file, "demo", or a reference/);
  assert.match(stderr, /^ {4}at /m);
});

test.run();
