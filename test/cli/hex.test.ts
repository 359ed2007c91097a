import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readBlocks } from '../../src/index.ts';
import { type BuilderTensor, buildGguf } from '../formats/gguf-builder.ts';
import { DEMO } from '../repository.ts';
import { apr } from './command.ts';
import { assertGolden } from './golden.ts';

const folder = mkdtempSync(join(tmpdir(), 'apr-hex-'));
test.after(() => rmSync(folder, { recursive: true }));

/** One block of Q4_0: d = 0.5, and the nibbles 0 to 15, 15 to 0. */
const Q4_0 = Uint8Array.from([0x00, 0x38, ...Array.from({ length: 16 }, (_, i) => i | ((15 - i) << 4))]);

function file(name: string, tensors: readonly BuilderTensor[]): string {
  const path = join(folder, name);
  writeFileSync(path, buildGguf({ metadata: {}, tensors }));
  return path;
}

test('a block as text: its bytes by fields, its scale and quants', async () => {
  const path = file('q4.gguf', [{ name: 'w', shape: [32, 1], type: 'Q4_0', data: Q4_0 }]);
  const { status, stdout, stderr } = await apr(['hex', path, 'w']);
  assert.equal([status, stderr], [0, '']);
  assert.is(
    stdout.replace(/byte \d+ of the file/, 'byte N of the file'),
    [
      'w: Q4_0 [32 × 1], 1 block of 32 values in 18 bytes',
      '',
      'block 0: row 0, from value 0 on; byte N of the file',
      '  0000  d   00 38  = 0.5',
      '  0002  qs  f0 e1 d2 c3 b4 a5 96 87 78 69 5a 4b 3c 2d 1e 0f',
      '  values 0 to 31: 0.5 × quant',
      '    -8 -7 -6 -5 -4 -3 -2 -1  0  1  2  3  4  5  6  7',
      '     7  6  5  4  3  2  1  0 -1 -2 -3 -4 -5 -6 -7 -8',
      '',
    ].join('\n'),
  );
  const values = await apr(['hex', path, '--tensor', 'w', '--values']);
  assert.match(values.stdout, /^ +-4 -3\.5 +-3 -2\.5 +-2 -1\.5 +-1 -0\.5$/m);
});

test('--json: one document', async () => {
  assertGolden(await apr(['hex', 'demo', 'blk.0.attn_q.weight', '--row', '3', '--json']), 'hex');
});

test('--block, --row and -n', async () => {
  const block = await readBlocks(DEMO, 'blk.0.ffn_gate_exps.weight', { row: 300, limit: 2 });
  assert.equal(
    block.blocks.map(({ index, row, column }) => [index, row, column]),
    [
      [300, 300, 0],
      [301, 301, 0],
    ],
  );
  const last = await readBlocks(DEMO, 'output_norm.weight', { block: 7, limit: 100 });
  assert.equal([last.block_count, last.blocks.length, last.blocks[0]!.column], [8, 1, 224]);
  assert.is(last.blocks[0]!.values!.length, 32);
});

test('a type without a decoder is shown as bytes', async () => {
  const path = file('q8.gguf', [{ name: 'q', shape: [32], type: 'Q8_1' }]);
  const { status, stdout } = await apr(['hex', path, 'q']);
  assert.is(status, 0);
  assert.match(stdout, /^ {2}0020 +00 00 00 00$/m);
  assert.match(stdout, /there is no decoder for this type/);
});

test('what goes wrong has a status and a sentence', async () => {
  const empty = file('empty.gguf', [{ name: 'none', shape: [0] }]);
  for (const [words, status, message] of [
    [['hex'], 2, /SOURCE is missing, expected apr hex SOURCE TENSOR/],
    [['hex', 'demo'], 2, /TENSOR is missing, expected .*; "apr tensors demo" lists the names/],
    [['hex', 'demo', 'a', 'b'], 2, /found 3 arguments/],
    [['hex', 'demo', 'a', '--tensor', 'b'], 2, /given as "a" and by --tensor, expected one/],
    [['hex', 'demo', 'output_norm.weight', '--block', '8'], 2, /block is 8, expected a whole number from 0 to 7/],
    [['hex', 'demo', 'output_norm.weight', '--row', '1'], 2, /row is 1, expected a whole number from 0 to 0/],
    [['hex', 'demo', 'x', '--row', '1', '--block', '1'], 2, /--block and --row exclude each other/],
    [
      ['hex', 'demo', 'output_nrom.weight'],
      3,
      /no tensor "output_nrom\.weight" .*did you mean "output_norm\.weight"\?/,
    ],
    [['hex', 'demo', 'attn_q'], 3, /did you mean "blk\.0\.attn_q\.weight"\?/],
    [['hex', 'demo', 'zzzzzz'], 3, /"apr tensors demo" lists them/],
    [['hex', join(folder, 'absent.gguf'), 'x'], 3, /absent\.gguf: no such file/],
    [['hex', empty, 'none'], 2, /tensor "none" is empty: it has no block to show/],
  ] as const) {
    const result = await apr(words);
    assert.equal([result.status, result.stdout], [status, ''], `${words.join(' ')}: ${result.stderr}`);
    assert.match(result.stderr, message);
  }
});

test.run();
