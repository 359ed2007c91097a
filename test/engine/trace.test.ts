import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { AprError, createEngine, type Statistics, type Trace, type TraceOptions, traceModel } from '../../src/index.ts';
import { npyHeader } from '../../src/trace/npy.ts';
import { BLOCK_STAGES, STAGES } from '../../src/trace/stages.ts';
import { DEMO, FIXTURES } from '../repository.ts';
import { damagedCopy, scaled } from '../trace/damaged.ts';

const PROMPT = 'What is 2+2?';
const folder = mkdtempSync(join(tmpdir(), 'apr-trace-'));
test.after(() => rmSync(folder, { recursive: true }));

function trace(options: Partial<TraceOptions> = {}, source: string = DEMO): Promise<Trace> {
  return traceModel(source, { prompt: PROMPT, threads: 2, ...options });
}

async function rejects(promise: Promise<unknown>, code: string, message: RegExp): Promise<void> {
  try {
    await promise;
  } catch (error) {
    assert.instance(error, AprError);
    assert.is((error as AprError).code, code);
    assert.match((error as AprError).message, message);
    return;
  }
  assert.unreachable('it did not reject');
}

test('every fixture, dense or with experts: each layer has its output, each activation its stage', async () => {
  // Models without norms before attention and FFN.
  const without = (file: string): string[] => (file.includes('olmo2') ? ['attn_norm', 'ffn_norm'] : []);
  const stages = new Set(STAGES.map(({ name }) => name));
  for (const file of readdirSync(FIXTURES).filter((name) => name.endsWith('.gguf'))) {
    const { layers, num_layers, verdict, embedding, final_norm, logits, hidden_dim } = await trace(
      { prompt: 'ab', chat: false, payload: true, threads: 1 },
      join(FIXTURES, file),
    );
    assert.is(verdict.status, 'healthy', `${file}: ${verdict.message}`);
    assert.is(layers.length, num_layers, file);
    for (const layer of layers) {
      assert.is(layer.name, `transformer_block_${layer.layer_idx}`);
      for (const name of ['attn_norm', 'qkv', 'attn_out', 'ffn_norm', 'ffn_out', 'output', 'output_stats']) {
        if (without(file).includes(name)) assert.not.ok(layer[name], `${file}: ${layer.name}.${name}`);
        else assert.type((layer[name] as Statistics).std, 'number', `${file}: ${layer.name}.${name}`);
      }
      assert.is(layer.output.count, hidden_dim);
      for (const { name, stage } of layer.activations!) assert.ok(stages.has(stage), `${file}: ${name} has no stage`);
    }
    for (const stats of [embedding, final_norm, logits]) assert.type(stats.l2, 'number', file);
    assert.is(logits.top_k.length, 5);
  }
});

test('stages stand in the order in which they are computed', async () => {
  const { layers } = await trace({ payload: true });
  const order = layers[0]!.activations!.map(({ stage }) => BLOCK_STAGES.findIndex(({ name }) => name === stage));
  // Q, K and V each go their way to the end of RoPE.
  const compare = order.filter((stage) => BLOCK_STAGES[stage]!.name !== 'qkv' && stage > 3);
  assert.equal(
    compare,
    [...compare].sort((a, b) => a - b),
  );
});

test('the router’s entropy and experts; of all tokens as often as there are tokens', async () => {
  const one = (await trace()).layers[2]!.router!;
  assert.is(one.experts.length, 2);
  assert.ok(Math.abs(one.experts.reduce((sum, { weight }) => sum + weight, 0) - 1) < 1e-6);
  assert.ok(one.entropy! > 0 && one.entropy! < one.max_entropy);
  const all = await trace({ tokens: 'all' });
  const uses = all.layers[2]!.router!.experts.reduce((sum, { count }) => sum + count, 0);
  assert.is(uses, 2 * all.encoded_tokens.length);
});

test('the figures are those of the one forward pass: logits equal the engine’s, tracing or not', async () => {
  const found = await trace({ maxTokens: 8 });
  const engine = await createEngine(DEMO, { threads: 1 });
  try {
    const logits = await engine.forward(found.encoded_tokens);
    const best = found.logits.top_k[0]!;
    assert.is(best.logit, Math.max(...logits));
    assert.is(best.token_id, logits.indexOf(best.logit));
    for await (const event of engine.generate({ messages: [{ role: 'user', content: PROMPT }], maxTokens: 8 })) {
      if (event.event !== 'final') continue;
      assert.equal(found.generation?.tokens, event.tokens);
      assert.equal(found.encoded_tokens, event.prompt_tokens);
    }
  } finally {
    await engine.dispose();
  }
  const { generation, layers } = found;
  // The token that ends the answer is never fed back.
  assert.is(generation?.steps.length, generation?.tokens.length);
  assert.equal(
    generation?.steps.map(({ position }) => position),
    generation?.tokens.map((_, i) => found.encoded_tokens.length + i),
  );
  assert.ok(generation?.steps.every(({ output_std, not_finite }) => output_std.length === 4 && not_finite === null));
  assert.ok(layers.every(({ output_stats }) => output_stats.count === 256));
});

test('a long prompt in many windows: all tokens, once each', async () => {
  const prompt = 'one two three four five six seven eight nine ten. '.repeat(12);
  const { encoded_tokens, layers, embedding } = await trace({ prompt, tokens: 'all', threads: 2 });
  assert.ok(encoded_tokens.length > 64, `${encoded_tokens.length} tokens`);
  assert.is(embedding.count, 256 * encoded_tokens.length);
  assert.is(layers[3]!.output.count, 256 * encoded_tokens.length);
  assert.is((await trace({ prompt })).layers[3]!.output.count, 256);
});

test('bisection: a copy whose attention norm of layer 2 is 1.5 times as large is named there', async () => {
  const copy = join(folder, 'scaled.gguf');
  await damagedCopy(DEMO, copy, 'blk.2.attn_norm.weight', scaled(1.5));
  for (const tokens of ['last', 'all'] as const) {
    const { comparison, verdict } = await trace({ reference: copy, tokens });
    const first = comparison!.first_divergence!;
    assert.equal([first.layer, first.stage, first.activation], [2, 'attn_norm', 'blk.2.attn_norm'], tokens);
    assert.ok(first.cosine! > 0.9999 && Math.abs(first.relative_l2! - 1 / 3) < 1e-3);
    assert.match(comparison!.message, /^layer 2, attention norm /);
    assert.is(verdict.status, 'healthy');
    const before = comparison!.places.filter(({ layer }) => layer !== null && layer < 2);
    assert.ok(before.length > 0 && before.every(({ max_difference }) => max_difference === 0));
  }
});

test('the backends agree, kernels of decode and of prefill', async () => {
  for (const tokens of ['last', 'all'] as const) {
    const { comparison, encoded_tokens } = await trace({ reference: 'backend:reference', tokens });
    assert.is(comparison!.first_divergence, null, comparison!.message);
    assert.equal(comparison!.missing, []);
    const embedding = comparison!.places.find(({ activation }) => activation === 'embd')!;
    assert.is(embedding.count, tokens === 'all' ? 256 * encoded_tokens.length : 256);
  }
});

test('planted faults: a NaN in a norm, in a block of an expert, and weights that are too large', async () => {
  const copy = join(folder, 'damaged.gguf');
  await damagedCopy(DEMO, copy, 'blk.1.ffn_norm.weight', (bytes) => bytes.setFloat32(20, Number.NaN, true));
  const norm = await trace({ maxTokens: 4, reference: DEMO }, copy);
  assert.equal([norm.verdict.status, norm.verdict.layer, norm.verdict.stage], ['not_finite', 1, 'ffn_norm']);
  assert.match(norm.verdict.message, /^layer 1, FFN norm .*: 1 NaN of 256 values$/);
  assert.is(norm.comparison?.first_divergence?.activation, 'blk.1.ffn_norm');
  assert.is(norm.generation, null);
  assert.equal(norm.logits.top_k, []);

  // The scale of the first block of every expert's first row.
  await damagedCopy(DEMO, copy, 'blk.3.ffn_up_exps.weight', (bytes) => {
    for (let expert = 0; expert < 8; expert++) bytes.setUint16((expert * bytes.byteLength) / 8, 0x7e00, true);
  });
  const expert = await trace({}, copy);
  assert.equal([expert.verdict.status, expert.verdict.layer, expert.verdict.stage], ['not_finite', 3, 'gate_up']);

  await damagedCopy(DEMO, copy, 'blk.2.ffn_norm.weight', scaled(50));
  const jump = await trace({}, copy);
  assert.equal([jump.verdict.status, jump.verdict.layer, jump.verdict.stage], ['spread', 2, 'output']);
});

test('saved tensors: a file for each activation, as large as its header says, and a reference for the next run', async () => {
  for (const tokens of ['last', 'all'] as const) {
    const saved = join(folder, `saved-${tokens}`);
    const { encoded_tokens, saved: told } = await trace({ saveTensors: saved, tokens });
    const files = readdirSync(saved).filter((name) => name.endsWith('.npy'));
    assert.is(told?.files, files.length);
    const rows = tokens === 'all' ? encoded_tokens.length : 1;
    const norm = readFileSync(join(saved, 'blk.2.attn_norm.npy'));
    const header = npyHeader('<f4', [rows, 256]);
    assert.equal(norm.subarray(0, header.length), Buffer.from(header));
    assert.is(norm.length, header.length + rows * 256 * 4);
    const experts = readFileSync(join(saved, 'blk.2.ffn_routing.experts.npy'));
    assert.match(experts.toString('latin1', 0, 80), new RegExp(`'<i4'.*\\(${rows}, 2\\)`));
    assert.match(readFileSync(join(saved, 'blk.2.ffn_up_exps.npy')).toString('latin1', 0, 80), /, 2, 256\)/);
    const { comparison } = await trace({ reference: saved, tokens, threshold: 1, maxL2: 0, threads: 1 });
    assert.is(comparison!.first_divergence, null, comparison!.message);
    assert.ok(comparison!.places.length > 80);
  }
  // The last of all tokens is the last token.
  const { comparison } = await trace({ reference: join(folder, 'saved-all'), threshold: 1, maxL2: 0 });
  assert.is(comparison!.first_divergence, null);
  await rejects(
    trace({ reference: join(folder, 'saved-last'), tokens: 'all' }),
    'CONTRACT',
    /holds 1 tokens, expected at least 20/,
  );
  await rejects(
    trace({ reference: join(folder, 'saved-last'), prompt: 'What is 2+3?' }),
    'CONTRACT',
    /saved from a prompt with token 17 at position 10, this prompt has 18/,
  );
});

test('only some stages, and only one layer', async () => {
  const saved = join(folder, 'some');
  const options = { stages: ['attn_norm', 'output'], layer: 1, reference: 'backend:reference' };
  const { comparison, layers } = await trace({ ...options, saveTensors: saved });
  const expected = ['blk.1.attn_norm', 'blk.1.ffn_residual'];
  assert.equal(
    comparison!.places.map(({ activation }) => activation),
    expected,
  );
  assert.equal(readdirSync(saved).sort(), [...expected.map((name) => `${name}.npy`), 'trace.json']);
  assert.equal(
    layers.map(({ layer_idx }) => layer_idx),
    [1],
  );
});

test('stages that a model does not have are told, whether they were to be saved or compared', async () => {
  const dense = join(FIXTURES, 'demo-qwen2-q8_0.gguf');
  const target = join(folder, 'no-router');
  await rejects(
    trace({ stages: ['router', 'qk_norm'], saveTensors: target }, dense),
    'USAGE',
    /qwen2 computes none of the chosen stages, router, qk_norm/,
  );
  assert.not(existsSync(target));
  await rejects(trace({ stages: ['router'], reference: dense }, dense), 'USAGE', /computes none of the chosen stages/);
});

test('a folder from another program: some arrays, f64, no manifest', async () => {
  const foreign = join(folder, 'foreign');
  mkdirSync(foreign);
  const values = new Float64Array(256).fill(1);
  writeFileSync(
    join(foreign, 'blk.0.attn_norm.npy'),
    Buffer.concat([npyHeader('<f8', [256]), Buffer.from(values.buffer)]),
  );
  const { comparison } = await trace({ reference: foreign });
  assert.is(comparison!.places.length, 1);
  assert.is(comparison!.first_divergence?.activation, 'blk.0.attn_norm');
  assert.is(comparison!.first_divergence?.reference, 1);
  assert.is(comparison!.missing.length, 82);
  writeFileSync(join(foreign, 'trace.json'), '[1, 2');
  await rejects(trace({ reference: foreign }), 'BAD_FORMAT', /trace\.json is not JSON/);
});

/** A folder of saved tensors in which one file is replaced. */
function saved(name: string, file: string, header: Uint8Array, values: ArrayBufferView): string {
  const copy = join(folder, name);
  cpSync(join(folder, 'saved-last'), copy, { recursive: true });
  writeFileSync(join(copy, file), Buffer.concat([header, Buffer.from(values.buffer)]));
  return copy;
}

test('a reference of other types: ids as int64 are taken, numbers of the wrong kind are not', async () => {
  const [experts, norm] = ['blk.2.ffn_routing.experts.npy', 'blk.2.attn_norm.npy'];
  const ids = new Int32Array(Uint8Array.from(readFileSync(join(folder, 'saved-last', experts)).subarray(-8)).buffer);
  const wide = saved(
    'wide',
    experts,
    npyHeader('<i8', [1, 2]),
    BigInt64Array.from(ids, (id) => BigInt(id)),
  );
  const { comparison } = await trace({ reference: wide, threshold: 1, maxL2: 0 });
  assert.is(comparison!.first_divergence, null, comparison!.message);
  const floats = saved('floats', experts, npyHeader('<f4', [1, 2]), Float32Array.from(ids));
  await rejects(
    trace({ reference: floats }),
    'UNSUPPORTED',
    /experts\.npy holds values of type <f4, expected <i4 or <i8/,
  );
  const bits = saved('bits', norm, npyHeader('<i4', [1, 256]), new Int32Array(256));
  await rejects(trace({ reference: bits }), 'UNSUPPORTED', /attn_norm\.npy holds values of type <i4, expected <f4 or /);
  const scalar = saved('scalar', norm, npyHeader('<f4', []), new Float32Array(1));
  await rejects(trace({ reference: scalar }), 'CONTRACT', /attn_norm has 1 values, expected … × 256/);
});

test('a reference with a layer left out says so; one with a folder in a file’s place is refused', async () => {
  const some = join(folder, 'some-layers');
  cpSync(join(folder, 'saved-last'), some, { recursive: true });
  for (const name of readdirSync(some)) if (name.startsWith('blk.1.')) rmSync(join(some, name));
  const { comparison } = await trace({ reference: some });
  assert.match(
    comparison!.message,
    /^no divergence in 63 .*; the reference lacks 20 of 83 activations, the first is blk\.1\.attn_norm$/,
  );
  mkdirSync(join(some, 'blk.1.attn_norm.npy'));
  await rejects(
    trace({ reference: some }),
    'BAD_FORMAT',
    /blk\.1\.attn_norm\.npy: is a folder, pipe, .*, expected a file/,
  );
});

test('a pipe in a file’s place is refused, and not waited for', async () => {
  const piped = join(folder, 'piped');
  mkdirSync(piped);
  if (spawnSync('mkfifo', [join(piped, 'embd.npy')]).status !== 0) return; // no such command on this system
  await rejects(trace({ reference: piped }), 'BAD_FORMAT', /embd\.npy: is a folder, pipe, .*, expected a file/);
});

test('a folder that cannot be written leaves nothing behind, and nothing is overwritten', async () => {
  const taken = join(folder, 'taken');
  mkdirSync(taken);
  writeFileSync(join(taken, 'mine'), 'x');
  await rejects(trace({ saveTensors: taken }), 'OVERWRITE', /a folder with something in it/);
  await rejects(trace({ saveTensors: join(taken, 'mine') }), 'OVERWRITE', /exists already/);
  await rejects(trace({ saveTensors: join(folder, 'no', 'such') }), 'NOT_FOUND', /there is no folder/);
  const failed = join(folder, 'failed');
  await rejects(trace({ saveTensors: failed, reference: join(folder, 'no.gguf') }), 'NOT_FOUND', /no\.gguf/);
  assert.not(existsSync(failed));
  assert.equal(
    readdirSync(folder).filter((name) => name.endsWith('.part')),
    [],
  );
});

test('what cannot be traced is refused before weights are read', async () => {
  await rejects(trace({ prompt: [] }), 'USAGE', /the prompt is empty/);
  await rejects(trace({ prompt: '', chat: false }), 'USAGE', /the prompt is empty/);
  await rejects(trace({ prompt: [70_000] }), 'USAGE', /token 70000 is not in the vocabulary/);
  await rejects(trace({ layer: 4 }), 'USAGE', /layer is 4, expected one from 0 to 3/);
  await rejects(trace({ stages: ['attn'] }), 'USAGE', /stage "attn" is unknown, expected some of embedding, /);
  await rejects(trace({ stages: [] }), 'USAGE', /stages is empty/);
  await rejects(
    trace({ stages: ['logits', 'embedding'], layer: 1 }),
    'USAGE',
    /no layer computes logits or embedding, but layer 1 alone was chosen/,
  );
  await rejects(trace({ threshold: 2 }), 'USAGE', /threshold is 2, expected a number from -1 to 1/);
  await rejects(trace({ reference: 'backend:cuda' }), 'USAGE', /"backend:cuda", expected backend:reference/);
  await rejects(
    trace({ reference: join(FIXTURES, 'tiny-qwen3-q5_k.gguf') }),
    'CONTRACT',
    /the architecture is qwen3, expected qwen3moe as in .*, to compare the two/,
  );
  await rejects(trace({ chat: false, system: 'Be kind.' }), 'USAGE', /system needs a chat template/);
});

test.run();
