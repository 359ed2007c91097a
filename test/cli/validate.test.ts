/** `apr validate` says what `apr run` does, and all of it. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Validation } from '../../src/index.ts';
import { DEMO, FIXTURES } from '../repository.ts';
import { apr, type Result } from './command.ts';

let folder: string;
test.before(() => {
  folder = mkdtempSync(join(tmpdir(), 'apr-'));
});
test.after(() => rmSync(folder, { recursive: true }));

const TINY = join(FIXTURES, 'tiny-qwen2-f32.gguf');

/** A fixture with bytes changed: `edit` gets a copy. */
function damaged(name: string, source: string, edit: (bytes: Buffer) => void): string {
  const bytes = Buffer.from(readFileSync(source));
  edit(bytes);
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}

/** Where the number behind a length-prefixed name begins. */
function behind(bytes: Buffer, name: string): number {
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(BigInt(name.length));
  const at = bytes.indexOf(Buffer.concat([prefix, Buffer.from(name)]));
  assert.ok(at > 0, `${name} is in the header`);
  return at + 8 + name.length;
}

/** First byte of a tensor's data in a file of alignment 32. */
function dataOf(bytes: Buffer, name: string): number {
  const at = behind(bytes, name);
  const dimensions = bytes.readUInt32LE(at);
  const offset = Number(bytes.readBigUInt64LE(at + 4 + dimensions * 8 + 4));
  const names = [
    ...bytes
      .subarray(0, 1 << 16)
      .toString('latin1')
      .matchAll(/(?:token_embd|output_norm|output|blk\.\d+\.\w+)\.(?:weight|bias)/g),
  ];
  const ends = names.map(
    ({ index, 0: text }) => index + text.length + 4 + bytes.readUInt32LE(index + text.length) * 8 + 12,
  );
  return Math.ceil(Math.max(...ends) / 32) * 32 + offset;
}

async function report(words: readonly string[]): Promise<{ result: Result; validation: Validation }> {
  const result = await apr(['validate', ...words, '--json']);
  return { result, validation: JSON.parse(result.stdout) as Validation };
}

test('a sound model: status 0, one line', async () => {
  const { status, stdout, stderr } = await apr(['validate', 'demo']);
  assert.equal([status, stderr], [0, '']);
  assert.match(stdout, /^demo: gguf, qwen3moe, \d+ tensors: valid\n$/);
  const { result, validation } = await report(['demo', '--quality']);
  assert.is(result.status, 0);
  assert.equal([validation.valid, validation.findings], [true, []]);
  assert.is(validation.quality!.tensors.length, validation.tensors);
  const embedding = validation.quality!.tensors.find(({ name }) => name === 'token_embd.weight')!;
  assert.equal([embedding.nan, embedding.infinite, embedding.dead_rows], [0, 0, 0]);
});

test('every finding is listed, and run refuses what validate refuses', async () => {
  const path = damaged('wrong.gguf', DEMO, (bytes) => {
    bytes.writeBigUInt64LE(128n, behind(bytes, 'output_norm.weight') + 4);
    bytes.write('blk.0.attn_oddly.weight', behind(bytes, 'blk.0.attn_k_norm.weight') - 24, 'latin1');
  });
  const { status, stdout } = await apr(['validate', path]);
  assert.is(status, 5, stdout);
  assert.match(
    stdout,
    /^error: tensor output_norm\.weight has shape \[128\], expected shape \[256\] \(F-LAYOUT-CONTRACT-003\)$/m,
  );
  assert.match(stdout, /^error: tensor blk\.0\.attn_k_norm\.weight is missing/m);
  assert.match(stdout, /: not valid, 3 errors\n$/);
  const { result, validation } = await report([path]);
  assert.is(result.status, 5);
  assert.is(validation.valid, false);
  assert.equal(
    validation.findings.map(({ rule, tensor, severity }) => [severity, rule, tensor?.slice(0, 18)]),
    [
      ['error', 'F-LAYOUT-CONTRACT-003', 'output_norm.weight'],
      ['error', 'OBLIG-APR-WEIGHT-SHAPE-MATCHES-CONFIG', 'blk.0.attn_k_norm.'],
      ['error', 'TENSOR-KNOWN', 'blk.0.attn_oddly.w'],
    ],
  );
  for (const { found, expected, message } of validation.findings) assert.ok(found && expected && message);
  assert.is((await apr(['run', path, 'Hello'])).status, 5);
});

test('a tokenizer or an architecture that is not there is a finding too', async () => {
  const path = damaged('architecture.gguf', TINY, (bytes) => {
    bytes.write('qwenX', behind(bytes, 'general.architecture') + 12, 'latin1');
    bytes.write('gptX', behind(bytes, 'tokenizer.ggml.model') + 12, 'latin1');
  });
  const { result, validation } = await report([path]);
  assert.is(result.status, 5, result.stdout);
  assert.equal(
    validation.findings.map(({ rule }) => rule),
    ['TOKENIZER', 'ARCHITECTURE'],
  );
  assert.match(validation.findings[0]!.message, /^tokenizer\.ggml\.model is "gptX"/);
});

test('--quality finds NaN, zeros and duplicates', async () => {
  const path = damaged('values.gguf', TINY, (bytes) => {
    bytes.writeFloatLE(Number.NaN, dataOf(bytes, 'blk.0.ffn_up.weight') + 400);
    const down = dataOf(bytes, 'blk.0.ffn_down.weight');
    const query = dataOf(bytes, 'blk.0.attn_q.weight');
    bytes.fill(0, query, query + valuesOf(bytes, 'blk.0.attn_q.weight') * 4);
    bytes.copy(
      bytes,
      dataOf(bytes, 'blk.1.ffn_down.weight'),
      down,
      down + valuesOf(bytes, 'blk.0.ffn_down.weight') * 4,
    );
  });
  assert.is((await apr(['validate', path])).status, 0, 'the contract alone does not look at values');
  const { result, validation } = await report([path, '--quality']);
  assert.is(result.status, 5);
  const found = validation.findings.map(({ severity, rule, tensor }) => `${severity} ${rule} ${tensor}`);
  assert.ok(found.includes('error F-DATA-QUALITY-002 blk.0.ffn_up.weight'), found.join());
  assert.ok(
    found.some((line) => /F-DATA-QUALITY-003 blk\.0\.attn_q\.weight/.test(line)),
    found.join(),
  );
  assert.ok(
    found.some((line) => /^warning TENSOR-DUPLICATE blk\.[01]\.ffn_down\.weight/.test(line)),
    found.join(),
  );
});

function valuesOf(bytes: Buffer, name: string): number {
  const at = behind(bytes, name);
  return Number(bytes.readBigUInt64LE(at + 4)) * Number(bytes.readBigUInt64LE(at + 12));
}

test('an .apr file: its checksum, and a byte that changed', async () => {
  const path = join(folder, 'tiny.apr');
  assert.is((await apr(['convert', TINY, '-o', path, '-q'])).status, 0);
  const whole = await apr(['validate', path, '--quality']);
  assert.equal([whole.status, whole.stderr], [0, '']);
  assert.match(whole.stdout, /: apr, qwen2, \d+ tensors: valid\n$/);
  const changed = damaged('changed.apr', path, (bytes) => {
    bytes[bytes.length - 200]! ^= 1;
  });
  const { result, validation } = await report([changed, '--quality']);
  assert.is(result.status, 5);
  assert.ok(validation.findings.some(({ rule }) => rule === 'APR-CHECKSUM'));
});

test('what cannot be read is an error, not a finding', async () => {
  const cut = join(folder, 'cut.gguf');
  writeFileSync(cut, readFileSync(DEMO).subarray(0, 5000));
  for (const [words, status] of [
    [['validate', cut], 4],
    [['validate', join(folder, 'absent.gguf')], 3],
    [['validate'], 2],
    [['validate', cut, 'more'], 2],
  ] as const) {
    const text = await apr(words);
    assert.equal([text.status, text.stdout], [status, ''], words.join(' '));
    assert.match(text.stderr, /^apr: [^\n]+\n$/);
    const json = await apr([...words, '--json']);
    assert.equal([json.status, json.stderr], [status, '']);
    assert.is((JSON.parse(json.stdout) as { error: { exit_status: number } }).error.exit_status, status);
  }
});

test.run();
