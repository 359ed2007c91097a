/** Ids of llama.cpp on the same vocabularies. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { skipped } from '../skip.ts';
import { loadTokenizer, SHARED } from './fixtures.ts';

const VOCABULARIES = ['qwen2', 'llama-bpe', 'gpt-2', 'llama-spm', 'deepseek-coder'];
const SEPARATOR = '\n__ggml_vocab_test__\n';

let absent = 0;
for (const name of VOCABULARIES) {
  const path = `${SHARED}vocab/ggml-vocab-${name}.gguf`;
  if (!existsSync(path)) {
    absent++;
    continue;
  }
  test(`ids of ${name}`, async () => {
    const tokenizer = await loadTokenizer(path);
    const texts = readFileSync(`${path}.inp`, 'utf8').split(SEPARATOR);
    const expected = readFileSync(`${path}.out`, 'utf8').split('\n');
    // The last separator ends the last text.
    if (texts.at(-1) === '') texts.pop();
    assert.ok(texts.length >= 40, `${texts.length} texts`);
    texts.forEach((text, index) => {
      const ids = tokenizer.encode(text);
      const wanted = expected[index]!.trim().split(/\s+/).filter(Boolean).map(Number);
      assert.equal(ids, wanted, `${name} ${index}: ${JSON.stringify(text)}`);
      assert.is(tokenizer.decode(ids), text, `${name} ${index} back`);
    });
  });
}

const golden = `${SHARED}golden`;
const files = existsSync(golden) ? readdirSync(golden).filter((file) => file.startsWith('demo-')) : [];
if (files.length === 0) absent++;
for (const file of files) {
  test(`prompts of ${file}`, async () => {
    const tokenizer = await loadTokenizer(`${SHARED}models/${file.replace('.json', '.gguf')}`);
    const { cases } = JSON.parse(readFileSync(`${golden}/${file}`, 'utf8'));
    assert.ok(cases.length > 0);
    for (const { prompt, tokens } of cases) {
      assert.equal(tokenizer.encode(prompt, { special: true, addSpecial: true }), tokens, prompt);
    }
  });
}

if (absent > 0) skipped(absent, 'no ../shared beside the repository: its vocabularies and prompts were not tried');
test.run();
