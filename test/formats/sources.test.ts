import { Buffer } from 'node:buffer';
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { blobSource } from '../../src/formats/blob-source.ts';
import type { ByteSource } from '../../src/formats/byte-source.ts';
import { memorySource } from '../../src/formats/memory-source.ts';
import { openFileSource } from '../../src/platform/node/file-source.ts';
import { rejection } from './rejection.ts';

const BYTES = Uint8Array.from({ length: 1000 }, (_, i) => (i * 7) % 251);
let folder = '';

test.before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'apr-test-'));
  await writeFile(join(folder, 'bytes.bin'), BYTES);
});
test.after(() => rm(folder, { recursive: true }));

const SOURCES: Record<string, () => Promise<ByteSource>> = {
  file: () => openFileSource(join(folder, 'bytes.bin')),
  memory: async () => memorySource('bytes.bin', BYTES),
  'shared memory': async () => {
    const shared = new Uint8Array(new SharedArrayBuffer(BYTES.length));
    shared.set(BYTES);
    return memorySource('bytes.bin', shared);
  },
  'a Buffer': async () => memorySource('bytes.bin', Buffer.from(BYTES)),
  blob: async () => blobSource('bytes.bin', new Blob([BYTES])),
};

for (const [kind, open] of Object.entries(SOURCES)) {
  test(`${kind}: reads ranges into memory of their own, refuses others`, async () => {
    const source = await open();
    assert.is(source.size, 1000);
    assert.match(source.name, 'bytes.bin');
    for (const [offset, length] of [
      [0, 1000],
      [3, 5],
      [999, 1],
      [1000, 0],
    ] as const) {
      assert.equal(Array.from(await source.read(offset, length)), Array.from(BYTES.subarray(offset, offset + length)));
    }
    const first = await source.read(0, 4);
    first.fill(0);
    assert.equal(Array.from(await source.read(0, 4)), Array.from(BYTES.subarray(0, 4)));
    assert.instance(first.buffer, ArrayBuffer);
    for (const [offset, length] of [
      [0, 1001],
      [999, 2],
      [-1, 1],
      [0, -1],
      [0.5, 1],
      [Number.NaN, 1],
      [0, Number.POSITIVE_INFINITY],
    ] as const) {
      await rejection(() => source.read(offset, length), 'BAD_FORMAT', 'bytes.bin', '1000');
    }
    await source.close();
    await source.close();
  });
}

test('the locator of a file is an absolute path', async () => {
  const source = await openFileSource(join(folder, 'bytes.bin'));
  assert.is(source.locator.kind, 'file');
  if (source.locator.kind === 'file') assert.ok(isAbsolute(source.locator.path));
  await source.close();
});

test('a missing file, a path through a file, a path that cannot be: not found', async () => {
  await rejection(() => openFileSource(join(folder, 'absent.gguf')), 'NOT_FOUND', 'absent.gguf');
  await rejection(() => openFileSource(join(folder, 'bytes.bin', 'inner.gguf')), 'NOT_FOUND', 'inner.gguf');
  await rejection(() => openFileSource('zero\0byte.gguf'), 'NOT_FOUND', 'byte.gguf');
});

test('a directory is refused by name', async () => {
  await rejection(() => openFileSource(folder), 'BAD_FORMAT', folder, 'directory');
});

test('a named pipe is refused, and not waited for', async () => {
  const pipe = join(folder, 'pipe');
  if (spawnSync('mkfifo', [pipe]).status !== 0) return; // no such command on this system
  await rejection(() => openFileSource(pipe), 'BAD_FORMAT', 'pipe');
});

test('a file that shrinks while it is open', async () => {
  const path = join(folder, 'shrinks.bin');
  await writeFile(path, BYTES);
  const source = await openFileSource(path);
  await truncate(path, 100);
  await rejection(() => source.read(0, 200), 'BAD_FORMAT', 'shrinks.bin', 'byte 100', '1000');
  await source.close();
});

test('reading after close', async () => {
  const source = await openFileSource(join(folder, 'bytes.bin'));
  await source.close();
  await rejection(() => source.read(0, 1), 'IO', 'bytes.bin', 'closed');
});

test.run();
