/** Special tokens are found as llama.cpp finds them: one after the other, the longest first; and at no more cost. */

import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { memorySource } from '../../src/formats/memory-source.ts';
import { openModel } from '../../src/formats/open-model.ts';
import { createTokenizer, type Tokenizer } from '../../src/tokenizer/index.ts';
import { buildGguf, typed } from '../formats/gguf-builder.ts';

const CONTROL = 3;
const USER_DEFINED = 4;

/** Byte-level BPE of the letters a to c, and special tokens from id 3 on. */
async function tokenizerOf(special: readonly string[], types: readonly number[]): Promise<Tokenizer> {
  const metadata = {
    'general.architecture': 'llama',
    'tokenizer.ggml.model': 'gpt2',
    'tokenizer.ggml.pre': 'default',
    'tokenizer.ggml.tokens': ['a', 'b', 'c', ...special],
    'tokenizer.ggml.token_type': typed('int32', [1, 1, 1, ...types]),
    'tokenizer.ggml.merges': typed('string', []),
  };
  return createTokenizer((await openModel(memorySource('v.gguf', buildGguf({ metadata })))).metadata);
}

/** By the definition: for each token, longest first, every place from the left that is still text. */
function search(text: string, special: readonly string[], types: readonly number[], control: boolean): number[] {
  const owner = new Array<number>(text.length).fill(-1);
  const order = special.map((_, i) => i).filter((i) => control || types[i] === USER_DEFINED);
  order.sort((a, b) => special[b]!.length - special[a]!.length || a - b);
  for (const i of order) {
    const { length } = special[i]!;
    for (let at = 0; at + length <= text.length; at++) {
      if (!text.startsWith(special[i]!, at) || owner.slice(at, at + length).some((each) => each !== -1)) continue;
      owner.fill(i, at, at + length);
      at += length - 1;
    }
  }
  const ids: number[] = [];
  for (let at = 0; at < text.length; ) {
    const i = owner[at]!;
    ids.push(i < 0 ? 'abc'.indexOf(text[at]!) : i + 3);
    at += i < 0 ? 1 : special[i]!.length;
  }
  return ids;
}

test('random vocabularies and texts of few letters', async () => {
  let state = 1;
  const below = (limit: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 8) % limit;
  };
  const word = (most: number): string =>
    Array.from({ length: 1 + below(most) }, () => 'abc'[below(2 + below(2))]).join('');
  for (let round = 0; round < 150; round++) {
    const special = [...new Set(Array.from({ length: 1 + below(8) }, () => word(6)))].filter((each) => each.length > 1);
    const types = special.map(() => (below(2) === 0 ? CONTROL : USER_DEFINED));
    const tokenizer = await tokenizerOf(special, types);
    for (let i = 0; i < 4; i++) {
      const text = word(40);
      for (const control of [true, false]) {
        const expected = search(text, special, types, control);
        assert.equal(tokenizer.encode(text, { special: control }), expected, `${special} on ${text}`);
      }
    }
  }
});

test('thousands of tokens that all match at every place', async () => {
  const special = Array.from({ length: 1200 }, (_, i) => 'a'.repeat(i + 2));
  const tokenizer = await tokenizerOf(
    special,
    special.map(() => CONTROL),
  );
  const before = process.memoryUsage().heapUsed;
  const ids = tokenizer.encode('a'.repeat(12_010), { special: true });
  assert.equal(ids, new Array<number>(10).fill(1202));
  // One object for each place and token would be a gigabyte.
  assert.ok(process.memoryUsage().heapUsed - before < 200e6);
});

test.run();
