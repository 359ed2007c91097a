/** The filters of jinja2, and `tojson` as the transformers library has it. Nothing is ever marked as HTML. */

import { pairsOf } from './attributes.ts';
import { fixed, percentFormat } from './format.ts';
import type { Runtime } from './interpreter.ts';
import { toJson } from './json.ts';
import { LIST_FILTERS } from './list-filters.ts';
import { isIterable, iterate } from './operators.ts';
import { lengthOf, lines, SPACE, strip, textOf } from './text.ts';
import { capitalize, expectInteger, expectText, replace, TEXT_METHODS } from './text-methods.ts';
import {
  type Arguments,
  asNumber,
  assertDefined,
  bind,
  Dict,
  Float,
  Iterator,
  integer,
  isTrue,
  List,
  TemplateError,
  Tuple,
  typeName,
  Undefined,
  type Value,
} from './values.ts';

export type FilterFunction = (runtime: Runtime, value: Value, args: Arguments) => Value;

/** A filter on the value's text, whatever the value is. */
const onText =
  (apply: (text: string, runtime: Runtime, args: Arguments) => Value): FilterFunction =>
  (runtime, value, args) =>
    apply(textOf(runtime.meter, value), runtime, args);

const refused = (name: string): [string, FilterFunction] => [
  name,
  () => {
    throw new TemplateError(`the filter ${name} is one of Jinja's that apr does not offer to chat templates`);
  },
];

/** `len(value)` @throws TemplateError */
function count(runtime: Runtime, value: Value): number {
  if (typeof value === 'string') return lengthOf(value);
  if (value instanceof Undefined) return 0;
  if (value instanceof Iterator || !isIterable(value)) {
    throw new TemplateError(`object of type '${typeName(value)}' has no len()`);
  }
  return iterate(runtime.meter, value).length;
}

const HTML: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&#34;', "'": '&#39;' };

const escapeHtml = onText((text) => text.replaceAll(/[&<>"']/g, (character) => HTML[character]!));

/** Digits as Python reads them: white space around and `_` between are no harm. */
function digitsOf(text: string): string {
  const trimmed = strip(text, undefined, 'strip');
  return /^_|__|_$|_[^\w]|[^\w]_/.test(trimmed) ? '' : trimmed.replaceAll('_', '');
}

function floatOf(text: string): number | undefined {
  const digits = digitsOf(text);
  const special = /^([+-]?)(inf|infinity|nan)$/i.exec(digits);
  if (special !== null) {
    if (special[2]!.toLowerCase() === 'nan') return Number.NaN;
    return special[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  }
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(digits) ? Number(digits) : undefined;
}

const PREFIXES: Readonly<Record<number, string>> = { 2: '0b', 8: '0o', 16: '0x' };

function integerOf(text: string, base: number): number | undefined {
  const match = /^([+-]?)(\w+)$/.exec(digitsOf(text).toLowerCase());
  if (match === null) return undefined;
  const prefix = PREFIXES[base];
  const digits = prefix !== undefined && match[2]!.startsWith(prefix) ? match[2]!.slice(2) : match[2]!;
  const allowed = '0123456789abcdefghijklmnopqrstuvwxyz'.slice(0, base);
  if (digits === '' || ![...digits].every((digit) => allowed.includes(digit))) return undefined;
  const value = Number.parseInt(digits, base);
  return integer(match[1] === '-' ? -value : value);
}

function toInteger(value: Value, args: Arguments): Value {
  const [fallback = 0, base = 10] = bind('int', args, ['default', 'base']);
  assertDefined(value);
  let number = asNumber(value);
  if (typeof value === 'string') {
    const whole = integerOf(value, expectInteger('int', base));
    if (whole !== undefined) return whole;
    number = floatOf(value);
  }
  if (number === undefined || !Number.isFinite(number)) return fallback;
  return integer(Math.trunc(number));
}

function toFloat(value: Value, args: Arguments): Value {
  const [fallback = new Float(0)] = bind('float', args, ['default']);
  assertDefined(value);
  const number = typeof value === 'string' ? floatOf(value) : asNumber(value);
  return number === undefined ? fallback : new Float(number);
}

function round(value: Value, args: Arguments): Value {
  const [places = 0, method = 'common'] = bind('round', args, ['precision', 'method']);
  const precision = expectInteger('round', places);
  assertDefined(value);
  const number = asNumber(value);
  if (number === undefined) throw new TemplateError(`type ${typeName(value)} cannot be rounded`);
  if (Math.abs(precision) > 100) throw new TemplateError('round() takes a precision from -100 to 100');
  const scale = 10 ** precision;
  if (method === 'ceil') return new Float(Math.ceil(number * scale) / scale);
  if (method === 'floor') return new Float(Math.floor(number * scale) / scale);
  if (method !== 'common') throw new TemplateError('method must be common, ceil or floor');
  if (!Number.isFinite(number)) return value;
  const isFloat = value instanceof Float;
  if (!isFloat && precision >= 0) return integer(number);
  const sign = number < 0 || Object.is(number, -0) ? -1 : 1;
  const magnitude = Math.abs(number);
  const rounded =
    precision >= 0
      ? Number(fixed(magnitude, precision))
      : Number(fixed(magnitude / 10 ** -precision, 0)) * 10 ** -precision;
  return isFloat ? new Float(sign * rounded) : integer(sign * rounded);
}

function tojson({ meter }: Runtime, value: Value, args: Arguments): Value {
  const names = ['ensure_ascii', 'indent', 'separators', 'sort_keys'];
  const [ensureAscii = false, indent = null, separators = null, sortKeys = false] = bind('tojson', args, names);
  const step = typeof indent === 'string' || indent === null ? indent : expectInteger('tojson', indent);
  if (typeof step === 'number' && step > 100) throw new TemplateError('tojson() takes an indent of at most 100');
  const marks = separators === null ? [step === null ? ', ' : ',', ': '] : iterate(meter, separators);
  if (marks.length !== 2) throw new TemplateError('tojson() takes two separators, one of items and one of keys');
  const text = toJson(meter, value, {
    indent: typeof step === 'number' ? ' '.repeat(Math.max(0, step)) : (step ?? undefined),
    itemSeparator: expectText('tojson', marks[0]),
    keySeparator: expectText('tojson', marks[1]),
    sortKeys: isTrue(sortKeys),
    ensureAscii: isTrue(ensureAscii),
  });
  meter.text(text.length);
  return text;
}

function indent({ meter }: Runtime, value: Value, args: Arguments): Value {
  const [width = 4, first = false, blank = false] = bind('indent', args, ['width', 'first', 'blank']);
  assertDefined(value);
  const text = expectText('indent', value);
  const columns = typeof width === 'string' ? width.length : expectInteger('indent', width);
  const all = lines(`${text}\n`);
  meter.text(text.length + all.length * Math.max(0, columns));
  const margin = typeof width === 'string' ? width : ' '.repeat(Math.max(0, columns));
  const isSetIn = (line: string, index: number): boolean =>
    index === 0 ? isTrue(first) : line !== '' || isTrue(blank);
  return all.map((line, index) => (isSetIn(line, index) ? margin + line : line)).join('\n');
}

function truncate(runtime: Runtime, value: Value, args: Arguments): Value {
  const names = ['length', 'killwords', 'end', 'leeway'];
  const [length = 255, killWords = false, end = '...', leeway = null] = bind('truncate', args, names);
  const letters = Array.from(expectText('truncate', value));
  runtime.meter.text(letters.length);
  const mark = expectText('truncate', end);
  const limit = expectInteger('truncate', length);
  const kept = limit - lengthOf(mark);
  if (kept < 0) throw new TemplateError(`truncate() takes a length of at least ${lengthOf(mark)}, not ${limit}`);
  if (letters.length <= limit + (leeway === null ? 5 : expectInteger('truncate', leeway))) return value;
  const cut = letters.slice(0, kept).join('');
  if (isTrue(killWords)) return cut + mark;
  const space = cut.lastIndexOf(' ');
  return (space < 0 ? cut : cut.slice(0, space)) + mark;
}

function quoteUrl(text: string, isQuery: boolean): string {
  const quoted = encodeURIComponent(text.toWellFormed?.() ?? text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return isQuery ? quoted.replaceAll('%20', '+') : quoted.replaceAll('%2F', '/');
}

function urlencode({ meter }: Runtime, value: Value): Value {
  if (typeof value === 'string' || !isIterable(value)) return quoteUrl(textOf(meter, value), false);
  const pairs = value instanceof Dict ? pairsOf(value) : iterate(meter, value);
  return pairs
    .map((pair) => {
      const [key, item, ...rest] = iterate(meter, pair);
      if (key === undefined || item === undefined || rest.length > 0)
        throw new TemplateError('urlencode() takes pairs');
      return `${quoteUrl(textOf(meter, key), true)}=${quoteUrl(textOf(meter, item), true)}`;
    })
    .join('&');
}

const UNITS = ['k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'] as const;

function fileSize(value: Value, args: Arguments): Value {
  const isBinary = isTrue(bind('filesizeformat', args, ['binary'])[0] ?? false);
  const bytes = toFloat(value, { positional: [null], named: new Map() });
  if (!(bytes instanceof Float)) throw new TemplateError('filesizeformat takes a number');
  const base = isBinary ? 1024 : 1000;
  if (bytes.value === 1) return '1 Byte';
  if (bytes.value < base) return `${Math.trunc(bytes.value)} Bytes`;
  const index = UNITS.findIndex((_, power) => bytes.value < base ** (power + 2));
  const power = index < 0 ? UNITS.length - 1 : index;
  const unit = isBinary ? `${UNITS[power]!.toUpperCase()}iB` : `${UNITS[power]}B`;
  return `${fixed(bytes.value / base ** (power + 1), 1)} ${unit}`;
}

const TITLE_BREAK = new RegExp(`([-${SPACE}({\\[<]+)`, 'u');

/** By name; `runtime.filter` looks here. */
export const FILTERS: ReadonlyMap<string, FilterFunction> = new Map<string, FilterFunction>([
  ...LIST_FILTERS,
  ['string', (runtime, value) => (value instanceof Undefined ? '' : textOf(runtime.meter, value))],
  ['safe', onText((text) => text)],
  ['e', escapeHtml],
  ['escape', escapeHtml],
  ['forceescape', escapeHtml],
  ['upper', onText((text) => text.toUpperCase())],
  ['lower', onText((text) => text.toLowerCase())],
  ['capitalize', onText(capitalize)],
  ['title', onText((text) => text.split(TITLE_BREAK).map(capitalize).join(''))],
  [
    'trim',
    onText((text, _, args) => {
      const [characters = null] = bind('trim', args, ['chars']);
      return strip(text, characters === null ? undefined : expectText('trim', characters), 'strip');
    }),
  ],
  [
    'replace',
    onText((text, runtime, args) => {
      const [old, by, times = null] = bind('replace', args, ['old', 'new', 'count'], 2);
      const [from, to] = [textOf(runtime.meter, old!), textOf(runtime.meter, by!)];
      return replace(runtime, text, from, to, times === null ? -1 : expectInteger('replace', times));
    }),
  ],
  [
    'center',
    onText((text, runtime, args) => {
      const [width = 80] = bind('center', args, ['width']);
      return TEXT_METHODS.get('center')!(runtime, text, { positional: [width], named: new Map() });
    }),
  ],
  ['wordcount', onText((text) => text.match(/[\p{L}\p{N}_]+/gu)?.length ?? 0)],
  ['indent', indent],
  ['truncate', truncate],
  [
    'format',
    ({ meter }, value, { positional, named }) => {
      if (positional.length > 0 && named.size > 0) {
        throw new TemplateError("can't handle positional and keyword arguments at the same time");
      }
      const values = named.size > 0 ? new Dict(named) : new Tuple(positional);
      return percentFormat(meter, textOf(meter, value), values);
    },
  ],
  ['urlencode', urlencode],
  ['filesizeformat', (_, value, args) => fileSize(value, args)],
  ['tojson', tojson],
  ['int', (_, value, args) => toInteger(value, args)],
  ['float', (_, value, args) => toFloat(value, args)],
  ['round', (_, value, args) => round(value, args)],
  [
    'abs',
    (_, value) => {
      assertDefined(value);
      const number = asNumber(value);
      if (number === undefined) throw new TemplateError(`bad operand type for abs(): '${typeName(value)}'`);
      return value instanceof Float ? new Float(Math.abs(number)) : Math.abs(number);
    },
  ],
  ['length', count],
  ['count', count],
  ['list', ({ meter }, value) => new List([...iterate(meter, value)])],
  [
    'default',
    (_, value, args) => {
      const [fallback = '', isBoolean = false] = bind('default', args, ['default_value', 'boolean']);
      return value instanceof Undefined || (isTrue(isBoolean) && !isTrue(value)) ? fallback : value;
    },
  ],
  [
    'd',
    (runtime, value, args) => {
      return runtime.filter('default', value, args);
    },
  ],
  refused('pprint'),
  refused('random'),
  refused('striptags'),
  refused('urlize'),
  refused('wordwrap'),
  refused('xmlattr'),
]);
