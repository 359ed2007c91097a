import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { AprErrorCode } from '../../src/errors.ts';
import type { ByteSource } from '../../src/formats/byte-source.ts';
import { openGguf } from '../../src/formats/gguf/parse.ts';
import { memorySource } from '../../src/formats/memory-source.ts';
import { type BuilderFile, ByteWriter, buildGguf, typed, VALUE_TYPE } from './gguf-builder.ts';
import { assertPrintable, rejection } from './rejection.ts';

const BEYOND = 2n ** 64n - 1n;

const open = (bytes: Uint8Array) => openGguf(memorySource('bad.gguf', bytes));

function refused(name: string, code: AprErrorCode, bytes: () => Uint8Array, ...fragments: (string | RegExp)[]): void {
  test(`refused: ${name}`, async () => {
    assertPrintable(await rejection(() => open(bytes()), code, 'bad.gguf', ...fragments));
  });
}

function refusedFile(name: string, code: AprErrorCode, file: BuilderFile, ...fragments: (string | RegExp)[]): void {
  refused(name, code, () => buildGguf(file), ...fragments);
}

/** A file whose one metadata entry has key `k` and is written by `write`. */
function entry(write: (writer: ByteWriter) => ByteWriter): () => Uint8Array {
  return () => write(new ByteWriter().text('GGUF').u32(3).u64(0).u64(1).string('k')).bytes();
}

/** A file whose one tensor is named `w` and is written by `write`. */
function tensor(write: (writer: ByteWriter) => ByteWriter, data = 4096): () => Uint8Array {
  return () => write(new ByteWriter().text('GGUF').u32(3).u64(1).u64(0).string('w')).raw(new Uint8Array(data)).bytes();
}

// The header.
refused('no magic', 'BAD_FORMAT', () => new Uint8Array(64), 'GGUF');
refusedFile('version 0', 'BAD_FORMAT', { version: 0 }, 'version 0');
refusedFile('version 4', 'UNSUPPORTED', { version: 4 }, 'version 4', '1 to 3');
refusedFile('big-endian', 'UNSUPPORTED', { version: 0x03000000 }, 'big-endian');
refusedFile('tensor count beyond the file', 'BAD_FORMAT', { counts: { tensors: BEYOND } }, String(BEYOND), '24');
refusedFile('entry count beyond the file', 'BAD_FORMAT', { counts: { entries: 2 ** 40 } }, String(2 ** 40), '24');
refusedFile(
  'a hundred thousand entries',
  'BAD_FORMAT',
  {
    metadata: { filler: 'x'.repeat(2_000_000) },
    counts: { entries: 100_000 },
  },
  '100000 metadata entries',
  '65536',
);

// Keys.
refused(
  'key longer than the file',
  'BAD_FORMAT',
  () =>
    new ByteWriter()
      .text('GGUF')
      .u32(3)
      .u64(0)
      .u64(1)
      .u64(2n ** 63n)
      .raw(new Uint8Array(99))
      .bytes(),
  'the key of metadata entry 0',
  'truncated',
);
refusedFile('key of 70,000 bytes', 'BAD_FORMAT', { metadata: { ['k'.repeat(70_000)]: 1 } }, 'key', '70000', '65535');
refusedFile('empty key', 'BAD_FORMAT', { metadata: { '': 1 } }, 'the key of metadata entry 0', '0 bytes');
refusedFile('key with a zero byte', 'BAD_FORMAT', { metadata: { 'a\0b': 1 } }, 'control characters', 'a\uFFFDb');
refused(
  'key of invalid UTF-8',
  'BAD_FORMAT',
  () =>
    new ByteWriter()
      .text('GGUF')
      .u32(3)
      .u64(0)
      .u64(1)
      .string(new Uint8Array([0xc3, 0x28]))
      .value(1)
      .bytes(),
  'the key of metadata entry 0',
  'UTF-8',
);
refused(
  'key twice',
  'BAD_FORMAT',
  () => new ByteWriter().text('GGUF').u32(3).u64(0).u64(2).string('same').value(1).string('same').value(2).bytes(),
  '"same"',
  'twice',
);

// Values.
refused(
  'value type 13',
  'BAD_FORMAT',
  entry((to) => to.u32(13).u64(0)),
  '"k"',
  '13',
);
refused(
  'value type 2^32 − 1',
  'BAD_FORMAT',
  entry((to) => to.u32(0xffffffff).u64(0)),
  '"k"',
  '4294967295',
);
refused(
  'boolean 2',
  'BAD_FORMAT',
  entry((to) => to.u32(VALUE_TYPE.bool).u8(2)),
  '"k"',
  'value 2',
  '0 or 1',
);
refused(
  'boolean 7 in an array',
  'BAD_FORMAT',
  entry((to) => to.u32(VALUE_TYPE.array).u32(VALUE_TYPE.bool).u64(3).u8(1).u8(0).u8(7)),
  '"k"',
  'value 7',
  'at 2',
);
refused(
  'string longer than the file',
  'BAD_FORMAT',
  entry((to) => to.u32(VALUE_TYPE.string).u64(2 ** 40)),
  '"k"',
  'truncated',
);
refused(
  'string of 2^64 − 1 bytes',
  'BAD_FORMAT',
  entry((to) => to.u32(VALUE_TYPE.string).u64(BEYOND)),
  '"k"',
  'truncated',
);
refused(
  'array of arrays',
  'UNSUPPORTED',
  entry((to) => to.u32(VALUE_TYPE.array).u32(VALUE_TYPE.array).u64(1).u32(VALUE_TYPE.uint8).u64(1).u8(1)),
  '"k"',
  'array of arrays',
);
refused(
  'array of value type 99',
  'BAD_FORMAT',
  entry((to) => to.u32(VALUE_TYPE.array).u32(99).u64(1).u64(0)),
  '"k"',
  '99',
);
for (const type of ['uint8', 'float64', 'bool', 'string'] as const) {
  refused(
    `array of 2^61 ${type}`,
    'BAD_FORMAT',
    entry((to) =>
      to
        .u32(VALUE_TYPE.array)
        .u32(VALUE_TYPE[type])
        .u64(2n ** 61n)
        .raw(new Uint8Array(64)),
    ),
    '"k"',
    String(2n ** 61n),
    'truncated',
  );
}
for (const [low, high] of [
  [100, 0],
  [0, 1],
  [0xffffffff, 0xffffffff],
] as const) {
  refused(
    `string of ${high} · 2^32 + ${low} bytes in an array`,
    'BAD_FORMAT',
    entry((to) => to.u32(VALUE_TYPE.array).u32(VALUE_TYPE.string).u64(2).string('ok').u32(low).u32(high)),
    '"k"',
    'string 1',
    'truncated',
  );
}

// Tensor entries.
refused(
  'no dimensions',
  'BAD_FORMAT',
  tensor((to) => to.u32(0).u32(0).u64(0)),
  '"w"',
  '0 dimensions',
  '1 to 4',
);
refusedFile(
  'five dimensions',
  'BAD_FORMAT',
  { tensors: [{ name: 'w', shape: [1, 1, 1, 1, 1] }] },
  '"w"',
  '5 dimensions',
);
refused(
  '2^32 − 1 dimensions',
  'BAD_FORMAT',
  tensor((to) => to.u32(0xffffffff)),
  '"w"',
  '4294967295 dimensions',
);
refused(
  '2^54 values',
  'BAD_FORMAT',
  tensor((to) =>
    to
      .u32(2)
      .u64(2 ** 27)
      .u64(2 ** 27)
      .u32(0)
      .u64(0),
  ),
  '"w"',
  '134217728 × 134217728',
);
refused(
  '2^64 values, which a 64-bit product would call 0',
  'BAD_FORMAT',
  tensor((to) =>
    to
      .u32(2)
      .u64(2n ** 32n)
      .u64(2n ** 32n)
      .u32(0)
      .u64(0),
  ),
  '"w"',
  '4294967296 × 4294967296',
);
refused(
  'a negative size',
  'BAD_FORMAT',
  tensor((to) => to.u32(1).u64(BEYOND).u32(0).u64(0)),
  '"w"',
  String(BEYOND),
);
refused(
  'a huge size beside an empty one',
  'BAD_FORMAT',
  tensor((to) => to.u32(2).u64(BEYOND).u64(0).u32(0).u64(0)),
  '"w"',
  String(BEYOND),
);
refused(
  '2^53 − 1 values of 8 bytes',
  'BAD_FORMAT',
  tensor((to) =>
    to
      .u32(1)
      .u64(2n ** 53n - 1n)
      .u32(28)
      .u64(0),
  ),
  '"w"',
  'truncated',
);
refusedFile(
  'rows that blocks do not divide',
  'BAD_FORMAT',
  {
    tensors: [{ name: 'w', shape: [250, 4], type: 'Q4_K' }],
  },
  '"w"',
  '250',
  '256',
  'Q4_K',
);
refusedFile('tensor type 77', 'UNSUPPORTED', { tensors: [{ name: 'w', shape: [4], type: 77 }] }, '"w"', 'type 77');
refusedFile(
  'tensor type 2^32 − 1',
  'UNSUPPORTED',
  { tensors: [{ name: 'w', shape: [4], type: 0xffffffff }] },
  '4294967295',
);
refusedFile(
  'withdrawn tensor type',
  'UNSUPPORTED',
  { tensors: [{ name: 'w', shape: [32], type: 31 }] },
  '"w"',
  'Q4_0_4_4',
);
refusedFile(
  'tensor twice',
  'BAD_FORMAT',
  {
    tensors: [
      { name: 'w', shape: [8] },
      { name: 'w', shape: [8] },
    ],
  },
  '"w"',
  'twice',
);
refusedFile(
  'empty tensor name',
  'BAD_FORMAT',
  { tensors: [{ name: '', shape: [8] }] },
  'the name of tensor 0',
  '0 bytes',
);
refusedFile(
  'tensor name of 70,000 bytes',
  'BAD_FORMAT',
  { tensors: [{ name: 'n'.repeat(70_000), shape: [8] }] },
  '70000',
);
refusedFile(
  'tensor name with a zero byte',
  'BAD_FORMAT',
  { tensors: [{ name: 'w\0', shape: [8] }] },
  'the name of tensor 0',
  'control',
);
refusedFile(
  'tensor name with an escape',
  'BAD_FORMAT',
  { tensors: [{ name: '\u001b[2J', shape: [8] }] },
  'the name of tensor 0',
);

// Where the data lie.
for (const alignment of [0, 3, 48, 2 ** 31]) {
  refused(
    `alignment ${alignment}`,
    'BAD_FORMAT',
    () => buildGguf({ metadata: { 'general.alignment': alignment } }),
    'general.alignment',
    String(alignment),
    'power of two',
  );
}
refusedFile(
  'alignment that is text',
  'BAD_FORMAT',
  { metadata: { 'general.alignment': '32' } },
  'general.alignment',
  'string',
);
refusedFile(
  'alignment 2^63',
  'BAD_FORMAT',
  { metadata: { 'general.alignment': typed('uint64', 2n ** 63n) } },
  'general.alignment',
);
refusedFile(
  'alignment 2^40',
  'BAD_FORMAT',
  { metadata: { 'general.alignment': typed('uint64', 2 ** 40) } },
  'general.alignment',
);
refusedFile(
  'offset off the alignment',
  'BAD_FORMAT',
  { tensors: [{ name: 'w', shape: [8], offset: 4 }] },
  '"w"',
  'offset 4',
  '32',
);
refusedFile(
  'offset beyond the file',
  'BAD_FORMAT',
  { tensors: [{ name: 'w', shape: [8], offset: 2 ** 40 }] },
  '"w"',
  'truncated',
);
refusedFile(
  'offset of 2^64 − 32',
  'BAD_FORMAT',
  { tensors: [{ name: 'w', shape: [8], offset: 2n ** 64n - 32n }] },
  '"w"',
  'truncated',
);
refusedFile(
  'tensors that overlap',
  'BAD_FORMAT',
  {
    tensors: [
      { name: 'b', shape: [16], offset: 32 },
      { name: 'a', shape: [16], offset: 0 },
    ],
  },
  '"a"',
  '"b"',
);
refusedFile(
  'two tensors in one place',
  'BAD_FORMAT',
  {
    tensors: [
      { name: 'a', shape: [16], offset: 0 },
      { name: 'b', shape: [16], offset: 0 },
    ],
  },
  '"a"',
  '"b"',
);

test('a file cut off anywhere is truncated, and the message has its size', async () => {
  const whole = buildGguf({
    metadata: { 'general.architecture': 'llama', tokens: ['a', 'bc', 'def'], numbers: [1, 2, 3], eps: 0.5, flag: true },
    tensors: [
      { name: 'a', shape: [8] },
      { name: 'b', shape: [32, 2], type: 'Q8_0' },
    ],
  });
  const { tensors } = await open(whole);
  const needed = tensors.get('b')!.offset + tensors.get('b')!.byteLength;
  for (let size = 0; size < needed; size++) {
    await rejection(() => open(whole.subarray(0, size)), 'BAD_FORMAT', 'truncated', String(size));
  }
  const { message } = await rejection(() => open(whole.subarray(0, needed - 1)), 'BAD_FORMAT');
  assert.match(message, `ends at byte ${needed}, but the file has ${needed - 1} bytes`);
});

/** A source of the size given that holds `head` and then zeros, and refuses to be read as a whole. */
function sparse(head: Uint8Array, size: number, mostBytes: number): ByteSource {
  let read = 0;
  return {
    name: 'sparse.gguf',
    size,
    locator: { kind: 'memory', bytes: head },
    read: async (offset, length) => {
      read += length;
      assert.ok(read <= mostBytes, `${read} bytes were read`);
      const bytes = new Uint8Array(length);
      bytes.set(head.subarray(offset, offset + length));
      return bytes;
    },
    close: async () => {},
  };
}

test('in a file of 10 TB too, lengths and counts cannot ask for gigabytes', async () => {
  const size = 10 ** 13;
  const oneEntry = (write: (writer: ByteWriter) => ByteWriter) => sparse(entry(write)(), size, 2 << 20);
  const array = (type: keyof typeof VALUE_TYPE) => (to: ByteWriter) =>
    to
      .u32(VALUE_TYPE.array)
      .u32(VALUE_TYPE[type])
      .u64(2 ** 33);
  await rejection(
    () => openGguf(oneEntry((to) => to.u32(VALUE_TYPE.string).u64(2 ** 33))),
    'BAD_FORMAT',
    '"k"',
    '268435456',
  );
  await rejection(() => openGguf(oneEntry(array('string'))), 'BAD_FORMAT', '"k"', '268435456');
  await rejection(() => openGguf(oneEntry(array('uint8'))), 'BAD_FORMAT', '"k"', '268435456');
  for (const counts of [{ tensors: 2 ** 30 }, { entries: 2 ** 30 }, { tensors: 2 ** 17 }, { entries: 2 ** 17 }]) {
    await rejection(() => openGguf(sparse(buildGguf({ counts }), size, 2 << 20)), 'BAD_FORMAT', 'sparse.gguf');
  }
});

test.run();
