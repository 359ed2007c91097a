import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Buffer, KernelCall } from '../../src/backends/wasm/lower.ts';
import { keepOperands, SHARE, sharesOf } from '../../src/backends/wasm/shares.ts';

function buffer(values: number): Buffer {
  return { bank: 0, bytes: values * 4, first: 0, last: 0, offset: -1 };
}

function call(kernel: KernelCall['kernel'], items: number, reads: Buffer[], writes: Buffer[]): KernelCall {
  return { command: 0, kernel, bank: 0, items, least: 1, args: [], reads, writes };
}

/** A feed-forward network's middle: swiglu and what it is quantised to. */
function middle(width: number, rows: number): KernelCall[] {
  const [gate, up, product] = [buffer(width * rows), buffer(width * rows), buffer(width * rows)];
  return [
    call('swiglu', Math.ceil((width * rows) / 256), [gate, up], [product]),
    call('quantize', rows * Math.ceil(width / 256), [product], [buffer(width * rows)]),
  ];
}

/** What stands between two matrices: the sum, its norm, and that quantised. */
function between(width: number): KernelCall[] {
  const [a, b, sum, norm] = [buffer(width), buffer(width), buffer(width), buffer(width)];
  return [
    call('add', Math.ceil(width / 1024), [a, b], [sum]),
    call('rms_norm', 1, [sum], [norm]),
    call('quantize', Math.ceil(width / 256), [norm], [buffer(width)]),
  ];
}

test('a worker quantises what it has multiplied by its gates', () => {
  assert.equal(sharesOf(middle(8960, 1)), [SHARE.OWN, SHARE.ALIGNED]);
  assert.equal(sharesOf(middle(8960, 40)), [SHARE.OWN, SHARE.ALIGNED]);
});

test('but not where segments of swiglu go from row to row', () => {
  assert.equal(sharesOf(middle(8900, 40)), [SHARE.OWN, SHARE.OWN]);
});

test('what the others still read is kept as long', () => {
  const calls = middle(8960, 1);
  keepOperands(calls, sharesOf(calls));
  assert.equal(
    calls[0]!.reads.map(({ last }) => last),
    [1, 1],
  );
});

test('one worker does what is little, as far as it goes', () => {
  const product = call('mul_mat', 100, [buffer(1536)], [buffer(1536)]);
  assert.equal(sharesOf([product, ...between(1536), product]), [
    SHARE.OWN,
    SHARE.OWN,
    SHARE.WHOLE,
    SHARE.WHOLE,
    SHARE.OWN,
  ]);
  assert.equal(sharesOf(between(8192)), [SHARE.OWN, SHARE.OWN, SHARE.OWN]);
});

test('a cache does not count, partial results of attention do', () => {
  const cache = buffer(1 << 20);
  const [k, v, heads] = [buffer(256), buffer(256), buffer(1536)];
  const store = call('store_kv', 1, [k, v], [cache, cache]);
  const rope = call('rope', 1, [buffer(256)], [k]);
  assert.equal(sharesOf([rope, store]), [SHARE.OWN, SHARE.WHOLE]);
  const quantize = call('quantize', 6, [heads], [buffer(1536)]);
  const merge = (partial: number): KernelCall => call('attention_merge', 12, [buffer(partial)], [heads]);
  assert.equal(sharesOf([merge(4096), quantize]), [SHARE.OWN, SHARE.WHOLE]);
  assert.equal(sharesOf([merge(1 << 20), quantize]), [SHARE.OWN, SHARE.OWN]);
});

test.run();
