/** `apr pull`, `apr list`, `apr rm`, and references and folders as SOURCE, against a hub on this machine. */

import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { COMMANDS } from '../../cli/commands/index.ts';
import { downloadLine, showDownload } from '../../cli/render/download.ts';
import { cutAfter, FakeHub, REPOSITORY, times } from '../hub/server.ts';
import { DEMO, FIXTURES } from '../repository.ts';
import { finished, MAIN, type Result, start } from './command.ts';
import { assertGolden } from './golden.ts';

const hub = await FakeHub.start();
const MODEL = readFileSync(DEMO);
const REFERENCE = `hf://${REPOSITORY}`;
const QUESTION = 'What is 2+2?';
const ANSWER = '2 + 2 = 4\n';
let root = '';

test.before.each(() => {
  root = mkdtempSync(join(tmpdir(), 'apr-pull-'));
  hub.forget();
  hub.files.clear();
  hub.files.set('demo-Q4_K_M.gguf', MODEL);
  hub.files.set('demo-Q8_0.gguf', readFileSync(join(FIXTURES, 'demo-qwen2-q8_0.gguf')));
});
test.after.each(() => rmSync(root, { recursive: true, force: true }));
test.after(() => hub.stop());

function environment(more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const none = { HF_TOKEN: '', HF_HUB_CACHE: '', HUGGINGFACE_HUB_CACHE: '', HF_HUB_OFFLINE: '' };
  return {
    ...process.env,
    ...none,
    HF_HOME: join(root, 'hf'),
    APR_CACHE: join(root, 'apr'),
    HF_ENDPOINT: hub.endpoint,
    ...more,
  };
}

function apr(words: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<Result> {
  return finished(start(words, { env: environment(more) }));
}

/** Folders and dates are not the same everywhere. */
const blank = (document: unknown): void => {
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, each] of Object.entries(value)) {
      if (typeof each === 'string') {
        const text = key === 'modified' ? 'DATE' : each.replaceAll(root, 'ROOT').replaceAll(hub.endpoint, 'HUB');
        (value as Record<string, unknown>)[key] = text;
      } else walk(each);
    }
  };
  walk(document);
};

test('pull prints the path and says what it chose; run takes it from there', async () => {
  const { status, stdout, stderr } = await apr(['pull', REFERENCE]);
  assert.is(status, 0);
  const path = stdout.trimEnd();
  assert.equal(readFileSync(path), MODEL);
  assert.is(stderr, `apr: fetched ${REFERENCE}, Q4_K_M of Q4_K_M, Q8_0: 4.85 MB\n`);
  const before = hub.requests.length;
  const answer = await apr(['run', REFERENCE, QUESTION]);
  assert.equal([answer.status, answer.stdout, answer.stderr], [0, ANSWER, '']);
  // What is here is run without asking anybody.
  assert.is(hub.requests.length, before);
  assert.is((await apr(['pull', `${REPOSITORY}:Q8_0`, '-q'])).stderr, '');
});

test('run fetches what is not here, and goes on from a cut connection', async () => {
  hub.fault = times(1, cutAfter(1_000_000));
  const { status, stdout, stderr } = await apr(['run', `${REFERENCE}/demo-Q4_K_M.gguf`, QUESTION, '--json']);
  assert.is(status, 0);
  assert.is(JSON.parse(stdout).text, '2 + 2 = 4');
  assert.match(stderr, /^apr: demo-Q4_K_M\.gguf: the connection to .* failed .*\napr: fetched hf:/);
});

test('the documents of pull, list and rm', async () => {
  assertGolden(await apr(['pull', REFERENCE, '--json', '-q']), 'pull', blank);
  assertGolden(await apr(['list', '--json']), 'list', blank);
  assertGolden(await apr(['rm', REFERENCE, '--json']), 'rm', blank);
  const { status, stdout, stderr } = await apr(['list']);
  assert.equal([status, stdout], [0, '']);
  assert.match(stderr, /^no models in .*; "apr pull qwen3-0\.6b" fetches one\n$/);
});

test('list and rm, as people read them', async () => {
  for (const reference of [REFERENCE, `${REFERENCE}:Q8_0`, `${hub.endpoint}/files/demo-Q8_0.gguf`]) {
    assert.is((await apr(['pull', reference, '-q'])).status, 0);
  }
  const { stdout } = await apr(['list']);
  const lines = stdout.trimEnd().split('\n');
  assert.match(lines[0]!, /^model +type +size +fetched$/);
  assert.is(lines.length, 4);
  assert.match(stdout, /^hf:\/\/some-org\/tiny-GGUF\/demo-Q8_0\.gguf +Q8_0 +3\.67 MB +\d{4}-\d\d-\d\d$/m);
  const several = await apr(['rm', REFERENCE]);
  assert.is(several.status, 2);
  assert.match(several.stderr, /2 models are on this disk, name one of them or add --all: hf:/);
  const slip = await apr(['rm', `${REFERENCE}:Q8_0`, `${REFERENCE}:Q2_K`]);
  assert.is(slip.status, 3);
  assert.match(slip.stderr, /:Q2_K: is not on this disk; "apr list" shows what is/);
  assert.is((await apr(['list'])).stdout, stdout);
  const all = await apr(['rm', REFERENCE, '--all']);
  assert.is(all.status, 0);
  assert.match(all.stderr, /^removed .*\nremoved .*\n8\.52 MB are free again\n$/);
  assert.is((await apr(['rm', `${hub.endpoint}/files/demo-Q8_0.gguf`])).status, 0);
  assert.is((await apr(['list', '-q'])).stderr, '');
});

test('an unfinished download is shown, and removed when that is asked for', async () => {
  hub.fault = cutAfter(100_000);
  hub.commit = 'e'.repeat(40);
  const child = start(['pull', REFERENCE], { env: environment() });
  // In the wait before the next attempt.
  await new Promise<void>((resolve) => child.stderr!.once('data', () => resolve()));
  child.kill('SIGINT');
  assert.is((await finished(child)).status, 130);
  const locks = join(root, 'hf', 'hub', '.locks', `models--${REPOSITORY.replace('/', '--')}`);
  assert.equal(readdirSync(locks), []);
  const { stderr } = await apr(['list']);
  assert.match(stderr, /1 unfinished download, .*: demo-Q4_K_M\.gguf; "apr pull" goes on with it/);
  // It could be one of another process that goes on right now.
  assert.match((await apr(['rm', '--unfinished'])).stderr, /removed 0 unfinished downloads/);
  hub.fault = undefined;
  hub.requests.length = 0;
  assert.is((await apr(['pull', REFERENCE])).status, 0);
  assert.match(hub.ranges[0]!, /^bytes=\d+-$/);
});

test('offline: what is here runs, what is not is not found, and nobody is asked', async () => {
  for (const [words, more] of [
    [['run', REFERENCE, 'x', '--offline'], {}],
    [['inspect', REFERENCE], { HF_HUB_OFFLINE: '1' }],
    [['pull', REFERENCE, '--offline'], {}],
  ] as const) {
    const { status, stdout, stderr } = await apr(words, more);
    assert.equal([status, stdout], [3, '']);
    assert.match(stderr, /is not on this disk \(.*\), and (--offline|HF_HUB_OFFLINE) forbids to fetch it/);
  }
  assert.equal(hub.requests, []);
  assert.is((await apr(['pull', REFERENCE, '-q'])).status, 0);
  hub.requests.length = 0;
  assert.is((await apr(['run', REFERENCE, QUESTION, '--offline'])).stdout, ANSWER);
  assert.equal(hub.requests, []);
});

test('what goes wrong has a status and a sentence', async () => {
  hub.files.set('page.gguf', Buffer.from('<!DOCTYPE html><html>Please sign in</html>'));
  for (const [words, status, message] of [
    [['pull'], 2, /found 0 arguments, expected one reference: apr pull hf:\/\/ORG\/REPO/],
    [['pull', 'a/b', 'c/d'], 2, /found 2 arguments/],
    [['pull', 'qwen3-0.6'], 2, /"qwen3-0\.6" is no reference; .*did you mean "qwen3-0\.6b"\?/],
    [['pull', 'hf://org'], 2, /"org\/" is no repository; expected hf:/],
    [['pull', `${REFERENCE}:Q2_K`], 3, /has no Q2_K; it has Q4_K_M, Q8_0/],
    [['pull', `${REFERENCE}/x.gguf`], 3, /has no file x\.gguf; its models are /],
    [['pull', `${REFERENCE}/README.md`], 2, /README\.md: is no model file/],
    [['run', `${hub.endpoint}/files/page.gguf`, 'x'], 4, /what the server sends is no model: it is an HTML page/],
    [['run', 'ftp://example.com/x.gguf', 'x'], 2, /apr reads no ftp:\/\/ addresses/],
    [['run', 'some/repo', 'x'], 3, /some\/repo: no such file; did you mean "hf:\/\/some\/repo"\?/],
    [['rm'], 2, /no model is named/],
    [['rm', REFERENCE], 3, /is not on this disk/],
    [['list', 'x'], 2, /expected none/],
  ] as const) {
    const found = await apr(words);
    assert.equal([found.status, found.stdout], [status, ''], words.join(' '));
    assert.match(found.stderr, message);
    assert.is(found.stderr.trimEnd().split('\n').length, 1);
  }
  const wrong = await apr(['pull', REFERENCE], { HF_ENDPOINT: 'nowhere' });
  assert.equal([wrong.status, /HF_ENDPOINT is "nowhere"/.test(wrong.stderr)], [2, true]);
});

test('a folder is the model in it; of several the one that pull would choose', async () => {
  const folder = join(root, 'models');
  mkdirSync(folder);
  const empty = await apr(['run', folder, 'x']);
  assert.is(empty.status, 3);
  assert.match(empty.stderr, /the folder .*models has no GGUF or \.apr model; found no files/);
  copyFileSync(DEMO, join(folder, 'demo-Q4_K_M.gguf'));
  assert.is((await apr(['run', folder, QUESTION])).stdout, ANSWER);
  copyFileSync(join(FIXTURES, 'demo-qwen2-q8_0.gguf'), join(folder, 'demo-Q8_0.gguf'));
  const { status, stdout, stderr } = await apr(['run', folder, QUESTION]);
  assert.equal([status, stdout], [0, ANSWER]);
  assert.match(stderr, /2 models are in it, this is demo-Q4_K_M\.gguf/);
  copyFileSync(DEMO, join(folder, 'other-Q4_K_M.gguf'));
  assert.match((await apr(['run', folder, 'x'])).stderr, /several models .*demo-Q4_K_M\.gguf, other-Q4_K_M\.gguf/);
});

test('a file: address is a path', async () => {
  assert.is((await apr(['run', pathToFileURL(DEMO).href, QUESTION])).stdout, ANSWER);
});

test('every command that takes a model has --offline', () => {
  for (const { name, usage, options } of COMMANDS) {
    if (/\bSOURCE\b|\bA B\b/.test(usage)) assert.is(options.offline?.kind, 'flag', name);
  }
});

test('the line of a download: share, rate, what is left, in any width', () => {
  const progress = { file: 'a/model-Q4_K_M.gguf', number: 2, of: 3, bytes: 1.2e9, total: 2.4e9 };
  assert.is(
    downloadLine(progress, 10e6, 105),
    'model-Q4_K_M.gguf (2 of 3)  ██████████░░░░░░░░░░  50 %  1.20 GB of 2.40 GB  10.00 MB/s  2 min 0 s left',
  );
  assert.is(downloadLine(progress, 10e6, 60), '50 %  1.20 GB of 2.40 GB  10.00 MB/s  2 min 0 s left');
  assert.is(downloadLine(progress, undefined, 10).length, 10);
  assert.is(
    downloadLine({ ...progress, total: undefined, of: 1 }, 1e3, 80),
    'model-Q4_K_M.gguf  1.20 GB  1000 bytes/s',
  );
  let now = 0;
  let shown = '';
  const write = (text: string): boolean => {
    shown += text;
    return true;
  };
  const stderr = { isTTY: true, columns: 120, write };
  const line = showDownload(stderr, () => now);
  for (; now <= 10_000; now += 1000)
    line.update({ ...progress, bytes: now < 5000 ? 1e6 * now : 5e9 + 1e3 * (now - 5000), total: 1e10 });
  // The rate of the last seconds, not of all of them.
  assert.match(shown.slice(shown.lastIndexOf('\r')), / 1\.00 MB\/s /);
  line.clear();
  assert.ok(shown.endsWith('\r\x1b[2K'));
});

test('the command itself does not load what fetches models', () => {
  const text = readFileSync(MAIN, 'utf8') + readFileSync(join(MAIN, '..', 'source.js'), 'utf8');
  assert.not.match(text, /^import .*hub/m);
  assert.ok(existsSync(join(MAIN, '..', 'fetch-model.js')));
});

test.run();
