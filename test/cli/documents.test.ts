/** One document of `--json` of each command whose own tests have none, as they were once looked at and found right. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { COMMANDS } from '../../cli/commands/index.ts';
import { FIXTURES, ROOT } from '../repository.ts';
import { apr, type Result } from './command.ts';
import { assertGolden, golden } from './golden.ts';

const folder = mkdtempSync(join(tmpdir(), 'apr-documents-'));
test.after(() => rmSync(folder, { recursive: true }));

/** What was measured, and what depends on the machine. */
const MEASURED = /(_ms|_per_sec|^seconds|^threads|^kernel)$/;

function blank(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  const fields = value as Record<string, unknown>;
  for (const [key, each] of Object.entries(fields)) {
    if (MEASURED.test(key)) {
      assert.ok(typeof each === 'string' || (Number.isFinite(each) && (each as number) >= 0), key);
      fields[key] = 'measured';
    } else if (typeof each === 'string') fields[key] = each.replaceAll(folder, 'FOLDER').replaceAll(ROOT, 'ROOT');
    else blank(each);
  }
}

const text = join(folder, 'text.txt');
writeFileSync(text, 'Hello! How can I help you?\n'.repeat(30));
const TINY = join(FIXTURES, 'tiny-qwen2-f16.gguf');

const DOCUMENTS: readonly (readonly [name: string, words: readonly string[], input?: string])[] = [
  ['run', ['run', 'demo', 'What is 2+2?', '--logprobs', '1', '-n', '3', '--json', '--no-selfcheck']],
  ['chat', ['chat', 'demo', '--temperature', '0', '--json'], 'What is 2+2?\n'],
  ['tokenize', ['tokenize', 'encode', 'demo', '-p', 'Grüße, 2+2!', '--pieces', '--json']],
  ['validate', ['validate', TINY, '--quality', '--json']],
  ['eval', ['eval', 'demo', '--text', text, '-c', '64', '--json']],
  ['convert', ['convert', TINY, '-o', join(folder, 'out.apr'), '--json']],
];

for (const [name, words, input] of DOCUMENTS) {
  test(name, async () => {
    const rounded = (document: unknown): void => {
      blank(document);
      round(document);
    };
    assertGolden(await apr(words, input), name, rounded);
  });
}

/** Sums whose last digits another machine's processor may round in another way are none of these; but they are long. */
function round(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  const fields = value as Record<string, unknown>;
  for (const [key, each] of Object.entries(fields)) {
    if (typeof each === 'number' && !Number.isInteger(each)) fields[key] = Number(each.toPrecision(5));
    else round(each);
  }
}

test('a document of each shell: the script itself', async () => {
  const { status, stdout }: Result = await apr(['completions', 'bash', '--json']);
  const { shell, script } = JSON.parse(stdout) as { shell: string; script: string };
  assert.equal([status, shell, script], [0, 'bash', (await apr(['completions', 'bash'])).stdout]);
});

test('every command has a document', () => {
  for (const { name } of COMMANDS) if (name !== 'completions') assert.ok(golden(name), name);
});

test.run();
