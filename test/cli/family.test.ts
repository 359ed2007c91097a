/** What holds for every command of the table. */

import { statSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { COMMANDS } from '../../cli/commands/index.ts';
import type { Option } from '../../cli/options.ts';
import { commandSections } from '../../cli/render/help.ts';
import { apr, MAIN } from './command.ts';

test('--help fits a terminal of 80 columns and 24 rows', async () => {
  const { status, stdout } = await apr(['--help']);
  assert.is(status, 0);
  const lines = stdout.trimEnd().split('\n');
  // The prompt of the shell has a row too.
  assert.ok(lines.length <= 23, `${lines.length} rows`);
  for (const line of lines) assert.ok(line.length <= 80, line);
  for (const { name, summary } of COMMANDS) assert.ok(stdout.includes(`  ${name} `) && stdout.includes(summary), name);
});

test('the command can be run as it stands, also after another build', () => {
  // npm makes it executable when it installs, and npx apr in a clone runs it as it was built since.
  if (process.platform !== 'win32') assert.is(statSync(MAIN).mode & 0o111, 0o111);
});

test('every command has --json, --quiet and --verbose', () => {
  for (const { name, options } of COMMANDS) {
    for (const [option, alias] of [
      ['json', undefined],
      ['quiet', 'q'],
      ['verbose', 'v'],
    ] as const) {
      const found: Option | undefined = options[option];
      assert.ok(found !== undefined, `apr ${name} has no --${option}`);
      assert.equal([found.kind, found.alias], ['flag', alias], `apr ${name} --${option}`);
    }
  }
});

test('an option that several commands have takes a value in all of them or in none', () => {
  // The command is found before it is known which options it has.
  const flags = new Map<string, string>();
  for (const { name, options } of COMMANDS) {
    for (const [option, { kind, alias }] of Object.entries(options)) {
      for (const spelled of [`--${option}`, ...(alias === undefined ? [] : [`-${alias}`])]) {
        const what = kind === 'flag' ? 'is a flag' : 'takes a value';
        const before = flags.get(spelled) ?? what;
        assert.is(what, before, `${spelled} of apr ${name}`);
        flags.set(spelled, what);
      }
    }
  }
});

test('no two options of a command have one letter', () => {
  for (const { name, options } of COMMANDS) {
    const letters = Object.values(options).flatMap(({ alias }) => (alias === undefined ? [] : [alias]));
    assert.is(new Set([...letters, 'h', 'V']).size, letters.length + 2, `apr ${name}`);
  }
});

test('the help of every command: usage, options, examples, in 120 columns', () => {
  for (const command of COMMANDS) {
    const text = commandSections(command)
      .map(({ title, body }) => `${title ?? ''}\n${body}`)
      .join('\n');
    assert.ok(text.includes(`$ apr ${command.usage}`), command.name);
    for (const option of Object.keys(command.options)) assert.ok(text.includes(`--${option}`), `--${option}`);
    assert.ok(command.examples.length > 0, `apr ${command.name} has no example`);
    for (const [, example] of command.examples) assert.match(example, /\bapr /);
    for (const line of text.split('\n')) assert.ok(line.length <= 120, line);
  }
});

for (const [typed, meant] of [
  ['inspct', 'inspect'],
  ['tensor', 'tensors'],
  ['dif', 'diff'],
  ['bnech', 'bench'],
  ['completion', 'completions'],
  ['helo', 'help'],
  ['Run', 'run'],
] as const) {
  test(`apr ${typed} → 2, did you mean ${meant}`, async () => {
    const { status, stdout, stderr } = await apr([typed]);
    assert.equal([status, stdout], [2, '']);
    assert.match(stderr, new RegExp(`unknown command "${typed}"; did you mean "apr ${meant}"\\?`));
  });
}

test.run();
