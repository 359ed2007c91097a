/** `apr run --skip-contract`: what is wrong becomes warnings, unless nothing could be computed. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { createEngine, type EngineWarning } from '../../src/index.ts';
import { FIXTURES } from '../repository.ts';
import { apr } from './command.ts';

const TINY = readFileSync(join(FIXTURES, 'tiny-qwen2-f32.gguf'));
let folder: string;
test.before(() => {
  folder = mkdtempSync(join(tmpdir(), 'apr-'));
});
test.after(() => rmSync(folder, { recursive: true }));

const prefixed = (name: string): Buffer => {
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(name.length));
  return Buffer.concat([length, Buffer.from(name)]);
};

/** The tiny model with names replaced by others of the same length, and numbers behind keys by other ones. */
function damaged(
  file: string,
  { names = {}, numbers = {} }: { names?: Record<string, string>; numbers?: Record<string, Buffer> },
): string {
  const bytes = Buffer.from(TINY);
  for (const [from, to] of Object.entries(names)) {
    const at = bytes.indexOf(prefixed(from));
    assert.ok(at > 0 && from.length === to.length, from);
    bytes.write(to, at + 8, 'latin1');
  }
  for (const [key, value] of Object.entries(numbers)) {
    const at = bytes.indexOf(prefixed(key));
    assert.ok(at > 0, key);
    bytes.set(value, at + 8 + key.length + 4); // behind the value's type
  }
  const path = join(folder, file);
  writeFileSync(path, bytes);
  return path;
}

const u32 = (value: number): Buffer => Buffer.from(Uint32Array.of(value).buffer);
const f32 = (value: number): Buffer => Buffer.from(Float32Array.of(value).buffer);

const HARMLESS = {
  // The embedding becomes the head.
  names: { 'output.weight': 'outpux.weight' },
  numbers: {
    'tokenizer.ggml.bos_token_id': u32(999_999),
    'qwen2.attention.layer_norm_rms_epsilon': f32(0.5),
    'qwen2.context_length': u32(2 ** 31),
  },
};
const RULES = [
  'model-metadata-bounds-v1',
  'model-metadata-bounds-v1',
  'OBLIG-SPECIAL-TOKEN-WITHIN-VOCAB',
  'TENSOR-KNOWN',
];

test('every finding is a warning of its own, and the answer comes', async () => {
  const path = damaged('harmless.gguf', HARMLESS);
  const refused = await apr(['run', path, '--raw', 'Once']);
  assert.is(refused.status, 5);
  assert.match(refused.stderr, /^apr: .*\(and 3 more\) \(model-metadata-bounds-v1\); --skip-contract runs the model/);
  const { status, stdout, stderr } = await apr(['run', path, '--raw', 'Once', '-n', '4', '--skip-contract', '--quiet']);
  assert.is(status, 0, stderr);
  assert.ok(stdout.length > 1);
  const lines = stderr.trimEnd().split('\n');
  assert.equal(
    lines.map((line) => /^apr: warning: .*harmless\.gguf: .* \(([\w-]+)\)$/.exec(line)?.[1]),
    RULES,
    stderr,
  );
  assert.match(stderr, /context_length is 2147483648/);
  assert.match(stderr, /rms_epsilon is 0\.5/);
  assert.match(stderr, /bos_token_id is 999999/);
  assert.match(stderr, /outpux\.weight/);
});

test('the library tells them too, and a token that does not exist is never added', async () => {
  const path = damaged('library.gguf', HARMLESS);
  const told: EngineWarning[] = [];
  const onWarning = (warning: EngineWarning): void => void told.push(warning);
  const engine = await createEngine(path, { skipContract: true, threads: 1, onWarning });
  try {
    assert.equal(
      told.map(({ rule }) => rule),
      RULES,
    );
    assert.equal(engine.info.warnings, told);
    assert.ok(engine.tokenize('Once', { addSpecial: true }).every((id) => id < engine.info.vocabularySize));
    assert.ok((await engine.forward([1, 2, 3])).every(Number.isFinite));
  } finally {
    await engine.dispose();
  }
  const sound = await createEngine(join(FIXTURES, 'tiny-qwen2-f32.gguf'), { skipContract: true, threads: 1 });
  assert.equal(sound.info.warnings, []);
  await sound.dispose();
});

test('a context length beyond every cache: the default and one that is asked for run, "the file\'s" does not', async () => {
  const path = damaged('context.gguf', { numbers: { 'qwen2.context_length': u32(2 ** 31) } });
  const words = ['run', path, '--raw', 'Once', '-n', '1', '--skip-contract'];
  assert.is((await apr([...words, '-c', '64'])).status, 0);
  const { status, stderr } = await apr([...words, '-c', '0']);
  assert.is(status, 5);
  assert.match(stderr, /context_length is 2147483648, more than the 16777216 .*-c/);
});

for (const [name, damage, message] of [
  [
    'a tensor that is absent',
    { names: { 'blk.0.attn_q.weight': 'blk.0.attn_x.weight' } },
    /blk\.0\.attn_q\.weight is missing.*cannot pass over it: its values are part of every pass/,
  ],
  [
    'a wrong shape',
    { numbers: { 'qwen2.feed_forward_length': u32(128) } },
    /ffn_gate\.weight has shape.*\(and 5 more\).*cannot pass over it: values would be read where there are none/,
  ],
  [
    'a size out of bounds',
    { numbers: { 'qwen2.block_count': u32(2 ** 32 - 1) } },
    /block_count is 4294967295.*cannot pass over it: memory and the work of the kernels/,
  ],
  ['an architecture that is not there', { names: { qwen2: 'qwen9' } }, /architecture "qwen9" is not supported/],
] as const) {
  test(`${name} is refused all the same`, async () => {
    const path = damaged('obstacle.gguf', damage);
    const { status, stdout, stderr } = await apr(['run', path, '--raw', 'Once', '--skip-contract']);
    assert.ok(status === 5 || status === 4, `${status}`);
    assert.is(stdout, '');
    assert.match(stderr, message);
    assert.match(stderr, /^apr: [^\n]+\n$/);
  });
}

test.run();
