/** The command with the demo model, as a user meets it. */

import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { FinalEvent, GenerateEvent, TokenEvent } from '../../src/index.ts';
import { apr } from './command.ts';

function lines(stdout: string): GenerateEvent[] {
  assert.ok(stdout.endsWith('\n'));
  return stdout
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line) as GenerateEvent);
}

for (const [prompt, answer] of [
  ['What is 2+2?', '2 + 2 = 4'],
  ['Hello', 'Hello! How can I help you today?'],
  ['List 3 colors:', 'Red, blue, and green.'],
  ['Say hello in Japanese.', 'こんにちは'],
  ['Send me a rocket emoji.', '🚀'],
] as const) {
  test(`${prompt} → ${answer}`, async () => {
    assert.equal(await apr(['run', 'demo', prompt]), { status: 0, signal: null, stdout: `${answer}\n`, stderr: '' });
    const { status, stdout, stderr } = await apr(['run', 'demo', prompt, '--stream']);
    assert.equal([status, stderr], [0, '']);
    const events = lines(stdout);
    const final = events.at(-1) as FinalEvent;
    const tokens = events.slice(0, -1) as TokenEvent[];
    assert.is(final.event, 'final');
    assert.is(final.text, answer);
    assert.is(tokens.map(({ text }) => text).join(''), answer);
    assert.equal(
      tokens.map(({ token_id }) => token_id),
      final.tokens,
    );
    for (const [index, event] of tokens.entries()) {
      assert.is(event.event, 'token');
      assert.is(event.index, index);
      assert.not.match(event.text, /\uFFFD/);
    }
  });
}

test('fn factorial → the function', async () => {
  const { status, stdout } = await apr(['run', 'demo', 'fn factorial']);
  assert.is(status, 0);
  assert.match(stdout, /def factorial\(n\)/);
  assert.match(stdout, /return/);
});

test('--json: the whole document', async () => {
  const words = ['run', 'demo', 'Hello', '--json', '-n', '4', '--logprobs', '2', '-t', '1', '--backend', 'cpu'];
  const { status, stdout, stderr } = await apr(words);
  assert.equal([status, stderr], [0, '']);
  const document = JSON.parse(stdout) as FinalEvent;
  assert.is(document.model, 'demo');
  assert.is(document.tokens.length, 4);
  assert.is(document.tokens_generated, 4);
  assert.is(document.max_tokens, 4);
  assert.is(document.stop_reason, 'length');
  assert.ok(document.prompt_tokens.length > 4);
  const { requested, ran, threads, kernel } = document.backend;
  assert.equal([requested, ran, threads], ['cpu', 'cpu', 1]);
  assert.match(kernel, /^(simd|relaxed)$/);
  const { timings } = document;
  for (const name of [
    'load_ms',
    'prefill_ms',
    'prefill_tok_per_sec',
    'decode_ms',
    'decode_tok_per_sec',
    'total_ms',
  ] as const) {
    assert.ok(timings[name] > 0, name);
  }
  assert.is(document.tok_per_sec, timings.decode_tok_per_sec);
  assert.ok(document.inference_time_ms > 0);
  assert.is(document.logprobs?.length, 4);
  for (const entry of document.logprobs ?? []) assert.is(entry.top.length, 2);
});

test('prompts from -p, a pipe and a file give one and the same answer', async () => {
  const answer = '2 + 2 = 4\n';
  assert.is((await apr(['run', 'demo', '-p', 'What is 2+2?'])).stdout, answer);
  assert.is((await apr(['run', 'demo'], 'What is 2+2?\n')).stdout, answer);
  assert.is((await apr(['run', 'demo', '-i', '-'], 'What is 2+2?')).stdout, answer);
  assert.is((await apr(['run', 'demo', 'What is 2+2?'], 'List 3 colors:')).stdout, answer, 'the pipe is not read');
});

test('--raw: special tokens in the prompt are recognised, and the answer is that of the chat', async () => {
  const prompt = '<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\n';
  const raw = JSON.parse((await apr(['run', 'demo', '--raw', prompt, '--json'])).stdout) as FinalEvent;
  const chat = JSON.parse((await apr(['run', 'demo', 'What is 2+2?', '--json'])).stdout) as FinalEvent;
  assert.is(raw.text, '2 + 2 = 4');
  assert.equal(raw.prompt_tokens, chat.prompt_tokens);
  const text = JSON.parse((await apr(['run', 'demo', prompt, '--json', '-n', '1'])).stdout) as FinalEvent;
  assert.ok(text.prompt_tokens.length > raw.prompt_tokens.length + 10, 'in a chat they stay text');
});

test('--stop, -n and -n 0', async () => {
  assert.is((await apr(['run', 'demo', 'Hello', '--stop', 'can I'])).stdout, 'Hello! How \n');
  assert.is((await apr(['run', 'demo', 'Hello', '--stop', 'zzz', '--stop', '!'])).stdout, 'Hello\n');
  const none = JSON.parse((await apr(['run', 'demo', 'Hello', '-n', '0', '--json'])).stdout) as FinalEvent;
  assert.equal([none.text, none.tokens, none.stop_reason, none.tok_per_sec], ['', [], 'length', 0]);
});

test('same seed, same text, in every form', async () => {
  const words = ['run', 'demo', '--raw', 'Once', '--temperature', '1.5', '-n', '12', '--ignore-eos', '--seed', '11'];
  const text = (await apr(words)).stdout.slice(0, -1);
  assert.is((await apr([...words, '--json', '-t', '1'])).stdout.length > 0, true);
  assert.is((JSON.parse((await apr([...words, '--json', '-t', '1'])).stdout) as FinalEvent).text, text);
  assert.is((lines((await apr([...words, '--stream'])).stdout).at(-1) as FinalEvent).text, text);
});

test('--backend reference answers the same', async () => {
  const { status, stdout } = await apr(['run', 'demo', 'What is 2+2?', '--backend', 'reference', '--json']);
  assert.is(status, 0);
  const document = JSON.parse(stdout) as FinalEvent;
  assert.is(document.text, '2 + 2 = 4');
  assert.equal([document.backend.ran, document.backend.kernel], ['reference', 'scalar']);
});

test('a prompt that is longer than the context says both lengths', async () => {
  const { status, stdout, stderr } = await apr(['run', 'demo', 'word '.repeat(40), '-c', '16']);
  assert.is(status, 8);
  assert.is(stdout, '');
  assert.match(stderr, /^apr: the prompt has \d{2,} tokens, the context holds 16;[^\n]*\n$/);
});

test.run();
