/** Models that are split over several files. */

import { copyFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { GgufMetadata, type MetadataEntry } from '../../src/formats/gguf/metadata.ts';
import { partNames } from '../../src/formats/gguf/split.ts';
import { writeGguf } from '../../src/formats/gguf/write.ts';
import { memorySource } from '../../src/formats/memory-source.ts';
import { openModel } from '../../src/formats/open-model.ts';
import { locateParts, partsSource } from '../../src/formats/parts-source.ts';
import { convertModel, createEngine } from '../../src/index.ts';
import { openFileSource } from '../../src/platform/node/file-source.ts';
import { FIXTURES } from '../repository.ts';
import { type BuilderFile, buildGguf, typed } from './gguf-builder.ts';
import { rejection } from './rejection.ts';

const WHOLE = join(FIXTURES, 'tiny-qwen2-f16.gguf');
let folder: string;
const part = (number: number, of = 3): string => join(folder, `tiny-0000${number}-of-0000${of}.gguf`);

/** The fixture's metadata in the first of three files, its tensors over all of them, as llama.cpp splits. */
async function writeParts(): Promise<void> {
  const source = await openFileSource(WHOLE);
  const file = await openModel(source);
  const tensors = [...file.tensors];
  const size = Math.ceil(tensors.length / 3);
  for (let no = 0; no < 3; no++) {
    const entries = new Map<string, MetadataEntry>();
    if (no === 0) {
      for (const key of file.metadata.keys()) {
        entries.set(key, { type: file.metadata.typeOf(key)!, value: file.metadata.value(key)! });
      }
    }
    entries.set('split.no', { type: 'uint16', value: no });
    entries.set('split.count', { type: 'uint16', value: 3 });
    entries.set('split.tensors.count', { type: 'int32', value: tensors.length });
    const own = new Map(tensors.slice(no * size, (no + 1) * size));
    const pieces: Uint8Array[] = [];
    const sink = { write: async (bytes: Uint8Array) => void pieces.push(bytes.slice()) };
    await writeGguf({ ...file, metadata: new GgufMetadata('part', entries), tensors: own }, sink);
    writeFileSync(part(no + 1), Buffer.concat(pieces));
  }
  await source.close();
}

test.before.each(async () => {
  folder = mkdtempSync(join(tmpdir(), 'apr-'));
  await writeParts();
});
test.after.each(() => rmSync(folder, { recursive: true }));

test('names of parts', () => {
  assert.equal(partNames('a/b-00002-of-00003.gguf'), [
    'a/b-00001-of-00003.gguf',
    'a/b-00002-of-00003.gguf',
    'a/b-00003-of-00003.gguf',
  ]);
  for (const name of [
    'a.gguf',
    'a-00001-of-00001.gguf',
    'a-00004-of-00003.gguf',
    'a-00000-of-00003.gguf',
    'a-1-of-3.gguf',
  ]) {
    assert.is(partNames(name), undefined, name);
  }
});

test('ranges over parts', async () => {
  const sizes = [{ size: 3 }, { size: 0 }, { size: 4 }];
  assert.equal(locateParts(sizes, 1, 5), [
    { part: 0, offset: 1, length: 2 },
    { part: 2, offset: 0, length: 3 },
  ]);
  assert.equal(locateParts(sizes, 3, 4), [{ part: 2, offset: 0, length: 4 }]);
  const source = partsSource('both', [
    memorySource('a', Uint8Array.of(1, 2, 3)),
    memorySource('b', Uint8Array.of(4, 5)),
  ]);
  assert.equal(await source.read(1, 3), Uint8Array.of(2, 3, 4));
  assert.equal(await source.read(3, 2), Uint8Array.of(4, 5));
  assert.is((await source.read(5, 0)).length, 0);
  await rejection(() => source.read(3, 3), 'BAD_FORMAT', 'both');
});

test('whichever part is named: the tensors and metadata of the whole', async () => {
  const whole = await openFileSource(WHOLE);
  const expected = await openModel(whole);
  for (const number of [1, 2, 3]) {
    const source = await openFileSource(part(number));
    const file = await openModel(source);
    assert.is(source.name, part(number));
    assert.equal([...file.metadata.keys()], [...expected.metadata.keys()]);
    assert.equal([...file.tensors.keys()], [...expected.tensors.keys()]);
    for (const [name, { offset, byteLength, type, shape }] of file.tensors) {
      const other = expected.tensors.get(name)!;
      assert.equal([type, shape], [other.type, other.shape]);
      assert.equal(await source.read(offset, byteLength), await whole.read(other.offset, other.byteLength));
    }
    await source.close();
  }
  await whole.close();
});

test('it runs, on threads that read it themselves and without, and converts to the whole', async () => {
  const logits = async (path: string, shared: boolean): Promise<Float32Array> => {
    const engine = await createEngine(path, shared ? { threads: 2 } : { shared });
    try {
      return await engine.forward([1, 2, 3]);
    } finally {
      await engine.dispose();
    }
  };
  const expected = await logits(WHOLE, true);
  assert.equal(await logits(part(2), true), expected);
  assert.equal(await logits(part(3), false), expected);
  const joined = join(folder, 'joined.gguf');
  await convertModel(part(1), joined);
  assert.ok(readFileSync(joined).equals(readFileSync(WHOLE)));
});

test('a missing part is named', async () => {
  rmSync(part(2));
  await rejection(() => openFileSource(part(3)), 'NOT_FOUND', part(2), 'part 2 of the 3');
  await rejection(() => openFileSource(part(2)), 'NOT_FOUND', part(2), /no such file$/);
});

test('a foreign part is named', async () => {
  const openAll = async () => {
    const source = await openFileSource(part(1));
    try {
      return await openModel(source);
    } finally {
      await source.close();
    }
  };
  const foreign = (file: BuilderFile): void => writeFileSync(part(2), buildGguf(file));
  const numbers = (no: number, count: number, tensors: number) => ({
    'split.no': typed('uint16', no),
    'split.count': typed('uint16', count),
    'split.tensors.count': typed('int32', tensors),
  });
  const total = (await openAll()).tensors.size;
  for (const [file, ...fragments] of [
    [{}, '"split.count" is missing, expected 3'],
    [{ metadata: numbers(1, 4, total) }, '"split.count" is 4'],
    [{ metadata: numbers(2, 3, total) }, '"split.no" is 2, expected 1'],
    [{ metadata: numbers(1, 3, 7) }, '"split.tensors.count" is 7'],
    [{ metadata: { ...numbers(1, 3, total), 'general.architecture': 'llama' } }, '"llama"', '"qwen2"'],
    [{ metadata: numbers(1, 3, total), tensors: [{ name: 'token_embd.weight', shape: [1] }] }, 'token_embd.weight'],
  ] as const satisfies readonly (readonly [BuilderFile, ...string[]])[]) {
    foreign(file);
    await rejection(openAll, 'BAD_FORMAT', part(2), 'part 2', ...fragments);
  }
  foreign({ metadata: numbers(1, 3, total) });
  await rejection(openAll, 'BAD_FORMAT', part(1), `expected ${total}`);
  copyFileSync(part(1), part(2));
  await rejection(openAll, 'BAD_FORMAT', part(2), '"split.no" is 0');
  writeFileSync(part(2), 'no model');
  await rejection(openAll, 'BAD_FORMAT', part(2));
});

test('a part under another name says what it should be called', async () => {
  const renamed = join(folder, 'renamed.gguf');
  renameSync(part(2), renamed);
  const source = await openFileSource(renamed);
  await rejection(() => openModel(source), 'UNSUPPORTED', 'renamed.gguf', 'NAME-00002-of-00003.gguf', 'merge');
  await source.close();
});

test.run();
