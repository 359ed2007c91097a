import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { RUN_OPTIONS } from '../../cli/commands/run-options.ts';
import { nearest } from '../../cli/nearest.ts';
import { type OptionValues, readValues, scanArguments } from '../../cli/options.ts';
import { AprError } from '../../src/errors.ts';

function parse(...words: string[]): { positionals: readonly string[]; values: OptionValues<typeof RUN_OPTIONS> } {
  const { positionals, occurrences, problem } = scanArguments(words, RUN_OPTIONS);
  if (problem !== undefined) throw problem;
  return { positionals, values: readValues(occurrences, RUN_OPTIONS) };
}

function refuses(words: string[], message: RegExp): void {
  try {
    parse(...words);
  } catch (error) {
    assert.instance(error, AprError);
    assert.is((error as AprError).code, 'USAGE');
    assert.match((error as AprError).message, message);
    return;
  }
  assert.unreachable(`${words.join(' ')} was accepted`);
}

test('a value stays the text that was typed', () => {
  assert.is(parse('-p', '123').values.prompt, '123');
  assert.is(parse('-p', '007').values.prompt, '007');
  assert.is(parse('-p', '').values.prompt, '');
  assert.is(parse('--prompt=').values.prompt, '');
  assert.is(parse('-p', '-1 + 2').values.prompt, '-1 + 2');
  assert.is(parse('-p', '--- yes ---').values.prompt, '--- yes ---');
  assert.is(parse('-p', 'true').values.prompt, 'true');
  assert.is(parse('--prompt=a=b\nc').values.prompt, 'a=b\nc');
  assert.is(parse('-p=--json').values.prompt, '--json');
  assert.equal(parse('--stop', '5', '--stop', ' ').values.stop, ['5', ' ']);
});

test('numbers are read as numbers', () => {
  assert.is(parse('--seed', '007').values.seed, 7);
  assert.is(parse('-n', '5').values['max-tokens'], 5);
  assert.is(parse('-n5').values['max-tokens'], 5);
  assert.is(parse('-n=5').values['max-tokens'], 5);
  assert.is(parse('--max-tokens=0').values['max-tokens'], 0);
  assert.is(parse('--temperature', '.5').values.temperature, 0.5);
  assert.is(parse('--temperature', '1e-1').values.temperature, 0.1);
  assert.ok(Object.is(parse('--temperature', '-0').values.temperature, 0));
  assert.is(parse('--repeat-last-n', '-1').values['repeat-last-n'], -1);
  assert.is(parse('-n', '1', '-n', '2').values['max-tokens'], 2, 'the last one counts');
});

test('flags may be joined, and take no value', () => {
  assert.is(parse('-qv').values.quiet, true);
  assert.is(parse('-qv').values.verbose, true);
  assert.equal(parse('-qn3').values, { quiet: true, 'max-tokens': 3 });
  assert.equal(parse('--json').values, { json: true });
  refuses(['--json=yes'], /--json takes no value, found "yes"/);
  refuses(['-q=1'], /-q takes no value, found "1"/);
});

test('positionals', () => {
  assert.equal(parse('a', '-n', '1', 'b').positionals, ['a', 'b']);
  assert.equal(parse('a', '--', '--json', '-n').positionals, ['a', '--json', '-n']);
  assert.equal(parse('a', '-1 + 2').positionals, ['a', '-1 + 2']);
  assert.equal(parse('a', '-1').positionals, ['a', '-1']);
  assert.equal(parse('a', '- a list').positionals, ['a', '- a list']);
  assert.equal(parse('a', '-').positionals, ['a', '-']);
  assert.equal(parse('a', '').positionals, ['a', '']);
});

test('what is missing or unknown is named', () => {
  refuses(['-p'], /-p has no value, expected text/);
  refuses(['-p', '--json'], /-p has no value \(found "--json" in its place\)/);
  refuses(['-n', '-q'], /-n has no value \(found "-q" in its place\), expected a whole number/);
  refuses(['--stop', '--'], /--stop has no value/);
  refuses(['--tempreature', '1'], /unknown option "--tempreature"; did you mean --temperature\?/);
  refuses(['--banana'], /unknown option "--banana"; expected an option that --help lists/);
  refuses(['-x'], /unknown option "-x"/);
  refuses(['-qx'], /unknown option "-x"/);
  refuses(['--__proto__=1'], /unknown option/);
  refuses(['--constructor'], /unknown option/);
});

test('everything is still read behind a problem, so that --json is known', () => {
  const { occurrences, problem } = scanArguments(['--banana', '-n', '--json'], RUN_OPTIONS);
  assert.ok(problem);
  assert.equal(
    occurrences.map(({ name }) => name),
    ['json'],
  );
});

test('values out of range, for every option that takes a number or a choice', () => {
  const bad: Record<string, string[]> = {
    'max-tokens': ['x', '', '-1', '1.5', '1e3', '0x10', ' 5', '2147483648', '99999999999999999999', 'NaN', 'Infinity'],
    'context-length': ['x', '-1', '1.5', '16777217'],
    temperature: ['x', '-1', '-0.1', '101', 'NaN', 'Infinity', '1,5', '1e999'],
    'top-k': ['x', '-1', '0.5'],
    'top-p': ['x', '5', '-0.1', '1.01'],
    'min-p': ['x', '5', '-0.1'],
    seed: ['x', '-1', '1.5', '9007199254740992', '1e3'],
    'repeat-penalty': ['x', '0', '-1', '0.001', '101'],
    'repeat-last-n': ['x', '-2', '1.5'],
    logprobs: ['x', '-1', '1.5', '1001'],
    threads: ['x', '0', '-1', '257', '1.5'],
    format: ['banana', '', 'JSON', 'srt'],
    backend: ['banana', '', 'CPU'],
    thinking: ['yes', '', 'ON'],
    'trace-level': ['all', '', 'Layer'],
    'trace-output': [''],
    'trace-steps': [''],
    stop: [''],
    input: [''],
    'batch-jsonl': [''],
    parallel: ['x', '0', '-1', '65', '1.5'],
  };
  for (const [name, option] of Object.entries(RUN_OPTIONS)) {
    if (option.kind === 'flag' || (option.kind === 'text' && 'allowEmpty' in option)) continue;
    assert.ok(bad[name], `bad values for --${name} are listed`);
  }
  for (const [name, values] of Object.entries(bad)) {
    for (const value of values) {
      refuses([`--${name}`, value], new RegExp(`^--${name} is "${value.slice(0, 5)}.*", expected `));
    }
  }
});

test('a bad value is refused even where a later one is good', () => {
  refuses(['-n', 'x', '-n', '5'], /-n \(--max-tokens\) is "x"/);
});

test('the nearest name', () => {
  assert.is(nearest('rum', ['run', 'serve']), 'run');
  assert.is(nearest('RUN', ['run']), 'run');
  assert.is(nearest('--jsno', ['--json', '--stop']), '--json');
  assert.is(nearest('banana', ['run', 'serve']), undefined);
  assert.is(nearest('', ['run']), undefined);
  assert.is(nearest('x'.repeat(100_000), ['run']), undefined);
});

test.run();
