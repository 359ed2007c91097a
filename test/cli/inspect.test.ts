import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type BuilderValue, buildGguf, typed } from '../formats/gguf-builder.ts';
import { apr } from './command.ts';

const folder = mkdtempSync(join(tmpdir(), 'apr-inspect-'));
test.after(() => rmSync(folder, { recursive: true }));

function file(name: string, metadata: Record<string, BuilderValue>): string {
  const path = join(folder, name);
  writeFileSync(path, buildGguf({ metadata }));
  return path;
}

test('apr inspect demo says what the file is', async () => {
  const { status, stdout, stderr } = await apr(['inspect', 'demo']);
  assert.is(status, 0);
  assert.is(stderr, '');
  assert.match(stdout, /^architecture +qwen3moe$/m);
  assert.match(stdout, /^ +Q4_K +15 tensors, 75\.8 % of the parameters/m);
  assert.match(stdout, /^experts +8, 2 used/m);
  assert.match(stdout, /^ +eos +1023 "<\|im_end\|>"$/m);
  assert.not.match(stdout, /assumed|problem/);
});

test('--json: one document, with --metadata all keys', async () => {
  const { status, stdout } = await apr(['inspect', 'demo', '--json', '--metadata']);
  assert.is(status, 0);
  const document = JSON.parse(stdout);
  assert.is(document.model, 'demo');
  assert.is(document.parameters, 7_613_184);
  assert.is(document.hyperparameters.expertUsedCount, 2);
  assert.equal(document.defaults, {});
  assert.is(document.metadata['general.architecture'], 'qwen3moe');
  assert.is(document.metadata['tokenizer.ggml.tokens'], '1024 strings');
  assert.equal(document.problems, []);
});

test('what the file leaves out is marked, with the value that running it takes', async () => {
  const path = file('bare.gguf', {
    'general.architecture': 'qwen2',
    'qwen2.block_count': 1,
    'qwen2.context_length': 64,
    'qwen2.embedding_length': 32,
    'qwen2.feed_forward_length': 64,
    'qwen2.attention.head_count': 2,
    'tokenizer.ggml.model': 'llama',
    'tokenizer.ggml.tokens': ['<unk>', '<s>', '</s>'],
    'tokenizer.ggml.scores': typed('float32', [0, 0, 0]),
  });
  const { status, stdout } = await apr(['inspect', path]);
  assert.is(status, 0);
  assert.match(stdout, /^assumed +qwen2\.rope\.freq_base = 1000000: the file does not say$/m);
  assert.match(stdout, /^assumed +qwen2\.attention\.head_count_kv = 2/m);
});

test('what would be refused is told as a problem, and the rest all the same', async () => {
  const path = file('mamba.gguf', { 'general.architecture': 'mamba', 'general.name': 'A snake' });
  const { status, stdout } = await apr(['inspect', path]);
  assert.is(status, 0);
  assert.match(stdout, /^name +A snake$/m);
  assert.match(stdout, /^problem +.*architecture "mamba" is not supported/m);
  assert.match(stdout, /^problem +.*tokenizer\.ggml\.model is missing/m);
});

test('a file that is none, and a command without one', async () => {
  assert.is((await apr(['inspect', 'no/such.gguf'])).status, 3);
  assert.is((await apr(['inspect'])).status, 2);
  const path = join(folder, 'page.gguf');
  writeFileSync(path, '<!doctype html><html></html>');
  assert.is((await apr(['inspect', path])).status, 4);
});

test.run();
