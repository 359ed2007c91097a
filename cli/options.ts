/**
 * Options as a typed table. cac turns `-p 123` into a number, drops `-p ""` and reads `-p "-1 + 2"` as flags, so the
 * words of the command line are read here; cac keeps the commands and prints the help.
 */

import { AprError } from '../src/errors.ts';
import { nearest } from './nearest.ts';

interface Described {
  /** One letter. */
  readonly alias?: string;
  readonly description: string;
  /** As the help shows it. */
  readonly default?: string;
  /** Heading in the help. */
  readonly group: string;
}

export interface FlagOption extends Described {
  readonly kind: 'flag';
}

export interface TextOption extends Described {
  readonly kind: 'text';
  readonly placeholder: string;
  /** May be given several times; its value is a list. */
  readonly repeatable?: true;
  readonly allowEmpty?: true;
}

export interface NumberOption extends Described {
  readonly kind: 'integer' | 'number';
  readonly placeholder: string;
  readonly min: number;
  readonly max: number;
}

export interface ChoiceOption extends Described {
  readonly kind: 'choice';
  readonly placeholder: string;
  readonly choices: readonly string[];
}

export type Option = FlagOption | TextOption | NumberOption | ChoiceOption;
export type OptionTable = Readonly<Record<string, Option>>;

type ValueOf<O extends Option> = O extends FlagOption
  ? true
  : O extends ChoiceOption
    ? O['choices'][number]
    : O extends NumberOption
      ? number
      : O extends { readonly repeatable: true }
        ? readonly string[]
        : string;

/** What was given: a flag is `true`, an option that was not given is absent. */
export type OptionValues<T extends OptionTable> = { readonly [K in keyof T]?: ValueOf<T[K]> };

/** One option as it stood on the command line. */
export interface Occurrence {
  readonly name: string;
  /** How the user spelled it, such as `-n`. */
  readonly spelled: string;
  /** Undefined for a flag. */
  readonly value: string | undefined;
}

export interface ScannedArguments {
  readonly positionals: readonly string[];
  readonly occurrences: readonly Occurrence[];
  /** The first thing that is wrong with the words; the rest was read all the same. */
  readonly problem: AprError | undefined;
}

/**
 * Splits the command line into positionals and options. Understands `--name value`, `--name=value`, `-n value`, `-n5`,
 * `-n=5`, joined flags (`-qv`) and `--`. The word behind an option that takes a value is its value whatever it looks
 * like, unless it is itself a known option.
 */
export function scanArguments(words: readonly string[], table: OptionTable): ScannedArguments {
  const positionals: string[] = [];
  const occurrences: Occurrence[] = [];
  let problem: AprError | undefined;
  const report = (message: string, details: Record<string, string>): void => {
    problem ??= new AprError('USAGE', message, details);
  };

  const take = (name: string, spelled: string, attached: string | undefined, next: string | undefined): boolean => {
    const option = table[name] as Option;
    if (option.kind === 'flag') {
      if (attached !== undefined)
        report(`${spelled} takes no value, found ${quote(attached)}`, { option: `--${name}` });
      occurrences.push({ name, spelled, value: undefined });
      return false;
    }
    if (attached === undefined && (next === undefined || next === '--' || optionName(next, table) !== undefined)) {
      const found = next === undefined ? '' : ` (found ${quote(next)} in its place)`;
      report(`${spelled} has no value${found}, expected ${expectation(option)}`, { option: `--${name}` });
      return false;
    }
    occurrences.push({ name, spelled, value: attached ?? next ?? '' });
    return attached === undefined;
  };

  for (let i = 0; i < words.length; i++) {
    const word = words[i] as string;
    if (word === '--') {
      positionals.push(...words.slice(i + 1));
      break;
    }
    const long = /^--([A-Za-z_][\w-]*)(?:=(.*))?$/s.exec(word);
    if (long !== null) {
      const name = long[1] as string;
      if (!Object.hasOwn(table, name)) report(...unknownOption(`--${name}`, table));
      else if (take(name, `--${name}`, long[2], words[i + 1])) i++;
      continue;
    }
    // A word with a space in it is text, not options: "-x is what?" is a prompt.
    if (!/^-[A-Za-z]/.test(word) || (/\s/.test(word) && byAlias(word[1] as string, table) === undefined)) {
      positionals.push(word);
      continue;
    }
    for (let at = 1; at < word.length; at++) {
      const letter = word[at] as string;
      const name = byAlias(letter, table);
      if (name === undefined) {
        report(...unknownOption(at === 1 ? word : `-${letter}`, table));
        break;
      }
      const rest = word.slice(at + 1);
      if (table[name]?.kind === 'flag' && !rest.startsWith('=')) {
        take(name, `-${letter}`, undefined, undefined);
        continue;
      }
      const attached = rest === '' ? undefined : rest.replace(/^=/, '');
      if (take(name, `-${letter}`, attached, words[i + 1])) i++;
      break;
    }
  }
  return { positionals, occurrences, problem };
}

/**
 * Checked values; of an option given several times the last one counts, and a repeatable one collects.
 * @throws AprError USAGE for a value of the wrong kind or out of range, wherever it stands
 */
export function readValues<T extends OptionTable>(occurrences: readonly Occurrence[], table: T): OptionValues<T> {
  const values: Record<string, unknown> = {};
  for (const occurrence of occurrences) {
    const option = table[occurrence.name] as Option;
    const value = readValue(occurrence, option);
    if (option.kind === 'text' && option.repeatable) {
      values[occurrence.name] = [...((values[occurrence.name] as string[] | undefined) ?? []), value];
    } else values[occurrence.name] = value;
  }
  return values as OptionValues<T>;
}

function readValue({ name, spelled, value }: Occurrence, option: Option): unknown {
  if (option.kind === 'flag') return true;
  const found = value ?? '';
  if (option.kind === 'text') {
    if (found !== '' || option.allowEmpty) return found;
  } else if (option.kind === 'choice') {
    if (option.choices.includes(found)) return found;
  } else {
    const number = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(found) ? Number(found) : Number.NaN;
    const whole = option.kind === 'number' || (Number.isSafeInteger(number) && /^[+-]?\d+$/.test(found));
    const { min, max } = option;
    if (whole && number <= max && number >= min) return number === 0 ? 0 : number;
  }
  const expected = expectation(option);
  const option_ = spelled === `--${name}` ? spelled : `${spelled} (--${name})`;
  throw new AprError('USAGE', `${option_} is ${quote(found)}, expected ${expected}`, {
    option: `--${name}`,
    found,
    expected,
  });
}

/**
 * The numbers of an option that takes a list, such as `1,2,4`.
 * @throws AprError USAGE
 */
export function readNumbers(option: string, text: string, min: number, max: number): number[] {
  const numbers = text.split(',').map((part) => (/^\s*\d{1,15}\s*$/.test(part) ? Number(part) : Number.NaN));
  if (numbers.every((number) => number >= min && number <= max)) return numbers;
  const expected = `whole numbers from ${min} to ${max} with commas between`;
  throw new AprError('USAGE', `${option} is ${quote(text)}, expected ${expected}`, { option, found: text, expected });
}

/** What an option wants, as a phrase. */
export function expectation(option: Option): string {
  switch (option.kind) {
    case 'flag':
      return 'no value';
    case 'text':
      return option.allowEmpty ? 'text' : `${option.placeholder === 'FILE' ? 'a file name' : 'text'} that is not empty`;
    case 'choice':
      return `one of ${option.choices.join(', ')}`;
    default: {
      const what = option.kind === 'integer' ? 'a whole number' : 'a number';
      return `${what} from ${option.min} to ${option.max}`;
    }
  }
}

function byAlias(letter: string, table: OptionTable): string | undefined {
  for (const [name, { alias }] of Object.entries(table)) if (alias === letter) return name;
  return undefined;
}

/** Name of the known option that this word is, with or without a value attached to it. */
function optionName(word: string, table: OptionTable): string | undefined {
  const long = /^--([A-Za-z][\w-]*)(?:=|$)/.exec(word)?.[1];
  if (long !== undefined) return Object.hasOwn(table, long) ? long : undefined;
  return /^-[A-Za-z]$/.test(word) ? byAlias(word[1] as string, table) : undefined;
}

function unknownOption(spelled: string, table: OptionTable): [string, Record<string, string>] {
  const near = nearest(
    spelled,
    Object.keys(table).map((name) => `--${name}`),
  );
  const advice = near === undefined ? 'expected an option that --help lists' : `did you mean ${near}?`;
  const text = 'text that begins with "-" goes behind "--"';
  return [
    `unknown option ${quote(spelled)}; ${near === undefined ? `${advice} (${text})` : advice}`,
    { option: spelled },
  ];
}

/** A word in quotes, cut where it is long. */
export function quote(word: string): string {
  return JSON.stringify(word.length > 60 ? `${word.slice(0, 57)}...` : word);
}
