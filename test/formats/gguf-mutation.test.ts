/** Damages a small file in many seeded ways: the reader answers with a file that holds together, or a typed error. */

import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { AprError } from '../../src/errors.ts';
import type { ByteSource } from '../../src/formats/byte-source.ts';
import { memorySource } from '../../src/formats/memory-source.ts';
import { openModel } from '../../src/formats/open-model.ts';
import { buildGguf, typed } from './gguf-builder.ts';

const SMALL = buildGguf({
  metadata: {
    'general.architecture': 'llama',
    'general.alignment': 32,
    'llama.block_count': 2,
    'llama.rope.freq_base': 1e4 + 0.5,
    'tokenizer.ggml.tokens': ['<s>', '</s>', 'a', 'bc', '\uFEFF', ''],
    'tokenizer.ggml.scores': typed('float32', [0, 1, 2, 3, 4, 5]),
    'tokenizer.ggml.token_type': typed('int32', [1, 2, 3, 4, 5, 6]),
    'tokenizer.ggml.add_bos_token': true,
    wide: typed('uint64', [1, 2]),
    flags: [true, false, true],
  },
  tensors: [
    { name: 'token_embd.weight', shape: [32, 6], type: 'Q8_0' },
    { name: 'blk.0.attn_norm.weight', shape: [32] },
    { name: 'blk.0.ffn_up_exps.weight', shape: [32, 2, 3], type: 'F16' },
  ],
});

/** Numbers from 0 below `limit`; mulberry32. */
function generator(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % limit;
  };
}

const EXTREMES = [0n, 1n, 0x7fffffffn, 0x80000000n, 0xffffffffn, 2n ** 53n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n];

function mutate(seed: number): Uint8Array {
  const random = generator(seed);
  let bytes = SMALL.slice();
  for (let round = random(3); round >= 0; round--) {
    const at = random(Math.min(bytes.length, 900));
    switch (random(5)) {
      case 0:
        bytes[at]! ^= 1 << random(8);
        break;
      case 1:
        bytes[at] = random(256);
        break;
      case 2:
        new DataView(bytes.buffer).setBigUint64(
          Math.min(at, bytes.length - 8),
          EXTREMES[random(EXTREMES.length)]!,
          true,
        );
        break;
      case 3:
        bytes = bytes.slice(0, Math.max(at, 64));
        break;
      case 4: {
        const removed = random(16);
        const longer = new Uint8Array(bytes.length - Math.min(removed, bytes.length - at));
        longer.set(bytes.subarray(0, at));
        longer.set(bytes.subarray(at + removed), at);
        bytes = longer;
        break;
      }
    }
  }
  return bytes;
}

/** Reads what a caller would, and checks that the index lies within the file. */
async function use(source: ByteSource): Promise<void> {
  const file = await openModel(source);
  for (const key of file.metadata.keys()) {
    const value = file.metadata.value(key);
    if (typeof value !== 'object') continue;
    if (value.kind === 'strings') for (let i = 0; i < value.length; i++) value.at(i);
    else assert.is(value.values.length, value.length);
  }
  for (const { offset, byteLength, shape } of file.tensors.values()) {
    assert.ok(Number.isSafeInteger(offset) && offset >= 0 && offset + byteLength <= source.size);
    assert.ok(shape.every((size) => Number.isSafeInteger(size) && size >= 0));
    await source.read(offset, byteLength);
  }
}

test('1,500 damaged files: a typed error, or a file that holds together', async () => {
  await use(memorySource('whole.gguf', SMALL));
  const outcomes: Record<string, number> = { read: 0, BAD_FORMAT: 0, UNSUPPORTED: 0 };
  for (let seed = 1; seed <= 1500; seed++) {
    let outcome = 'read';
    try {
      await use(memorySource(`seed-${seed}.gguf`, mutate(seed)));
    } catch (error) {
      if (!(error instanceof AprError)) throw new Error(`seed ${seed}`, { cause: error });
      assert.match(error.message, `seed-${seed}.gguf`);
      outcome = error.code;
    }
    assert.ok(outcome in outcomes, `seed ${seed}: ${outcome}`);
    outcomes[outcome] = outcomes[outcome]! + 1;
  }
  // Each of them happens, so that the damage is neither too coarse nor without effect.
  for (const [outcome, count] of Object.entries(outcomes)) assert.ok(count >= 20, `${outcome}: ${count}`);
});

test.run();
