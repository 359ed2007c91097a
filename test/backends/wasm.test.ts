import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { WasmBackend } from '../../src/backends/wasm/backend.ts';
import type { PassObserver, Tap } from '../../src/graph/observer.ts';
import { openPasses } from './passes.ts';

const TOKENS = [1022, 84, 82, 290, 198, 287, 269, 220];

/** Collects every activation by its name. */
function collector(): { taps: Map<string, Tap>; observer: PassObserver } {
  const taps = new Map<string, Tap>();
  return { taps, observer: { wants: () => true, onTap: (tap) => taps.set(tap.name, tap) } };
}

function cosine(a: Float32Array, b: Float32Array): number {
  let ab = 0;
  let aa = 0;
  let bb = 0;
  for (let i = 0; i < a.length; i++) {
    ab += a[i]! * b[i]!;
    aa += a[i]! * a[i]!;
    bb += b[i]! * b[i]!;
  }
  return ab / Math.sqrt(aa * bb);
}

test('every activation of every command agrees with the reference backend', async () => {
  const reference = await openPasses({ backend: 'reference' });
  const wasm = await openPasses({ backend: 'wasm', threads: 2 });
  try {
    const expected = collector();
    const found = collector();
    const tokens = TOKENS.slice(0, Math.min(TOKENS.length, wasm.backend.observedRows));
    await reference.run(tokens, 0, expected);
    await wasm.run(tokens, 0, found);
    assert.equal([...found.taps.keys()], [...expected.taps.keys()]);
    for (const [name, tap] of expected.taps) {
      // Routing holds ids beside weights: the ids must be equal, and are when all words are close.
      assert.ok(cosine(tap.values, found.taps.get(name)!.values) > 0.9995, name);
    }
  } finally {
    await Promise.all([reference.dispose(), wasm.dispose()]);
  }
});

test('logits are the same bits for any number of threads, any memory, any number of banks', async () => {
  const variants = [
    { threads: 1 },
    { threads: 2 },
    { threads: 5 },
    { shared: false },
    { threads: 2, bankBytes: 77 * 65536 },
    { shared: false, bankBytes: 77 * 65536 },
  ];
  let expected: Buffer | undefined;
  for (const variant of variants) {
    const passes = await openPasses({ backend: 'wasm', ...variant });
    try {
      const first = await passes.run(TOKENS);
      const second = await passes.run([17], TOKENS.length);
      const bits = Buffer.concat([Buffer.from(first.buffer), Buffer.from(second.buffer)]);
      expected ??= bits;
      assert.ok(bits.equals(expected), JSON.stringify(variant));
      const { bankCount } = passes.backend as WasmBackend;
      assert.ok(
        'bankBytes' in variant ? bankCount > 1 : bankCount === 1,
        `${bankCount} banks: ${JSON.stringify(variant)}`,
      );
    } finally {
      await passes.dispose();
    }
  }
});

test.run();
