import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { styleOf } from '../../cli/render/style.ts';
import { createEngine, inspectModel } from '../../src/index.ts';
import { type BuilderValue, buildGguf, typed } from '../formats/gguf-builder.ts';
import { DEMO } from '../repository.ts';
import { apr, type Result } from './command.ts';
import { assertGolden, golden } from './golden.ts';

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
  assert.match(stdout, /^ +eos +1023 "<\|im_end\|>", ends an answer$/m);
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

test('--json: the whole document', async () => {
  type Document = { memory: Record<string, unknown>; hyperparameters: Record<string, unknown> };
  const expected = golden('inspect') as Document;
  assertGolden(await apr(['inspect', 'demo', '--json', '-t', '2']), 'inspect', (document: Document) => {
    // What the machine has and what its kernels need differs; a new architecture adds hyperparameters.
    for (const key of Object.keys(document.memory))
      if (!/context_length$|threads/.test(key)) document.memory[key] = null;
    document.memory.largest_context_length = null;
    for (const key of Object.keys(document.hyperparameters))
      if (!(key in expected.hyperparameters)) delete document.hyperparameters[key];
  });
});

test('the memory is what loading the model takes, and more of it with more positions and threads', async () => {
  const { memory } = await inspectModel(DEMO, { threads: 1, contextLength: 256 });
  const engine = await createEngine(DEMO, { threads: 1, contextLength: 256 });
  try {
    assert.is(memory!.kv_cache_bytes, engine.info.kvCacheBytes);
    assert.ok(memory!.weight_bytes >= engine.info.weightBytes);
  } finally {
    await engine.dispose();
  }
  const { weight_bytes, kv_cache_bytes, compute_bytes, total_bytes } = memory!;
  assert.is(weight_bytes + kv_cache_bytes + compute_bytes, total_bytes);
  const twice = (await inspectModel(DEMO, { threads: 1, contextLength: 512 })).memory!;
  assert.is(twice.kv_cache_bytes, 2 * kv_cache_bytes);
  const threads = (await inspectModel(DEMO, { threads: 8, contextLength: 256 })).memory!;
  assert.ok(threads.compute_bytes > compute_bytes);
  const trained = (await inspectModel(DEMO, { threads: 1, contextLength: 0 })).memory!;
  assert.is(trained.context_length, 512);
});

test('a context that does not fit is told, with one that would', async () => {
  const { status, stdout } = await apr(['inspect', 'demo', '-c', '16777216']);
  assert.is(status, 0);
  assert.match(
    stdout,
    /^ +fits here +no, .* are free; a context of about 512 positions would fit \(-c 512\)$|^problem .* at most \d+ are possible/m,
  );
});

test('--vocab lists every token', async () => {
  const { status, stdout } = await apr(['inspect', 'demo', '--vocab']);
  assert.is(status, 0);
  assert.match(stdout, /^ +0 {2}normal +"!"$/m);
  assert.match(stdout, /^ +1023 {2}control +"<\|im_end\|>"$/m);
  assert.match(stdout, /^ +\d+ {2}normal +"\uFFFD" \(".+"\)$/m, 'a part of a character shows how the file writes it');
  const document = JSON.parse((await apr(['inspect', 'demo', '--vocab', '--json'])).stdout);
  assert.is(document.vocabulary.length, 1024);
  assert.equal(document.vocabulary[39], { id: 39, token: 'H', text: 'H', type: 'normal' });
  const space = document.vocabulary.find(({ token }: { token: string }) => token === '\u0120');
  assert.is(space.text, ' ');
});

test('--template is the source alone', async () => {
  const { status, stdout } = await apr(['inspect', 'demo', '--template']);
  assert.is(status, 0);
  const document = JSON.parse((await apr(['inspect', 'demo', '--template', '--json'])).stdout);
  assert.match(stdout, /^\{%- for message in messages -%\}/);
  assert.is(stdout, `${document.chat_template_source}\n`);
  const none = await apr(['inspect', file('none.gguf', { 'general.architecture': 'llama' }), '--template']);
  assert.equal([none.status, none.stdout], [3, '']);
  assert.match(none.stderr, /^apr: .*none\.gguf: there is no chat template to show: .*\n$/);
});

test('a number that the file keeps as f32 is shown as it was meant', async () => {
  const { stdout } = await apr(['inspect', 'demo', '--metadata']);
  assert.match(stdout, /layer_norm_rms_epsilon +0\.000001$/m);
  assert.match(stdout, /tokenizer\.ggml\.merges +"764 strings"$/m);
});

test('colours on a terminal only, and not with NO_COLOR', async () => {
  const { status, stdout }: Result = await apr(['inspect', 'demo']);
  assert.is(status, 0);
  assert.not.match(stdout, /\x1b/);
  assert.is(styleOf({ isTTY: false, write: () => true }, {}).bold('x'), 'x');
  assert.is(styleOf({ isTTY: true, write: () => true }, {}).bold('x'), '\x1b[1mx\x1b[22m');
  assert.is(styleOf({ isTTY: true, write: () => true }, { NO_COLOR: '' }).bold('x'), '\x1b[1mx\x1b[22m');
  assert.is(styleOf({ isTTY: true, write: () => true }, { NO_COLOR: '1' }).bold('x'), 'x');
  assert.is(styleOf({ isTTY: true, write: () => true }, { TERM: 'dumb' }).colour(3, 'x'), 'x');
});

test.run();
