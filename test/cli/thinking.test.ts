/** `apr run --thinking`: off unless asked for, and nothing that is left out silently. */

import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { runCli } from '../../cli/cli.ts';
import { type FakeOptions, fake } from './fake-engine.ts';

async function run(words: string[], options: FakeOptions = {}) {
  const environment = fake(options);
  const status = await runCli(['run', 'm.gguf', 'Hi', ...words], environment);
  return { status, stderr: environment.stderr.text, request: environment.seen.request };
}

test('--thinking reaches the engine', async () => {
  const messages = [{ role: 'user', content: 'Hi' }];
  assert.equal((await run(['--thinking', 'on'])).request, { messages, thinking: true });
  assert.equal((await run(['--thinking', 'off'])).request, { messages }, 'off is the default of the engine');
});

test('--thinking on needs a chat', async () => {
  const cases: [string[], FakeOptions, RegExp][] = [
    [['--thinking', 'on', '--raw'], {}, /--thinking on and --raw exclude each other/],
    [['--thinking', 'on'], { hasChatTemplate: false }, /--thinking on needs a chat template/],
    [['--thinking', 'maybe'], {}, /--thinking is "maybe", expected one of on, off/],
    [['--thinking'], {}, /--thinking has no value/],
  ];
  for (const [words, options, message] of cases) {
    const { status, stderr, request } = await run(words, options);
    assert.is(status, 2, words.join(' '));
    assert.match(stderr, message);
    assert.is(request, undefined);
  }
  assert.is((await run(['--thinking', 'off', '--raw'])).status, 0);
});

test.run();
