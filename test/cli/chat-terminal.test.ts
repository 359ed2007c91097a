/** What a terminal shows of a conversation, key by key. */

import { PassThrough } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { completions } from '../../cli/chat/commands.ts';
import { MessageAssembler } from '../../cli/chat/messages.ts';
import { TerminalReader } from '../../cli/chat/terminal-reader.ts';
import { Output } from './fake-engine.ts';

interface Terminal {
  readonly reader: TerminalReader;
  readonly output: Output;
  /** For each Ctrl-C that reached the session: whether it followed another. */
  readonly interrupts: boolean[];
  type(keys: string): void;
}

function terminal(): Terminal {
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => {} });
  const output = new Output(true);
  const interrupts: boolean[] = [];
  const reader = new TerminalReader({ input, output, onInterrupt: (again) => void interrupts.push(again) });
  return { reader, output, interrupts, type: (keys) => void input.write(keys) };
}

const CTRL_C = '\x03';
const CTRL_D = '\x04';
const UP = '\x1b[A';

test('lines, and the arrow key brings one back', async () => {
  const { reader, type } = terminal();
  const first = reader.next();
  type('Hello\r');
  assert.equal(await first, { text: 'Hello', plain: true });
  const second = reader.next();
  type(`${UP} again\r`);
  assert.equal(await second, { text: 'Hello again', plain: true });
  reader.close();
});

test('what is pasted is one message, sent by the key behind it', async () => {
  for (const [pasted, text] of [
    ['one\rtwo\rthree', 'one\ntwo\nthree'],
    ['one\rtwo\r', 'one\ntwo'],
  ] as const) {
    const { reader, type } = terminal();
    const next = reader.next();
    type(`\x1b[200~${pasted}\x1b[201~`);
    type('\r');
    assert.equal(await next, { text, plain: false });
    reader.close();
  }
});

test('what is typed during an answer is not shown in it, and comes next', async () => {
  const { reader, output, type } = terminal();
  const first = reader.next();
  type('Hello\r');
  await first;
  const shown = output.text.length;
  type('typed ahead\rand more');
  await wait(20);
  assert.is(output.text.slice(shown), '');
  assert.equal(await reader.next(), { text: 'typed ahead', plain: true });
  assert.is(output.text.slice(shown), '> typed ahead\n');
  const third = reader.next();
  type(' of it\r');
  assert.equal(await third, { text: 'and more of it', plain: true });
  reader.close();
});

test('Ctrl-C: during an answer, on a line, and twice in a row', async () => {
  const { reader, interrupts, type } = terminal();
  const first = reader.next();
  type('Hello\r');
  await first;
  type(`ahead\r${CTRL_C}`);
  await wait(20);
  assert.equal(interrupts, [false], 'the answer is stopped, and what was typed ahead is gone');
  const second = reader.next();
  type('half a line');
  await wait(20);
  type(CTRL_C);
  await wait(20);
  assert.equal(interrupts, [false], 'it takes the line only');
  type(CTRL_C);
  await wait(20);
  assert.equal(interrupts, [false, true]);
  type(`x${CTRL_C}`);
  await wait(20);
  type('Hello\r');
  assert.equal(await second, { text: 'Hello', plain: true });
  reader.close();
});

test('Ctrl-D ends the input, also in the middle of a block', async () => {
  const { reader, type } = terminal();
  const next = reader.next();
  type(`"""\rone\r${CTRL_D}`);
  assert.equal(await next, { text: 'one', plain: false });
  assert.is(await reader.next(), undefined);
});

test('leaving at the prompt ends its line; leaving by a command does not add one', async () => {
  const { reader, output, type } = terminal();
  const next = reader.next();
  type(`half${CTRL_C}`);
  await wait(20);
  type(CTRL_D);
  assert.is(await next, undefined);
  assert.match(output.text, /> \x1b\[3G\n$/);
  const other = terminal();
  const exit = other.reader.next();
  other.type('/exit\r');
  await exit;
  const shown = other.output.text;
  other.reader.close();
  assert.is(other.output.text, `${shown}\x1b[?2004l`);
});

test('messages of several lines', () => {
  const assembler = new MessageAssembler();
  const push = (...lines: string[]) => lines.map((line) => assembler.push(line)).filter((entry) => entry !== undefined);
  assert.equal(push('"""a', 'b"""'), [{ text: 'a\nb', plain: false }]);
  assert.equal(push('"""one line"""'), [{ text: 'one line', plain: false }]);
  assert.equal(push('/system """', 'a', '"""'), [{ text: '/system a', plain: true }]);
  assert.equal(push('a \\', '/exit'), [{ text: 'a \n/exit', plain: false }]);
  assert.equal(push('say """', 'x'), [
    { text: 'say """', plain: true },
    { text: 'x', plain: true },
  ]);
  assert.is(assembler.end(), undefined);
});

test('the tab key completes commands and settings', () => {
  assert.equal(completions('/st'), ['/stats']);
  assert.equal(completions('/set te'), ['/set temperature ']);
  assert.equal(completions('hello /st'), []);
});

test.run();
