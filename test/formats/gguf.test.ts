import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { ByteSource } from '../../src/formats/byte-source.ts';
import { openGguf } from '../../src/formats/gguf/parse.ts';
import { memorySource } from '../../src/formats/memory-source.ts';
import type { NumberArray } from '../../src/formats/metadata.ts';
import { type BuilderFile, buildGguf, typed } from './gguf-builder.ts';
import { rejection } from './rejection.ts';

const open = (file: BuilderFile) => openGguf(memorySource('small.gguf', buildGguf(file)));

for (const version of [1, 2, 3]) {
  test(`version ${version}: a vocabulary without tensors`, async () => {
    const file = await open({
      version,
      metadata: { 'general.architecture': 'llama', 'tokenizer.ggml.tokens': ['a', 'b'] },
    });
    assert.is(file.format, 'gguf');
    assert.is(file.version, version);
    assert.is(file.tensors.size, 0);
    assert.is(file.metadata.sourceName, 'small.gguf');
    assert.equal([...file.metadata.keys()], ['general.architecture', 'tokenizer.ggml.tokens']);
  });
}

test('version 1: 32-bit counts, lengths and dimensions', async () => {
  const data = Float32Array.from({ length: 6 }, (_, i) => i);
  const file = await open({
    version: 1,
    metadata: { 'general.architecture': 'llama', words: ['', 'é', 'longer'], numbers: typed('int32', [1, -2]) },
    tensors: [
      { name: 'a', shape: [3, 2], data },
      { name: 'b', shape: [32, 1, 2], type: 'Q8_0' },
    ],
  });
  const words = file.metadata.strings('words')!;
  assert.equal(
    Array.from({ length: words.length }, (_, i) => words.at(i)),
    ['', 'é', 'longer'],
  );
  assert.equal(Array.from(file.metadata.numbers('numbers')!), [1, -2]);
  assert.equal(file.tensors.get('b')!.shape, [32, 1, 2]);
  const { offset, byteLength } = file.tensors.get('a')!;
  assert.equal(new Float32Array((await file.source.read(offset, byteLength)).buffer), data);
});

test('scalars of every type', async () => {
  const { metadata } = await open({
    metadata: {
      a: typed('uint8', 255),
      b: typed('int8', -128),
      c: typed('uint16', 65_535),
      d: typed('int16', -32_768),
      e: typed('uint32', 4_294_967_295),
      f: typed('int32', -2_147_483_648),
      g: typed('float32', 0.5),
      h: typed('float64', 1e-300),
      i: typed('uint64', 2 ** 52),
      j: typed('int64', -1),
      k: true,
      l: false,
      m: 'text',
      n: typed('uint64', 2n ** 64n - 1n),
      o: typed('int64', -(2n ** 63n)),
    },
  });
  const values = [...metadata.keys()].map((key) => metadata.value(key));
  const small = [
    255,
    -128,
    65_535,
    -32_768,
    4_294_967_295,
    -2_147_483_648,
    0.5,
    1e-300,
    2 ** 52,
    -1,
    true,
    false,
    'text',
  ];
  assert.equal(values, [...small, 2n ** 64n - 1n, -(2n ** 63n)]);
  assert.is(metadata.typeOf('b'), 'int8');
  assert.is(metadata.typeOf('k'), 'bool');
});

test('arrays of every type, at addresses that are no multiples of their elements', async () => {
  const { metadata } = await open({
    metadata: {
      odd: 'x',
      a: typed('uint8', [1, 255]),
      b: typed('int8', [-1]),
      c: typed('uint16', [65_535]),
      d: typed('int16', [-2]),
      e: typed('uint32', [4_294_967_295]),
      f: typed('int32', [-3, 3]),
      g: typed('float32', [0.25]),
      h: typed('float64', [1e300]),
      i: typed('uint64', [2 ** 53 - 1]),
      j: typed('int64', [-4]),
      k: [true, false],
      empty: typed('float32', []),
    },
  });
  const numbers = (key: string) => Array.from(metadata.numbers(key) ?? []);
  assert.equal('abcdefghij'.split('').map(numbers), [
    [1, 255],
    [-1],
    [65_535],
    [-2],
    [4_294_967_295],
    [-3, 3],
    [0.25],
    [1e300],
    [2 ** 53 - 1],
    [-4],
  ]);
  assert.instance((metadata.value('i') as NumberArray).values, BigUint64Array);
  assert.equal(metadata.value('k'), { kind: 'booleans', length: 2, values: new Uint8Array([1, 0]) });
  assert.is(metadata.numbers('empty')?.length, 0);
  assert.is(metadata.typeOf('a'), 'array');
});

test('strings keep byte-order marks and zero bytes; invalid UTF-8 becomes U+FFFD', async () => {
  const { metadata } = await open({
    metadata: {
      text: '\uFEFFa\0b',
      tokens: ['\uFEFF', '', 'é🚀', new Uint8Array([0xff, 0x41])],
      none: typed('string', []),
    },
  });
  assert.is(metadata.string('text'), '\uFEFFa\0b');
  const tokens = metadata.strings('tokens')!;
  assert.is(tokens.length, 4);
  assert.equal(
    [0, 1, 2, 3].map((i) => tokens.at(i)),
    ['\uFEFF', '', 'é🚀', '\uFFFDA'],
  );
  assert.equal(Array.from(tokens.bytes.subarray(tokens.starts[3], tokens.ends[3])), [0xff, 0x41]);
  assert.throws(() => tokens.at(4), /string 4/);
  assert.throws(() => tokens.at(-1), /string -1/);
  assert.is(metadata.strings('none')?.length, 0);
});

test('a header far longer than the first read, with strings across every boundary', async () => {
  const tokens = Array.from({ length: 60_000 }, (_, i) => `token ${i} ${'x'.repeat(i % 97)}`);
  const last = { name: 'last.weight', shape: [4], data: new Float32Array([1, 2, 3, 4]) };
  const bytes = buildGguf({ metadata: { tokens, long: 'y'.repeat(3 << 20), after: 7 }, tensors: [last] });
  const reads: number[] = [];
  const memory = memorySource('long.gguf', bytes);
  const source: ByteSource = {
    ...memory,
    read: (offset, length) => {
      reads.push(length);
      return memory.read(offset, length);
    },
  };
  const file = await openGguf(source);
  const read = file.metadata.strings('tokens')!;
  assert.is(read.length, tokens.length);
  for (let i = 0; i < tokens.length; i++) if (read.at(i) !== tokens[i]) assert.is(read.at(i), tokens[i]);
  assert.is(file.metadata.string('long')?.length, 3 << 20);
  assert.is(file.metadata.uint('after'), 7);
  assert.ok(reads.length > 2 && reads.length < 10, `${reads.length} reads`);
  const { offset, byteLength } = file.tensors.get('last.weight')!;
  assert.equal(new Float32Array((await file.source.read(offset, byteLength)).buffer), new Float32Array([1, 2, 3, 4]));
});

test('of a large file only the beginning is read', async () => {
  const memory = memorySource('large.gguf', buildGguf({ tensors: [{ name: 'w', shape: [1 << 20] }] }));
  let read = 0;
  await openGguf({
    ...memory,
    read: (offset, length) => {
      read += length;
      return memory.read(offset, length);
    },
  });
  assert.is(memory.size > 4 << 20, true);
  assert.is(read, 1 << 20);
});

test('tensors: types, shapes, absolute offsets, the file order', async () => {
  const file = await open({
    alignment: 64,
    tensors: [
      { name: 'b.weight', shape: [256, 3, 2], type: 'Q4_K' },
      { name: 'a.bias', shape: [5], data: new Float32Array([1, 2, 3, 4, 5]) },
      { name: 'c', shape: [32, 1, 1, 2], type: 'Q8_0' },
    ],
  });
  assert.equal([...file.tensors.keys()], ['b.weight', 'a.bias', 'c']);
  const { type, shape, offset, byteLength } = file.tensors.get('b.weight')!;
  assert.equal([type.name, shape, byteLength, offset % 64], ['Q4_K', [256, 3, 2], 6 * 144, 0]);
  const bias = file.tensors.get('a.bias')!;
  assert.is(bias.offset, offset + 896);
  const data = await file.source.read(bias.offset, bias.byteLength);
  assert.equal(new Float32Array(data.buffer), new Float32Array([1, 2, 3, 4, 5]));
  assert.equal(file.tensors.get('c')?.shape, [32, 1, 1, 2]);
});

test('tensors may lie in any order, with gaps, and behind the last one may be anything', async () => {
  const file = await open({
    tensors: [
      { name: 'second', shape: [8], offset: 64 },
      { name: 'first', shape: [8], offset: 0 },
      { name: 'third', shape: [8], offset: 256 },
    ],
  });
  assert.is(file.tensors.get('second')!.offset - file.tensors.get('first')!.offset, 64);
});

test('an empty tensor takes no bytes and overlaps nothing', async () => {
  const file = await open({
    tensors: [
      { name: 'token_embd.weight', shape: [32, 4] },
      { name: 'output.weight', shape: [32, 0], offset: 0 },
    ],
  });
  assert.is(file.tensors.get('output.weight')?.byteLength, 0);
});

test('getters say what they found and what they expected', async () => {
  const { metadata } = await open({
    metadata: {
      text: 'x\u001b[31m'.repeat(100),
      whole: 3,
      negative: -3,
      real: 1.5,
      infinite: Number.POSITIVE_INFINITY,
      huge: typed('uint64', 2n ** 63n),
      strings: ['a'],
      wide: typed('uint64', [2n ** 60n]),
      truth: true,
    },
  });
  assert.is(metadata.uint('absent'), undefined);
  assert.is(metadata.string('absent'), undefined);
  assert.is(metadata.float('whole'), 3);
  assert.is(metadata.float('real'), 1.5);
  const cases: readonly [() => unknown, ...string[]][] = [
    [() => metadata.string('whole'), 'small.gguf', '"whole"', 'uint32 3', 'a string'],
    [() => metadata.uint('text'), '"text"', 'an integer'],
    [() => metadata.uint('negative'), '"negative"', 'int32 -3'],
    [() => metadata.uint('real'), '"real"', 'float32 1.5'],
    [() => metadata.uint('huge'), '"huge"', '9223372036854775808'],
    [() => metadata.uint('strings'), '"strings"', 'an array of 1 strings'],
    [() => metadata.uint('truth'), '"truth"', 'bool true'],
    [() => metadata.float('infinite'), '"infinite"', 'Infinity', 'a finite number'],
    [() => metadata.float('text'), '"text"', 'a finite number'],
    [() => metadata.bool('whole'), '"whole"', 'true or false'],
    [() => metadata.strings('whole'), '"whole"', 'an array of strings'],
    [() => metadata.numbers('strings'), '"strings"', 'an array of numbers'],
    [() => metadata.numbers('wide'), '"wide"', '2^53'],
  ];
  for (const [run, ...fragments] of cases) {
    const { message } = await rejection(run, 'BAD_FORMAT', ...fragments);
    assert.not.match(message, '\u001b');
    assert.ok(message.length < 300, message);
  }
});

test.run();
