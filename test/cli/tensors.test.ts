import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { tensorFilter } from '../../src/engines/tensors.ts';
import { listTensors, type TensorListing } from '../../src/index.ts';
import { buildGguf } from '../formats/gguf-builder.ts';
import { DEMO, FIXTURES } from '../repository.ts';
import { apr } from './command.ts';
import { assertGolden } from './golden.ts';

const TINY = join(FIXTURES, 'tiny-qwen2-f32.gguf');

const folder = mkdtempSync(join(tmpdir(), 'apr-tensors-'));
test.after(() => rmSync(folder, { recursive: true }));

test('apr tensors: a line for each, with headings', async () => {
  const { status, stdout, stderr } = await apr(['tensors', 'demo']);
  assert.equal([status, stderr], [0, '']);
  const lines = stdout.trimEnd().split('\n');
  assert.match(lines[0]!, /^tensor +type +shape +bytes +offset$/);
  assert.is(lines.length, 1 + 51);
  assert.match(stdout, /^token_embd\.weight +Q4_K +\[256 × 1024\] +147456 +248448$/m);
});

test('--filter, --limit and --json: one document', async () => {
  assertGolden(await apr(['tensors', 'demo', '--filter', 'blk.*.attn_?.weight', '--limit', '2', '--json']), 'tensors');
});

test('--stats are those of the values', async () => {
  const values = [0, 0.5, -2, 3.5, Number.NaN, Number.POSITIVE_INFINITY, 0, 2];
  const bytes = new Uint8Array(new Float32Array(values).buffer);
  const path = join(folder, 'values.gguf');
  writeFileSync(path, buildGguf({ metadata: {}, tensors: [{ name: 'x', shape: [4, 2], type: 0, data: bytes }] }));
  const { status, stdout, stderr } = await apr(['tensors', path, '--stats', '--json']);
  assert.equal([status, stderr], [0, '']);
  const { stats } = (JSON.parse(stdout) as TensorListing).tensors[0]!;
  const { std, l2_norm, ...rest } = stats!;
  assert.equal(rest, { count: 8, nan: 1, infinite: 1, zeros: 2, min: -2, max: 3.5, mean: 4 / 6 });
  assert.ok(Math.abs(l2_norm - Math.sqrt(0.25 + 4 + 12.25 + 4)) < 1e-12);
  assert.ok(Math.abs(std - Math.sqrt(20.5 / 6 - (4 / 6) ** 2)) < 1e-12);
  const text = await apr(['tensors', path, '--stats']);
  assert.match(text.stdout, /^tensor .* least +most +mean +deviation +zeros +NaN, Inf\nx +F32 .* -2 +3\.5 /);
});

test('tensors larger than a stretch are read to their end', async () => {
  const count = (1 << 19) + 64;
  const values = new Float32Array(count).fill(1);
  values[count - 1] = -7;
  const path = join(folder, 'long.gguf');
  const data = new Uint8Array(values.buffer);
  writeFileSync(path, buildGguf({ metadata: {}, tensors: [{ name: 'long', shape: [count], type: 0, data }] }));
  const { tensors } = await listTensors(path, { stats: true });
  assert.equal([tensors[0]!.stats!.count, tensors[0]!.stats!.min, tensors[0]!.stats!.max], [count, -7, 1]);
});

test('a type without a decoder has no statistics, and says so', async () => {
  const path = join(folder, 'integers.gguf');
  const data = new Uint8Array(16);
  writeFileSync(path, buildGguf({ metadata: {}, tensors: [{ name: 'n', shape: [4], type: 26, data }] }));
  assert.is((await listTensors(path, { stats: true })).tensors[0]!.stats, null);
  assert.match((await apr(['tensors', path, '--stats'])).stdout, /^n +I32 +\[4\] .*no decoder for I32$/m);
});

test('a name that is not there: a note, and an empty list', async () => {
  const { status, stdout, stderr } = await apr(['tensors', 'demo', '--filter', 'banana']);
  assert.equal([status, stdout], [0, '']);
  assert.match(stderr, /^no name is like "banana"; without --filter, 51 tensors would be listed\n$/);
  assert.is((await apr(['tensors', 'demo', '--filter', 'banana', '-q'])).stderr, '');
});

test('what goes wrong has a status and a sentence', async () => {
  const page = join(folder, 'page.gguf');
  writeFileSync(page, '<!doctype html><html></html>');
  copyFileSync(TINY, join(folder, 'tiny.gguf'));
  for (const [words, status, message] of [
    [['tensors'], 2, /SOURCE is missing/],
    [['tensors', 'demo', 'more'], 2, /found 2 arguments, "more" behind SOURCE/],
    [['tensors', 'demo', '--limit', '-1'], 2, /--limit is "-1", expected a whole number from 0/],
    [['tensors', join(folder, 'tiny')], 3, /no such file; did you mean ".*tiny\.gguf"\?/],
    [['tensors', page], 4, /not a model file: .*HTML/],
  ] as const) {
    const result = await apr(words);
    assert.equal([result.status, result.stdout], [status, ''], words.join(' '));
    assert.match(result.stderr, message);
  }
});

test('filters: a part, or a pattern that is never slow', () => {
  for (const [filter, name, expected] of [
    ['attn', 'blk.0.attn_q.weight', true],
    ['Attn', 'blk.0.attn_q.weight', false],
    ['blk.1.*', 'blk.10.attn_q.weight', false],
    ['blk.1*', 'blk.10.attn_q.weight', true],
    ['*.weight', 'output.weight', true],
    ['*.weight', 'output.weight.x', false],
    ['blk.?.ffn_*_exps.weight', 'blk.3.ffn_down_exps.weight', true],
    ['*', '', true],
    ['?', '', false],
    ['a*b*c', 'aXbYbZc', true],
  ] as const) {
    assert.is(tensorFilter(filter)(name), expected, `${filter} ${name}`);
  }
  assert.is(tensorFilter('*a'.repeat(500))('a'.repeat(5000).concat('b')), false);
});

test('the library lists the same', async () => {
  const listing = await listTensors(DEMO, { filter: 'output', limit: 1 });
  assert.equal([listing.tensor_count, listing.matched, listing.tensors.length], [51, 6, 1]);
});

test.run();
