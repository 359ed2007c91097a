/** `apr convert`: the files that it leaves behind, and those that it does not. */

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Conversion, FinalEvent } from '../../src/index.ts';
import { buildGguf } from '../formats/gguf-builder.ts';
import { DEMO, FIXTURES } from '../repository.ts';
import { apr, finished, start } from './command.ts';

let folder: string;
test.before(() => {
  folder = mkdtempSync(join(tmpdir(), 'apr-'));
});
test.after(() => rmSync(folder, { recursive: true }));

test('there and back: the same file, and the same answer on the way', async () => {
  const there = join(folder, 'demo.apr');
  const back = join(folder, 'demo.gguf');
  const first = await apr(['convert', 'demo', '-o', there]);
  assert.equal([first.status, first.stdout], [0, '']);
  assert.match(first.stderr, /^wrote .*demo\.apr: gguf to apr, \d+ tensors, 4\.8 MB\n$/);
  const second = await apr(['convert', there, '-o', back, '--json']);
  assert.equal([second.status, second.stderr], [0, '']);
  const report = JSON.parse(second.stdout) as Conversion;
  assert.equal([report.from, report.to, report.bytes], ['apr', 'gguf', readFileSync(DEMO).length]);
  assert.ok(readFileSync(back).equals(readFileSync(DEMO)));
  const answers = [];
  for (const model of [DEMO, there]) {
    const { status, stdout, stderr } = await apr([
      'run',
      model,
      'What is the capital of France?',
      '-n',
      '24',
      '--json',
    ]);
    assert.is(status, 0, stderr);
    const { tokens, prompt_tokens, text } = JSON.parse(stdout) as FinalEvent;
    answers.push({ tokens, prompt_tokens, text });
  }
  assert.equal(answers[0], answers[1]);
  assert.ok(answers[0]!.tokens.length > 0);
  assert.equal(readdirSync(folder).sort(), ['demo.apr', 'demo.gguf'], 'no temporary file is left');
});

test('nothing is overwritten without --force', async () => {
  const target = join(folder, 'taken.apr');
  writeFileSync(target, 'precious');
  const source = join(FIXTURES, 'tiny-qwen2-f16.gguf');
  const refused = await apr(['convert', source, '-o', target]);
  assert.is(refused.status, 5);
  assert.match(refused.stderr, /^apr: .*taken\.apr: exists already; --force replaces it\n$/);
  assert.is(readFileSync(target, 'utf8'), 'precious');
  const json = await apr(['convert', source, '-o', target, '--json']);
  assert.is((JSON.parse(json.stdout) as { error: { code: string } }).error.code, 'OVERWRITE');
  assert.is((await apr(['convert', source, '-o', target, '--force', '-q'])).status, 0);
  assert.is(readFileSync(target).toString('latin1', 0, 4), 'APR\0');
  // A model over itself: read to the end before it is replaced.
  const self = join(folder, 'self.gguf');
  writeFileSync(self, readFileSync(source));
  assert.is((await apr(['convert', self, '-o', self, '--force', '-q'])).status, 0);
  assert.ok(readFileSync(self).equals(readFileSync(source)));
});

test('a broken source leaves nothing behind', async () => {
  const broken = join(folder, 'broken.gguf');
  writeFileSync(broken, readFileSync(DEMO).subarray(0, 100_000));
  const target = join(folder, 'never.apr');
  const before = readdirSync(folder).sort();
  const { status, stderr } = await apr(['convert', broken, '-o', target]);
  assert.is(status, 4);
  assert.match(stderr, /^apr: .*broken\.gguf: /);
  assert.not.ok(existsSync(target));
  assert.equal(readdirSync(folder).sort(), before.concat([]).sort());
});

for (const [signal, status] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  test(`${signal} while it writes: status ${status}, and nothing is left behind`, async () => {
    const source = join(folder, 'large.gguf');
    const width = 2 ** 16;
    writeFileSync(source, buildGguf({ tensors: [{ name: 'large', shape: [width, width / 8] }] }));
    // Zeros that take no room; long enough to write that a signal comes before the end.
    truncateSync(source, 4096 + (width * width * 4) / 8);
    const before = readdirSync(folder);
    const child = start(['convert', source, '-o', join(folder, 'large.apr')]);
    const result = finished(child);
    const written = (): string[] => readdirSync(folder).filter((name) => !before.includes(name));
    while (written().length === 0 && child.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.match(written()[0] ?? 'nothing', /\.part$/);
    child.kill(signal);
    assert.is((await result).status, status);
    assert.equal(written(), []);
    rmSync(source);
  });
}

for (const [words, status, message] of [
  [['convert'], 2, /SOURCE is missing/],
  [['convert', 'demo'], 2, /-o \(--output\) is missing/],
  [['convert', 'demo', 'x.apr'], 2, /found 2 arguments, expected SOURCE alone/],
  [['convert', 'demo', '-o', 'x.safetensors'], 2, /x\.safetensors.*expected a name that ends in \.apr or \.gguf/],
  [
    ['convert', 'demo', '-o', 'x-00001-of-00003.gguf', '--force'],
    2,
    /name is that of one part of several; expected another/,
  ],
  [['convert', 'demo', '-o', join('no', 'such', 'folder', 'x.apr')], 3, /there is no folder/],
  [['convert', 'absent.gguf', '-o', 'x.apr'], 3, /absent\.gguf: no such file/],
] as const) {
  test(`apr ${words.join(' ')} → ${status}`, async () => {
    const result = await apr(words);
    assert.is(result.status, status, result.stderr);
    assert.is(result.stdout, '');
    assert.match(result.stderr, message);
    assert.match(result.stderr, /^apr: [^\n]+\n$/);
  });
}

test.run();
