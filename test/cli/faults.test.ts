/** Broken files, interrupts and closed pipes: the right status, one sentence, no stack, no hang. */

import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { GenerateEvent } from '../../src/index.ts';
import { DEMO } from '../repository.ts';
import { skipped } from '../skip.ts';
import { apr, finished, start } from './command.ts';

const demo = readFileSync(DEMO);
let folder: string;
test.before(() => {
  folder = mkdtempSync(join(tmpdir(), 'apr-'));
});
test.after(() => rmSync(folder, { recursive: true }));

/** The demo model with other dimensions written into the header for one tensor. */
function withWidth(tensor: string, width: number): Buffer {
  const bytes = Buffer.from(demo);
  const name = Buffer.concat([Buffer.alloc(8), Buffer.from(tensor)]);
  name.writeBigUInt64LE(BigInt(tensor.length));
  const at = bytes.indexOf(name) + name.length;
  assert.ok(at > name.length, `${tensor} is in the header`);
  bytes.writeBigUInt64LE(BigInt(width), at + 4); // behind the number of dimensions
  return bytes;
}

for (const [name, bytes, status, message] of [
  ['empty.gguf', Buffer.alloc(0), 4, /empty\.gguf: /],
  ['cut-header.gguf', demo.subarray(0, 5000), 4, /cut-header\.gguf: /],
  ['cut-data.gguf', demo.subarray(0, demo.length - 1000), 4, /cut-data\.gguf: /],
  ['page.gguf', Buffer.from('<!DOCTYPE html><html><body>Not Found</body></html>'), 4, /page\.gguf: .*HTML/i],
  ['text.gguf', Buffer.from('version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n'), 4, /text\.gguf: /],
  [
    'shape.gguf',
    withWidth('output_norm.weight', 128),
    5,
    /output_norm\.weight.*128.*256|output_norm\.weight.*256.*128/,
  ],
] as const) {
  test(`${name} → ${status}`, async () => {
    const file = join(folder, name);
    writeFileSync(file, bytes);
    const text = await apr(['run', file, 'Hello']);
    assert.is(text.status, status, text.stderr);
    assert.is(text.stdout, '');
    assert.match(text.stderr, message);
    assert.match(text.stderr, /^apr: [^\n]+\n$/);
    const json = await apr(['run', file, 'Hello', '--json']);
    assert.is(json.status, status);
    assert.is(json.stderr, '');
    const { error } = JSON.parse(json.stdout) as { error: { code: string; message: string } };
    assert.match(error.code, /^(BAD_FORMAT|CONTRACT)$/);
    assert.is(`apr: ${error.message}\n`, text.stderr);
  });
}

const LONG = ['run', 'demo', 'Tell me a story about a fox.', '--ignore-eos', '-n', '400'];

test('the first event is on the pipe before the last token is computed; an interrupt ends at once with 130', async () => {
  const child = start([...LONG, '--stream']);
  const result = finished(child);
  child.stdout?.once('data', () => child.kill('SIGINT'));
  const { status, stdout, stderr } = await result;
  assert.is(status, 130, stderr);
  assert.is(stderr, '');
  const events = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as GenerateEvent | { event: 'error' });
  assert.is(events[0]?.event, 'token');
  assert.is(events.at(-1)?.event, 'error', 'and the stream says so');
  assert.ok(events.length < 400, `${events.length} events, ended before the last`);
  assert.not.ok(events.some(({ event }) => event === 'final'));
});

test('an interrupt in text mode leaves what was printed, and says nothing', async () => {
  const child = start(LONG);
  const result = finished(child);
  child.stdout?.once('data', () => child.kill('SIGINT'));
  const { status, stdout, stderr } = await result;
  assert.is(status, 130, stderr);
  assert.is(stderr, '');
  assert.ok(stdout.length > 0);
  const whole = await apr(LONG);
  assert.is(whole.status, 0);
  assert.ok(whole.stdout.startsWith(stdout) && whole.stdout.length > stdout.length);
});

test('an interrupt while the prompt is awaited', async () => {
  const child = start(['run', 'demo', '-v'], { stdio: ['pipe', 'pipe', 'pipe'] });
  const result = finished(child);
  child.stderr?.once('data', () => child.kill('SIGINT')); // it says that it waits
  const { status, stdout } = await result;
  assert.is(status, 130);
  assert.is(stdout, '');
});

test('a reader that goes away ends the command quietly', async () => {
  for (const words of [LONG, [...LONG, '--stream']]) {
    const child = start(words);
    const result = finished(child);
    child.stdout?.once('data', () => child.stdout?.destroy());
    const { status, signal, stderr } = await result;
    assert.equal([status, signal, stderr], [0, null, '']);
  }
});

if (existsSync('/dev/full')) {
  test('a full disk is status 7', async () => {
    const full = openSync('/dev/full', 'w');
    try {
      for (const form of [[], ['--json'], ['--stream']]) {
        const child = start(['run', 'demo', 'Hello', ...form], { stdio: ['ignore', full, 'pipe'] });
        const { status, stderr } = await finished(child);
        assert.is(status, 7);
        assert.match(stderr, /^apr: standard output: cannot be written: ENOSPC[^\n]*\n$/);
      }
    } finally {
      closeSync(full);
    }
  });
} else skipped(1, '/dev/full is absent');

test.run();
