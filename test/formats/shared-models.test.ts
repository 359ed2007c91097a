/** Every model and vocabulary beside the repository; skipped where there are none. */

import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { openModel } from '../../src/formats/open-model.ts';
import { openFileSource } from '../../src/platform/node/file-source.ts';
import { SHARED, sharedFiles } from '../repository.ts';
import { skipped } from '../skip.ts';

const models = sharedFiles('models');
const vocabularies = sharedFiles('vocab');
if (SHARED === undefined) {
  skipped(32, 'no ../shared: its models and vocabularies were not read');
}

for (const path of models) {
  test(path.slice(SHARED!.length + 1), async () => {
    const source = await openFileSource(path);
    const { tensors, metadata } = await openModel(source);
    assert.ok(['qwen2', 'qwen3moe'].includes(metadata.string('general.architecture')!));
    assert.is(metadata.strings('tokenizer.ggml.tokens')?.length, 1024);
    assert.equal(tensors.get('token_embd.weight')?.shape, [256, 1024]);
    // Whoever wrote the file laid tensor after tensor, and nothing behind: so every type's block size is confirmed.
    let end: number | undefined;
    for (const { name, offset, byteLength } of tensors.values()) {
      if (end !== undefined) assert.is(offset, end, name);
      end = offset + Math.ceil(byteLength / 32) * 32;
    }
    assert.is(end, source.size);
    await source.close();
  });
}

const TOKENS: Record<string, readonly [count: number, id: number, token: string]> = {
  'deepseek-coder': [32_256, 300, 'Ġe'],
  'gpt-2': [50_257, 300, 'Ġl'],
  'llama-bpe': [128_256, 128_000, '<|begin_of_text|>'],
  'llama-spm': [32_000, 29_871, '▁'],
  qwen2: [151_936, 151_645, '<|im_end|>'],
};

for (const path of vocabularies) {
  test(path.slice(SHARED!.length + 1), async () => {
    const source = await openFileSource(path);
    const { tensors, metadata } = await openModel(source);
    await source.close();
    assert.is(tensors.size, 0);
    const tokens = metadata.strings('tokenizer.ggml.tokens')!;
    const [count, id, token] = TOKENS[/ggml-vocab-(.*)\.gguf$/.exec(path)![1]!]!;
    assert.equal([tokens.length, tokens.at(id)], [count, token]);
    assert.is(metadata.numbers('tokenizer.ggml.token_type')?.length, count);
    const merges = metadata.strings('tokenizer.ggml.merges');
    if (merges === undefined) assert.is(metadata.string('tokenizer.ggml.model'), 'llama');
    else assert.match(merges.at(merges.length - 1), /^\S+ \S+$/);
  });
}

test.run();
