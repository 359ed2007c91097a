import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { diffModels } from '../../src/index.ts';
import { type BuilderFile, buildGguf, typed } from '../formats/gguf-builder.ts';
import { DEMO, FIXTURES } from '../repository.ts';
import { apr } from './command.ts';
import { assertGolden } from './golden.ts';

const folder = mkdtempSync(join(tmpdir(), 'apr-diff-'));
test.after(() => rmSync(folder, { recursive: true }));

function file(name: string, contents: BuilderFile): string {
  const path = join(folder, name);
  writeFileSync(path, buildGguf(contents));
  return path;
}

const floats = (...values: number[]): Uint8Array => new Uint8Array(Float32Array.from(values).buffer);

test('a file and itself are the same: status 0', async () => {
  const { status, stdout, stderr } = await apr(['diff', 'demo', DEMO]);
  assert.equal([status, stdout, stderr], [0, 'the same: 51 tensors\n', '']);
});

test('a conversion to .apr and back changes nothing', async () => {
  const [there, back] = [join(folder, 'demo.apr'), join(folder, 'demo.gguf')];
  assert.is((await apr(['convert', 'demo', '-o', there])).status, 0);
  assert.is((await apr(['convert', there, '-o', back])).status, 0);
  assert.is((await apr(['diff', there, back])).status, 0);
  assert.is((await diffModels(DEMO, there)).same, true);
});

test('every kind of difference, with its sign: status 1', async () => {
  const a = file('a.gguf', {
    metadata: { 'general.name': 'one', only: 1, list: typed('uint32', [1, 2, 3]), words: ['x', 'y'] },
    tensors: [
      { name: 'same', shape: [2], data: floats(1, 2) },
      { name: 'values', shape: [3], data: floats(3, 4, 0) },
      { name: 'shape', shape: [4], data: floats(1, 1, 1, 1) },
      { name: 'gone', shape: [1], data: floats(1) },
      { name: 'type', shape: [2], type: 'F16', data: Uint8Array.of(0, 0x3c, 0, 0x40) },
    ],
  });
  const b = file('b.gguf', {
    metadata: { 'general.name': 'two', list: typed('uint32', [1, 5, 6]), words: ['x', 'z'], new: true },
    tensors: [
      { name: 'same', shape: [2], data: floats(1, 2) },
      { name: 'values', shape: [3], data: floats(4, 3, 0) },
      { name: 'shape', shape: [2, 2], data: floats(1, 1, 1, 1) },
      { name: 'type', shape: [2], data: floats(1, 2) },
      { name: 'come', shape: [1], data: floats(1) },
    ],
  });
  const { status, stdout, stderr } = await apr(['diff', a, b]);
  assert.equal([status, stderr], [1, '']);
  assert.match(stdout, /^~ general\.name {2}"one" → "two"$/m);
  assert.match(stdout, /^- only {2}1$/m);
  assert.match(stdout, /^\+ new {2}true$/m);
  assert.match(stdout, /^~ list {2}2 of 3 numbers differ, the first at 1: 2 → 5$/m);
  assert.match(stdout, /^~ words {2}1 of 2 strings differ, the first at 1: "y" → "z"$/m);
  assert.match(stdout, /^~ values +F32 +F32 +\[3\] +0\.9600000 +0\.2828 +1 +2$/m);
  assert.match(stdout, /^~ shape +F32 \[4\] +F32 \[2 × 2\]$/m);
  assert.match(stdout, /^~ type +F16 +F32 +\[2\] +1\.0000000 +0 +0 +0$/m);
  assert.match(stdout, /^- gone +F32 +\[1\]$/m);
  assert.match(stdout, /^\+ come +F32 +\[1\]$/m);
  assert.match(stdout, /^different: 5 metadata keys and 5 of 6 tensors; the lowest cosine is 0\.9600000, of values$/m);
  const quiet = await apr(['diff', a, b, '-q']);
  assert.equal([quiet.status, quiet.stdout, quiet.stderr], [1, '', '']);
  const chosen = await diffModels(a, b, { metadata: false, filter: 'values', threshold: 0.95 });
  assert.equal([chosen.same, chosen.compared], [true, 1]);
  const names = await diffModels(a, b, { metadata: false, values: false });
  assert.equal(
    names.tensors.map(({ name, reason }) => `${name}: ${reason}`),
    ['shape: shape', 'gone: only in a', 'type: type', 'come: only in b'],
  );
});

test('NaN and zeros are told, not averaged away', async () => {
  const a = file('nan-a.gguf', {
    metadata: {},
    tensors: [
      { name: 'nan', shape: [3], data: floats(1, Number.NaN, 2) },
      { name: 'zero', shape: [2], data: floats(0, 0) },
    ],
  });
  const b = file('nan-b.gguf', {
    metadata: {},
    tensors: [
      { name: 'nan', shape: [3], data: floats(1, 5, 2) },
      { name: 'zero', shape: [2], data: floats(0, 1) },
    ],
  });
  const { tensors } = await diffModels(a, b, { threshold: 0.5 });
  assert.equal(
    tensors.map(({ name, distance }) => [name, distance]),
    [
      ['nan', { cosine: 1, relative_l2: 0, largest_difference: 0, different: 1, not_finite: 1 }],
      ['zero', { cosine: 0, relative_l2: null, largest_difference: 1, different: 1, not_finite: 0 }],
    ],
  );
});

test('a difference behind the first stretch is found', async () => {
  const values = new Float32Array((1 << 19) + 8).fill(1);
  const tensor = (data: Float32Array): BuilderFile => ({
    metadata: {},
    tensors: [{ name: 'long', shape: [data.length], data: new Uint8Array(data.slice().buffer) }],
  });
  const a = file('long-a.gguf', tensor(values));
  values[values.length - 1] = 2;
  const { tensors } = await diffModels(a, file('long-b.gguf', tensor(values)));
  assert.equal([tensors[0]!.distance!.different, tensors[0]!.distance!.largest_difference], [1, 1]);
});

test('--json: one document', async () => {
  const words = ['diff', join(FIXTURES, 'demo-qwen2-q8_0.gguf'), join(FIXTURES, 'demo-qwen2-q4_0.gguf')];
  const result = await apr([...words, '--filter', 'blk.0.attn_?.weight', '--json']);
  assert.is(result.status, 1);
  assertGolden({ ...result, status: 0 }, 'diff', (document: { a: string; b: string }) => {
    [document.a, document.b] = ['a', 'b'];
  });
});

test('what goes wrong has a status and a sentence', async () => {
  for (const [words, status, message] of [
    [['diff'], 2, /found 0 arguments, expected two model files: apr diff A B/],
    [['diff', 'demo'], 2, /found 1 argument, expected two/],
    [['diff', 'demo', 'demo', 'demo'], 2, /found 3 arguments/],
    [['diff', 'demo', 'demo', '--threshold', '2'], 2, /--threshold is "2", expected a number from -1 to 1/],
    [['diff', 'demo', 'demo', '--threshold', '1', '--no-values'], 2, /--threshold needs the values/],
    [['diff', 'demo', join(folder, 'absent.gguf')], 3, /absent\.gguf: no such file/],
  ] as const) {
    const result = await apr(words);
    assert.equal([result.status, result.stdout], [status, ''], words.join(' '));
    assert.match(result.stderr, message);
  }
});

test.run();
