import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type Lifetime, placeBuffers } from '../../src/scheduling/arena.ts';

function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

test('buffers that live at the same time never overlap, and all offsets are aligned', () => {
  const next = random(7);
  for (let round = 0; round < 50; round++) {
    const buffers: Lifetime[] = Array.from({ length: 60 }, () => {
      const first = Math.floor(next() * 40);
      return { bytes: 1 + Math.floor(next() * 5000), first, last: first + Math.floor(next() * 8), offset: -1 };
    });
    const size = placeBuffers(buffers);
    for (const a of buffers) {
      assert.is(a.offset % 64, 0);
      assert.ok(a.offset >= 0 && a.offset + a.bytes <= size);
      for (const b of buffers) {
        if (a === b || a.last < b.first || b.last < a.first) continue;
        assert.ok(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset, 'two live buffers overlap');
      }
    }
  }
});

test('a chain of buffers that each live for two steps takes the place of two', () => {
  const chain: Lifetime[] = Array.from({ length: 100 }, (_, i) => ({ bytes: 64, first: i, last: i + 1, offset: -1 }));
  assert.is(placeBuffers(chain), 128);
});

test.run();
