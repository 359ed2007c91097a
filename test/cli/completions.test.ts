/** Each script is asked in its own shell, where that is installed. */

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { COMMANDS } from '../../cli/commands/index.ts';
import { SHELLS, type Shell } from '../../cli/completions/vocabulary.ts';
import { skipped } from '../skip.ts';
import { apr } from './command.ts';

const folder = mkdtempSync(join(tmpdir(), 'apr-completions-'));
test.after(() => rmSync(folder, { recursive: true }));
mkdirSync(join(folder, 'models dir'));
for (const name of ['one.gguf', 'two two.apr', 'notes.txt']) writeFileSync(join(folder, name), '');

async function script(shell: Shell): Promise<string> {
  const { status, stdout, stderr } = await apr(['completions', shell]);
  assert.equal([status, stderr], [0, '']);
  return stdout;
}

for (const shell of SHELLS) {
  test(`${shell}: the script knows every command and every option`, async () => {
    const text = await script(shell);
    for (const { name, options } of COMMANDS) {
      assert.match(text, new RegExp(`\\b${name}\\b`));
      for (const option of Object.keys(options)) {
        const spelled = shell === 'fish' ? `__apr_is ${name}'.* -l ${option} ` : `--${option}\\b`;
        assert.match(text, new RegExp(spelled), `${name} --${option}`);
      }
    }
  });
}

/** What bash offers where the last word ends. */
function inBash(text: string, words: readonly string[]): string[] {
  writeFileSync(join(folder, 'apr.bash'), text);
  const program = `source ./apr.bash
    COMP_WORDS=("$@")
    COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
    _apr
    for word in "\${COMPREPLY[@]}"; do printf '%s\\n' "$word"; done`;
  const { status, stdout, stderr } = spawnSync('bash', ['--norc', '-c', program, 'bash', ...words], {
    cwd: folder,
    encoding: 'utf8',
  });
  assert.equal([status, stderr], [0, '']);
  return stdout.split('\n').filter((line) => line !== '');
}

if (spawnSync('bash', ['--version']).status === 0) {
  test('bash offers commands, options, choices and model files', async () => {
    const text = await script('bash');
    for (const [words, expected] of [
      [['apr', 'in'], ['inspect']],
      [['apr', 'help', 'tens'], ['tensors']],
      [['apr', 'run', '--fo'], ['--format']],
      [['apr', '-q', 'run', '--thr'], ['--threads']],
      [
        ['apr', 'run', '--format', ''],
        ['text', 'json'],
      ],
      [['apr', 'run', '--format', '=', 'j'], ['json']],
      [
        ['apr', 'run', '--format', '='],
        ['text', 'json'],
      ],
      [['apr', 'run', '-f', 't'], ['text']],
      [['apr', 'run', '--seed', ''], []],
      [
        ['apr', 'inspect', ''],
        ['models dir', 'one.gguf', 'two two.apr', 'demo'],
      ],
      [['apr', 'inspect', 'two'], ['two two.apr']],
      [['apr', 'run', '-i', 'n'], ['notes.txt']],
      [
        ['apr', 'tokenize', ''],
        ['encode', 'decode'],
      ],
      [['apr', 'tokenize', 'encode', 'o'], ['one.gguf']],
      [['apr', 'completions', 'z'], ['zsh']],
      [['apr', 'banana', ''], []],
    ] as const) {
      assert.equal(inBash(text, words), [...expected], words.join(' '));
    }
  });
} else skipped(1, 'there is no bash');

/** What zsh makes of a line when the tab key is pressed at its end, on a pseudo-terminal. */
function inZsh(typed: string): string | undefined {
  const program = `zmodload zsh/zpty
    zpty shell zsh -f -i
    zpty -w shell 'PS1= PROMPT_EOL_MARK= COLUMNS=200; autoload -Uz compinit; compinit -u -D; source ./apr.zsh'
    zpty -w shell 'shown() { zle -I; print -r -- "[[$BUFFER]]"; exit }; zle -N shown; bindkey "^X" shown; print rea''dy'
    zpty -r shell output '*ready*'
    zpty -w -n shell "$1"$'\\t\\x18'
    zpty -r shell output '*\\[\\[*\\]\\]*'
    print -r -- "$output"`;
  const { stdout } = spawnSync('zsh', ['-f', '-c', program, 'zsh', typed], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 20_000,
  });
  return /\[\[(.*?)\]\]/.exec(stdout)?.[1];
}

if (spawnSync('zsh', ['--version']).status === 0) {
  test('zsh reads its script', async () => {
    const { status, stderr } = spawnSync('zsh', ['-n'], { input: await script('zsh'), encoding: 'utf8' });
    assert.equal([status, stderr], [0, '']);
  });

  test('zsh completes commands, options, choices and model files, as somebody types them', async () => {
    writeFileSync(join(folder, 'apr.zsh'), await script('zsh'));
    for (const [typed, expected] of [
      ['apr insp', 'apr inspect '],
      ['apr -q insp', 'apr -q inspect '],
      ['apr run --thr', 'apr run --threads='],
      ['apr run --format=j', 'apr run --format=json '],
      ['apr inspect two', 'apr inspect two\\ two.apr '],
      ['apr tokenize enc', 'apr tokenize encode '],
      ['apr completions f', 'apr completions fish '],
      ['apr run -i n', 'apr run -i notes.txt '],
    ] as const) {
      assert.is(inZsh(typed), expected);
    }
  });
} else skipped(2, 'there is no zsh');

if (spawnSync('fish', ['--version']).status === 0) {
  test('fish offers commands, options and choices', async () => {
    const path = join(folder, 'apr.fish');
    writeFileSync(path, await script('fish'));
    for (const [line, expected] of [
      ['apr in', ['inspect']],
      ['apr run --fo', ['--format']],
      ['apr run --format ', ['json', 'text']],
      ['apr tokenize ', ['decode', 'encode']],
    ] as const) {
      const { stdout } = spawnSync('fish', ['-c', `source ${path}; complete -C '${line}'`], { encoding: 'utf8' });
      const offered = stdout.split('\n').map((row) => row.split('\t')[0]);
      assert.equal(offered.filter((word) => word !== '').sort(), [...expected], line);
    }
  });
} else skipped(1, 'there is no fish');

test('--json: one document with the same script', async () => {
  const { status, stdout } = await apr(['completions', 'fish', '--json']);
  assert.is(status, 0);
  assert.equal(JSON.parse(stdout), { shell: 'fish', script: await script('fish') });
});

for (const [words, message] of [
  [['completions'], /SHELL is missing, expected one of bash, zsh, fish/],
  [['completions', 'fihs'], /no completions for the shell "fihs"; did you mean "apr completions fish"\?/],
  [['completions', 'powershell'], /expected one of bash, zsh, fish/],
  [['completions', 'bash', 'zsh'], /found 2 arguments/],
] as const) {
  test(`apr ${words.join(' ')} → 2`, async () => {
    const { status, stdout, stderr } = await apr(words);
    assert.equal([status, stdout], [2, '']);
    assert.match(stderr, message);
  });
}

test.run();
