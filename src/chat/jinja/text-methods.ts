/** Methods of `str`. */

import { format } from './format.ts';
import type { Runtime } from './interpreter.ts';
import { iterate } from './operators.ts';
import { lengthOf, lines, SPACE, strip, words } from './text.ts';
import { type Arguments, asInteger, bind, isTrue, List, TemplateError, Tuple, typeName, type Value } from './values.ts';

type TextMethod = (runtime: Runtime, text: string, args: Arguments) => Value;

/** @throws TemplateError for anything but a text */
export function expectText(what: string, value: Value | undefined): string {
  if (typeof value === 'string') return value;
  throw new TemplateError(`${what}() takes a text, not ${value === undefined ? 'nothing' : typeName(value)}`);
}

/** @throws TemplateError for anything but a whole number */
export function expectInteger(what: string, value: Value | undefined): number {
  const number = value === undefined ? undefined : asInteger(value);
  if (number !== undefined) return number;
  throw new TemplateError(`${what}() takes a whole number, not ${value === undefined ? 'nothing' : typeName(value)}`);
}

const stripping =
  (name: 'strip' | 'lstrip' | 'rstrip'): TextMethod =>
  (_, text, args) => {
    const [characters = null] = bind(name, args, ['chars']);
    return strip(text, characters === null ? undefined : expectText(name, characters), name);
  };

/** `text.split(separator, times)` from one end. */
function split(name: 'split' | 'rsplit', text: string, separator: Value, times: number): string[] {
  if (separator === null) return splitWords(name, text, times);
  const mark = expectText(name, separator);
  if (mark === '') throw new TemplateError('empty separator');
  const parts = text.split(mark);
  if (times < 0 || parts.length <= times + 1) return parts;
  if (name === 'split') return [...parts.slice(0, times), parts.slice(times).join(mark)];
  return [parts.slice(0, parts.length - times).join(mark), ...parts.slice(parts.length - times)];
}

function splitWords(name: 'split' | 'rsplit', text: string, times: number): string[] {
  const all = words(text);
  if (times < 0 || all.length <= times) return all;
  const isForward = name === 'split';
  const found: string[] = [];
  let rest = strip(text, undefined, isForward ? 'lstrip' : 'rstrip');
  for (let i = 0; i < times && rest !== ''; i++) {
    const word = isForward ? all[i]! : all[all.length - 1 - i]!;
    found.push(word);
    rest = isForward
      ? strip(rest.slice(word.length), undefined, 'lstrip')
      : strip(rest.slice(0, -word.length), undefined, 'rstrip');
  }
  if (rest !== '') found.push(rest);
  return isForward ? found : found.reverse();
}

const splitting =
  (name: 'split' | 'rsplit'): TextMethod =>
  ({ meter }, text, args) => {
    const [separator = null, times = -1] = bind(name, args, ['sep', 'maxsplit']);
    const parts = split(name, text, separator, expectInteger(name, times));
    meter.items(parts.length);
    return new List(parts);
  };

/** The part of a text that two arguments behind the first may name, and where it begins in characters. */
function part(what: string, text: string, from: Value | undefined, to: Value | undefined): [string, number] {
  if (from === undefined && to === undefined) return [text, 0];
  const letters = Array.from(text);
  const place = (value: Value | undefined, fallback: number): number => {
    if (value === undefined || value === null) return fallback;
    const at = expectInteger(what, value);
    return Math.max(0, at < 0 ? at + letters.length : at);
  };
  const start = place(from, 0);
  return [letters.slice(start, place(to, letters.length)).join(''), start];
}

const finding =
  (name: 'find' | 'rfind' | 'index' | 'rindex'): TextMethod =>
  (_, text, args) => {
    const [wanted, from, to] = bind(name, args, ['sub', 'start', 'end'], 1);
    const [within, start] = part(name, text, from, to);
    const mark = expectText(name, wanted);
    const at = name.startsWith('r') ? within.lastIndexOf(mark) : within.indexOf(mark);
    if (at >= 0) return start + lengthOf(within.slice(0, at));
    if (name.endsWith('find')) return -1;
    throw new TemplateError('substring not found');
  };

const touching =
  (name: 'startswith' | 'endswith'): TextMethod =>
  ({ meter }, text, args) => {
    const [wanted, from, to] = bind(name, args, ['prefix', 'start', 'end'], 1);
    const [within] = part(name, text, from, to);
    const marks = wanted instanceof Tuple ? iterate(meter, wanted) : [wanted!];
    return marks.some((mark) => {
      const written = expectText(name, mark);
      return name === 'startswith' ? within.startsWith(written) : within.endsWith(written);
    });
  };

const cutting =
  (name: 'partition' | 'rpartition'): TextMethod =>
  (_, text, args) => {
    const mark = expectText(name, bind(name, args, ['sep'], 1)[0]);
    if (mark === '') throw new TemplateError('empty separator');
    const at = name === 'partition' ? text.indexOf(mark) : text.lastIndexOf(mark);
    if (at < 0) return new Tuple(name === 'partition' ? [text, '', ''] : ['', '', text]);
    return new Tuple([text.slice(0, at), mark, text.slice(at + mark.length)]);
  };

const aligning =
  (name: 'center' | 'ljust' | 'rjust'): TextMethod =>
  ({ meter }, text, args) => {
    const [width, fill = ' '] = bind(name, args, ['width', 'fillchar'], 1);
    const letter = expectText(name, fill);
    if (lengthOf(letter) !== 1) throw new TemplateError('The fill character must be exactly one character long');
    const missing = expectInteger(name, width) - lengthOf(text);
    if (missing <= 0) return text;
    meter.text(text.length + missing);
    if (name === 'ljust') return text + letter.repeat(missing);
    if (name === 'rjust') return letter.repeat(missing) + text;
    // The odd one goes to the left of an odd width.
    const left = Math.floor(missing / 2) + (missing & (missing + lengthOf(text)) & 1);
    return letter.repeat(left) + text + letter.repeat(missing - left);
  };

/** Whether a text is not empty and all of its characters are of a kind. */
const kind =
  (pattern: RegExp): TextMethod =>
  (_, text) =>
    pattern.test(text);

/** Whether it has letters with two cases, all of them in one. */
export function isCased(text: string, name: 'islower' | 'isupper'): boolean {
  const [wanted, other] = name === 'islower' ? [/\p{Ll}/u, /[\p{Lu}\p{Lt}]/u] : [/\p{Lu}/u, /[\p{Ll}\p{Lt}]/u];
  return wanted.test(text) && !other.test(text);
}

/** `text.replace(old, new, count)` */
export function replace(runtime: Runtime, text: string, old: string, by: string, count: number): string {
  const pieces = old === '' ? ['', ...Array.from(text), ''] : text.split(old);
  const times = count < 0 ? pieces.length - 1 : Math.min(count, pieces.length - 1);
  runtime.meter.text(text.length + times * Math.max(0, by.length - old.length));
  if (old !== '' && times === pieces.length - 1) return pieces.join(by);
  const head = pieces.slice(0, times + 1).join(by);
  const rest = pieces.slice(times + 1);
  return rest.length === 0 ? head : head + old + rest.join(old);
}

/** Letters that are two in one, and what stands for them where only the first is great. */
const TITLE_CASE: Readonly<Record<string, string>> = { ǆ: 'ǅ', Ǆ: 'ǅ', ǉ: 'ǈ', Ǉ: 'ǈ', ǌ: 'ǋ', Ǌ: 'ǋ', ǳ: 'ǲ', Ǳ: 'ǲ' };

/** The first letter great, all others small. */
export function capitalize(text: string): string {
  const [first = ''] = text;
  const [upper = '', ...more] = TITLE_CASE[first] ?? first.toUpperCase();
  return upper + more.join('').toLowerCase() + text.slice(first.length).toLowerCase();
}

/** Texts joined by another. @throws TemplateError when one is no text */
function join(runtime: Runtime, text: string, args: Arguments): string {
  const items = iterate(runtime.meter, bind('join', args, ['iterable'], 1)[0]!);
  let length = 0;
  for (const [index, item] of items.entries()) {
    if (typeof item !== 'string') {
      throw new TemplateError(`sequence item ${index}: expected str instance, ${typeName(item)} found`);
    }
    length += item.length + text.length;
    runtime.meter.bound(length);
  }
  runtime.meter.text(length);
  return items.join(text);
}

export const TEXT_METHODS: ReadonlyMap<string, TextMethod> = new Map<string, TextMethod>([
  ['strip', stripping('strip')],
  ['lstrip', stripping('lstrip')],
  ['rstrip', stripping('rstrip')],
  ['split', splitting('split')],
  ['rsplit', splitting('rsplit')],
  ['find', finding('find')],
  ['rfind', finding('rfind')],
  ['index', finding('index')],
  ['rindex', finding('rindex')],
  ['startswith', touching('startswith')],
  ['endswith', touching('endswith')],
  ['partition', cutting('partition')],
  ['rpartition', cutting('rpartition')],
  ['center', aligning('center')],
  ['ljust', aligning('ljust')],
  ['rjust', aligning('rjust')],
  ['upper', (_, text) => text.toUpperCase()],
  ['lower', (_, text) => text.toLowerCase()],
  ['casefold', (_, text) => text.toLowerCase().replaceAll('ß', 'ss')],
  ['capitalize', (_, text) => capitalize(text)],
  [
    'swapcase',
    (_, text) =>
      Array.from(text, (letter) => (/\p{Lu}/u.test(letter) ? letter.toLowerCase() : letter.toUpperCase())).join(''),
  ],
  ['title', (_, text) => text.replaceAll(/[\p{Lu}\p{Ll}\p{Lt}]+/gu, capitalize)],
  ['join', join],
  ['format', ({ meter }, text, args) => format(meter, text, args)],
  [
    'replace',
    (runtime, text, args) => {
      const [old, by, count = -1] = bind('replace', args, ['old', 'new', 'count'], 2);
      const times = expectInteger('replace', count);
      return replace(runtime, text, expectText('replace', old), expectText('replace', by), times);
    },
  ],
  [
    'removeprefix',
    (_, text, args) => {
      const prefix = expectText('removeprefix', bind('removeprefix', args, ['prefix'], 1)[0]);
      return text.startsWith(prefix) ? text.slice(prefix.length) : text;
    },
  ],
  [
    'removesuffix',
    (_, text, args) => {
      const suffix = expectText('removesuffix', bind('removesuffix', args, ['suffix'], 1)[0]);
      return suffix !== '' && text.endsWith(suffix) ? text.slice(0, -suffix.length) : text;
    },
  ],
  [
    'count',
    (_, text, args) => {
      const [wanted, from, to] = bind('count', args, ['sub', 'start', 'end'], 1);
      const [within] = part('count', text, from, to);
      const mark = expectText('count', wanted);
      return mark === '' ? lengthOf(within) + 1 : within.split(mark).length - 1;
    },
  ],
  [
    'splitlines',
    ({ meter }, text, args) => {
      const found = lines(text, isTrue(bind('splitlines', args, ['keepends'])[0] ?? false));
      meter.items(found.length);
      return new List(found);
    },
  ],
  [
    'zfill',
    ({ meter }, text, args) => {
      const missing = expectInteger('zfill', bind('zfill', args, ['width'], 1)[0]) - lengthOf(text);
      if (missing <= 0) return text;
      meter.text(text.length + missing);
      const sign = /^[-+]?/.exec(text)![0];
      return sign + '0'.repeat(missing) + text.slice(sign.length);
    },
  ],
  ['isspace', kind(new RegExp(`^[${SPACE}]+$`, 'u'))],
  ['isalpha', kind(/^\p{L}+$/u)],
  ['isalnum', kind(/^[\p{L}\p{N}]+$/u)],
  ['isdecimal', kind(/^\p{Nd}+$/u)],
  ['isdigit', kind(/^[\p{Nd}\u00b2\u00b3\u00b9\u2070\u2074-\u2079\u2080-\u2089]+$/u)],
  ['isnumeric', kind(/^\p{N}+$/u)],
  ['isidentifier', kind(/^[\p{L}\p{Nl}_][\p{L}\p{M}\p{N}\p{Pc}]*$/u)],
  ['isascii', (_, text) => !/[^\0-\x7f]/.test(text)],
  ['islower', (_, text) => isCased(text, 'islower')],
  ['isupper', (_, text) => isCased(text, 'isupper')],
]);

/** Methods that Python has besides: to say that they are not there is better than to take them for missing keys. */
export const PYTHON_TEXT_METHODS: ReadonlySet<string> = new Set([
  'encode',
  'expandtabs',
  'format_map',
  'isprintable',
  'istitle',
  'maketrans',
  'translate',
]);
