/** GGUF → .apr → GGUF is the same file, whatever its metadata. */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { writeApr } from '../../src/formats/apr/write.ts';
import type { ByteSink } from '../../src/formats/byte-sink.ts';
import type { ByteSource } from '../../src/formats/byte-source.ts';
import { writeGguf } from '../../src/formats/gguf/write.ts';
import { memorySource } from '../../src/formats/memory-source.ts';
import { openModel } from '../../src/formats/open-model.ts';
import { openFileSource } from '../../src/platform/node/file-source.ts';
import { FIXTURES, sharedFiles } from '../repository.ts';
import { buildGguf, typed } from './gguf-builder.ts';
import { rejection } from './rejection.ts';

class MemorySink implements ByteSink {
  readonly pieces: Uint8Array[] = [];
  largest = 0;

  async write(bytes: Uint8Array): Promise<void> {
    this.largest = Math.max(this.largest, bytes.length);
    this.pieces.push(bytes.slice());
  }

  get bytes(): Uint8Array {
    return new Uint8Array(Buffer.concat(this.pieces));
  }
}

async function convert(source: ByteSource, write: typeof writeApr): Promise<Uint8Array> {
  const sink = new MemorySink();
  const written = await write(await openModel(source), sink);
  assert.is(written, sink.bytes.length);
  return sink.bytes;
}

async function roundTrip(gguf: Uint8Array): Promise<Uint8Array> {
  const apr = await convert(memorySource('model.gguf', gguf), writeApr);
  return convert(memorySource('model.apr', apr), writeGguf);
}

const fixtures = readdirSync(FIXTURES).filter((name) => name.endsWith('.gguf'));
const paths = [...fixtures.map((name) => join(FIXTURES, name)), ...sharedFiles('models'), ...sharedFiles('vocab')];
for (const path of paths) {
  test(path.slice(path.lastIndexOf('/') + 1), async () => {
    const source = await openFileSource(path);
    const original = await source.read(0, source.size);
    await source.close();
    assert.ok(Buffer.from(await roundTrip(original)).equals(original));
  });
}

test('metadata of every type, and strings that are not UTF-8', async () => {
  const bytes = Uint8Array.of(0x61, 0xff, 0xfe, 0xc3);
  const original = buildGguf({
    metadata: {
      'general.architecture': 'llama',
      'general.name': bytes,
      'tokenizer.ggml.tokens': typed('string', ['<s>', bytes, '', '\uFEFF', 'é\0']),
      'tokenizer.ggml.merges': typed('string', [bytes, 'a b']),
      'tokenizer.ggml.scores': typed('float32', [0, -0, 1 / 3, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]),
      __proto__x: 1,
      ['__proto__']: 'a key as any other',
      a: typed('uint8', 255),
      b: typed('int8', -128),
      c: typed('uint16', 65_535),
      d: typed('int16', -32_768),
      f: typed('int32', -2_147_483_648),
      g: typed('float32', Number.NaN),
      h: typed('float64', 1e-300),
      h0: typed('float64', -0),
      i: typed('uint64', 2n ** 64n - 1n),
      j: typed('int64', -(2n ** 63n)),
      k: true,
      o: typed('uint64', [0n, 2n ** 63n]),
      p: typed('int64', [-1n, -(2n ** 63n)]),
      q: typed('bool', [true, false]),
      r: typed('int16', []),
      s: typed('string', ['', bytes]),
      t: typed('float64', [Number.NaN, 0.1]),
      u: typed('uint8', [0, 255]),
    },
    tensors: [
      { name: 'z', shape: [3], data: Float32Array.of(1, 2, 3) },
      { name: 'token_embd.weight', shape: [32, 5], type: 'Q8_0', data: new Uint8Array(170).fill(7) },
      { name: 'blk.0.ffn_up_exps.weight', shape: [64, 2, 3], type: 'Q4_1', data: new Uint8Array(240).fill(9) },
      { name: 'é', shape: [2, 1, 1, 2], type: 'I64' },
    ],
  });
  assert.equal(await roundTrip(original), original);
});

test('an alignment of its own', async () => {
  const original = buildGguf({
    alignment: 256,
    tensors: [
      { name: 'a', shape: [3] },
      { name: 'b', shape: [65] },
    ],
  });
  assert.equal(await roundTrip(original), original);
});

test('the written .apr file, as its format is described', async () => {
  const original = buildGguf({
    metadata: {
      'general.architecture': 'qwen2',
      'qwen2.embedding_length': 32,
      'qwen2.block_count': 1,
      'tokenizer.ggml.model': 'gpt2',
      'tokenizer.ggml.tokens': ['a', 'b'],
      'tokenizer.ggml.eos_token_id': 1,
      'tokenizer.chat_template': '{{ x }}',
    },
    tensors: [
      { name: 'token_embd.weight', shape: [32, 2], type: 'Q8_0', data: new Uint8Array(68).fill(3) },
      { name: 'blk.0.attn_q.weight', shape: [32, 4], data: new Float32Array(128).fill(0.5) },
    ],
  });
  const bytes = Buffer.from(await convert(memorySource('model.gguf', original), writeApr));
  assert.is(bytes.toString('latin1', 0, 4), 'APR\0');
  assert.equal([bytes[4], bytes[5]], [2, 0]);
  assert.is(bytes.readUInt16LE(6), (1 << 5) | (1 << 9) | (1 << 10), 'quantized, HAS_VOCAB, ROW_MAJOR');
  assert.is(bytes.readUInt32LE(8), 2);
  assert.is(bytes.readUInt32LE(40), crc32(Buffer.concat([bytes.subarray(0, 40), bytes.subarray(44, 64)])));
  assert.is(bytes.readUInt32LE(bytes.length - 4), crc32(bytes.subarray(0, -4)));
  const metadata = JSON.parse(bytes.toString('utf8', 64, 64 + bytes.readUInt32LE(20))) as Record<string, unknown>;
  assert.is(metadata.architecture, 'qwen2');
  assert.is(metadata.hidden_size, 32);
  assert.is(metadata.rope_type, 2);
  assert.equal(metadata['tokenizer.vocabulary'], ['a', 'b']);
  assert.is(metadata['tokenizer.model_type'], 'bpe');
  assert.is(metadata['tokenizer.eos_token_id'], 1);
  assert.equal(metadata.special_tokens, { eos_token: 'b' });
  assert.is(metadata.chat_template, '{{ x }}');
  const index = Number(bytes.readBigUInt64LE(24));
  const data = Number(bytes.readBigUInt64LE(32));
  assert.equal([index % 64, data % 64], [0, 0]);
  let at = index;
  const entries = Array.from({ length: 2 }, () => {
    const length = bytes.readUInt16LE(at);
    const name = bytes.toString('utf8', at + 2, at + 2 + length);
    at += 2 + length;
    const [dtype, dimensions] = [bytes[at], bytes[at + 1]!];
    const numbers = Array.from({ length: dimensions + 2 }, (_, i) => Number(bytes.readBigUInt64LE(at + 2 + i * 8)));
    at += 2 + numbers.length * 8;
    return { name, dtype, dims: numbers.slice(0, -2), offset: numbers.at(-2)!, size: numbers.at(-1)! };
  });
  assert.equal(entries, [
    { name: 'model.embed_tokens.weight', dtype: 8, dims: [2, 32], offset: 0, size: 68 },
    { name: 'model.layers.0.self_attn.q_proj.weight', dtype: 0, dims: [4, 32], offset: 128, size: 512 },
  ]);
  assert.equal(bytes.subarray(data, data + 68), Buffer.alloc(68, 3));
  assert.is(bytes.readFloatLE(data + 128), 0.5);
});

test('weights pass a few MB at a time', async () => {
  const size = 9 << 20;
  const original = buildGguf({ tensors: [{ name: 'a', shape: [size / 4], data: new Uint8Array(size).fill(5) }] });
  const sink = new MemorySink();
  await writeApr(await openModel(memorySource('model.gguf', original)), sink);
  assert.ok(sink.largest <= 4 << 20, `${sink.largest}`);
});

test('names that an .apr file cannot keep', async () => {
  const of = async (name: string) =>
    writeApr(
      await openModel(memorySource('model.gguf', buildGguf({ tensors: [{ name, shape: [1] }] }))),
      new MemorySink(),
    );
  await rejection(() => of('model.norm.weight'), 'UNSUPPORTED', 'model.norm.weight', 'output_norm.weight');
  await rejection(() => of('x'.repeat(257)), 'UNSUPPORTED', '257');
});

test('a version 1 file becomes one of version 3', async () => {
  const { metadata, tensors } = await openModel(
    memorySource(
      'new.gguf',
      await roundTrip(
        buildGguf({
          version: 1,
          metadata: { a: 'b' },
          tensors: [{ name: 'w', shape: [2], data: Float32Array.of(1, 2) }],
        }),
      ),
    ),
  );
  assert.is(metadata.string('a'), 'b');
  assert.equal(tensors.get('w')!.shape, [2]);
});

test.run();
