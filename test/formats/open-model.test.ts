import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { AprErrorCode } from '../../src/errors.ts';
import { memorySource } from '../../src/formats/memory-source.ts';
import { openModel } from '../../src/formats/open-model.ts';
import { ByteWriter, buildGguf, typed } from './gguf-builder.ts';
import { rejection } from './rejection.ts';

const latin1 = (text: string): Uint8Array => Uint8Array.from(text, (char) => char.charCodeAt(0));

test('a GGUF file opens', async () => {
  const file = await openModel(memorySource('model.bin', buildGguf({ metadata: { 'general.architecture': 'llama' } })));
  assert.is(file.metadata.string('general.architecture'), 'llama');
});

const CASES: readonly (readonly [name: string, code: AprErrorCode, bytes: Uint8Array, ...fragments: string[]])[] = [
  ['an empty file', 'BAD_FORMAT', new Uint8Array(0), 'empty'],
  ['three bytes of the magic', 'BAD_FORMAT', latin1('GGU'), 'GGU'],
  ['an HTML page', 'BAD_FORMAT', latin1('\n <!DOCTYPE html><html><head><title>404'), 'HTML'],
  ['an HTML page behind a byte-order mark', 'BAD_FORMAT', latin1('\xef\xbb\xbf<html lang="en">'), 'HTML'],
  ['an XML error', 'BAD_FORMAT', latin1('<?xml version="1.0"?><Error><Code>AccessDenied'), 'XML'],
  ['a Git LFS pointer', 'BAD_FORMAT', latin1('version https://git-lfs.github.com/spec/v1\noid sha256:ab'), 'Git LFS'],
  ['a ZIP archive', 'BAD_FORMAT', latin1('PK\x03\x04\x00\x00'), 'PyTorch'],
  ['a pickle', 'BAD_FORMAT', latin1('\x80\x02\x8a\x0al\xfc'), 'PyTorch'],
  ['safetensors', 'BAD_FORMAT', new ByteWriter().u64(20).text('{"a":{"dtype":"F32"}}').bytes(), 'safetensors'],
  ['JSON', 'BAD_FORMAT', latin1('{"error":"not found"}'), 'JSON'],
  ['gzip', 'BAD_FORMAT', latin1('\x1f\x8b\x08\x00\x00\x00'), 'gzip'],
  ['GGJT', 'BAD_FORMAT', latin1('tjgg\x03\x00\x00\x00'), 'GGJT', 'before GGUF'],
  ['zeros', 'BAD_FORMAT', new Uint8Array(600), 'zeros'],
  ['text that has a brace in ninth place', 'BAD_FORMAT', latin1('function{} () there'), 'text', 'function{}'],
  ['anything else', 'BAD_FORMAT', latin1('\xde\xad\xbe\xef\x00\x01'), 'de ad be ef'],
  ['.apr version 2, cut', 'BAD_FORMAT', latin1('APR\0\x02\x00'), '.apr', '64'],
  ['.apr version 2 of older writers, cut', 'BAD_FORMAT', latin1('APR2\x02\x00'), '.apr', '64'],
  ['.apr version 1', 'UNSUPPORTED', latin1('APRN\x01\x00'), '.apr version 1'],
  ['.apr version 1 of older writers', 'UNSUPPORTED', latin1('APR1\x01\x00'), '.apr version 1'],
  [
    'a part of a split model',
    'UNSUPPORTED',
    buildGguf({ metadata: { 'split.no': typed('uint16', 1), 'split.count': typed('uint16', 3) } }),
    'part 2',
    '3 files',
    'merge',
  ],
];

for (const [name, code, bytes, ...fragments] of CASES) {
  test(`refused and named: ${name}`, async () => {
    await rejection(() => openModel(memorySource('thing.gguf', bytes)), code, 'thing.gguf', ...fragments);
  });
}

test('a split of one part is whole', async () => {
  const bytes = buildGguf({ metadata: { 'split.no': typed('uint16', 0), 'split.count': typed('uint16', 1) } });
  assert.is((await openModel(memorySource('whole.gguf', bytes))).tensors.size, 0);
});

test.run();
