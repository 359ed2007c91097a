import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  chooseModel,
  isRepositoryName,
  modelsAmong,
  referenceOf,
  SHORT_NAMES,
  showReference,
} from '../../src/hub/index.ts';
import { hubSettings } from '../../src/hub/settings.ts';

const settings = hubSettings({ HF_ENDPOINT: 'https://mirror.example', HF_HOME: '/nowhere' });
const shown = (text: string): string | undefined => {
  const reference = referenceOf(text, settings);
  return reference && showReference(reference);
};

test('references in all their forms', () => {
  for (const [text, expected] of [
    ['hf://org/repo', 'hf://org/repo'],
    ['hf://org/repo@main', 'hf://org/repo'],
    ['hf://org/repo@v1.0', 'hf://org/repo@v1.0'],
    ['hf://org/repo/a/b.gguf', 'hf://org/repo/a/b.gguf'],
    ['hf://org/repo/b.gguf@refs/pr/1', 'hf://org/repo/b.gguf@refs/pr/1'],
    ['hf://org/repo@refs/pr/1', 'hf://org/repo@refs/pr/1'],
    ['hf://org/repo@v2/b.gguf', 'hf://org/repo/b.gguf@v2'],
    ['hf://org/repo:Q8_0', 'hf://org/repo:Q8_0'],
    ['hf://org/repo:Q8_0@v1', 'hf://org/repo:Q8_0@v1'],
    ['hf.co/org/repo:latest', 'hf://org/repo'],
    ['huggingface.co/org/repo', 'hf://org/repo'],
    ['https://huggingface.co/org/repo', 'hf://org/repo'],
    ['https://huggingface.co/org/repo/tree/main', 'hf://org/repo'],
    ['https://huggingface.co/org/repo/blob/main/x%20y.gguf', 'hf://org/repo/x y.gguf'],
    ['https://huggingface.co/org/repo/resolve/refs%2Fpr%2F1/x.gguf?download=true', 'hf://org/repo/x.gguf@refs/pr/1'],
    ['https://mirror.example/org/repo/resolve/main/x.gguf', 'hf://org/repo/x.gguf'],
    ['https://example.com/org/repo/resolve/main/x.gguf#y', 'https://example.com/org/repo/resolve/main/x.gguf'],
    ['https://huggingface.co/api/models/org/repo/x', 'https://huggingface.co/api/models/org/repo/x'],
    ['qwen3-0.6b', 'hf://Qwen/Qwen3-0.6B-GGUF'],
    ['Qwen3-0.6B:q8_0', 'hf://Qwen/Qwen3-0.6B-GGUF:q8_0'],
    ['model.gguf', undefined],
    ['./org/repo', undefined],
    ['org/repo', undefined],
    ['/hf.co/x', undefined],
  ] as const) {
    assert.is(shown(text), expected, text);
  }
});

test('what cannot be meant is refused', () => {
  for (const text of [
    'hf://',
    'hf://org',
    'hf:///repo',
    'hf://org/../x',
    'hf://org/re--po',
    'hf://org/repo/../../x.gguf',
    'hf://org/repo//x.gguf',
    'hf://org/repo/x.gguf@../../main',
    'hf://org/repo/x.gguf@',
    'hf://org/repo@v1/x.gguf@v2',
    'hf://org/repo:Q8_0/x.gguf',
    'hf://org/repo/x\u0000.gguf',
    'hf://org/repo/C:\\x.gguf',
    'hf://o rg/repo',
    'https://user:secret@example.com/x.gguf',
    'http://',
  ]) {
    assert.throws(
      () => referenceOf(text, settings),
      (error: { code?: string }) => error.code === 'USAGE',
      text,
    );
  }
});

test('every short name is a reference', () => {
  for (const name of SHORT_NAMES) assert.match(shown(name)!, /^hf:\/\/[\w.-]+\/[\w.-]+$/);
  assert.ok(isRepositoryName('org/repo') && isRepositoryName('org/repo:Q8_0'));
  assert.not(isRepositoryName('a/b/c') || isRepositoryName('a') || isRepositoryName('../b'));
});

test('models among files: parts together, and nothing that is none', () => {
  const models = modelsAmong([
    'x-Q4_K_M.gguf',
    'mmproj-x-f16.gguf',
    'x.imatrix.gguf',
    'README.md',
    'UD/x-UD-Q4_K_XL-00001-of-00002.gguf',
    'UD/x-UD-Q4_K_XL-00002-of-00002.gguf',
    'x-Q8_0-00001-of-00002.gguf',
    'x-mxfp4.gguf',
    'x.apr',
  ]);
  assert.equal(
    models.map(({ paths, quantisation }) => [paths.length, quantisation]),
    [
      [2, 'UD-Q4_K_XL'],
      [1, 'Q4_K_M'],
      [1, 'MXFP4'],
      [1, undefined],
    ],
  );
});

test('the choice', () => {
  const choose = (paths: string[], quantisation?: string): string => chooseModel('it', paths, quantisation).paths[0]!;
  assert.is(choose(['a-F16.gguf', 'a-Q8_0.gguf', 'a-Q2_K.gguf']), 'a-Q8_0.gguf');
  assert.is(choose(['a-Q4_0.gguf', 'a-UD-Q4_K_XL.gguf'], 'q4_k_xl'), 'a-UD-Q4_K_XL.gguf');
  assert.is(choose(['strange.gguf']), 'strange.gguf');
  assert.is(choose(['a-Q9_X.gguf', 'a-Q4_1.gguf']), 'a-Q4_1.gguf');
  assert.throws(() => choose(['a-Q8_0.gguf', 'b-Q8_0.gguf']), /several models .*a-Q8_0\.gguf, b-Q8_0\.gguf/);
  assert.throws(() => choose([]), /it has no GGUF or \.apr model; found no files/);
});

test.run();
