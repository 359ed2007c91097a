/** Python's ways to write values into a text: `str.format`, `%`, and the small language that both have for numbers. */

import type { Meter } from './meter.ts';
import { exponentText, floatText, lengthOf, representationOf, textOf } from './text.ts';
import {
  type Arguments,
  asInteger,
  asNumber,
  assertDefined,
  Dict,
  Float,
  List,
  Range,
  TemplateError,
  Tuple,
  typeName,
  Undefined,
  type Value,
} from './values.ts';

/** How a field looks. */
interface Layout {
  readonly fill: string;
  readonly align: '<' | '>' | '^' | '=' | undefined;
  readonly sign: string;
  readonly alternate: boolean;
  readonly width: number;
  readonly grouping: string;
  readonly precision: number | undefined;
  readonly type: string;
}

const MAX_WIDTH = 100_000;
/** As many digits as JavaScript writes. */
const MAX_PRECISION = 100;

const LAYOUT = /^(?:(.)?([<>=^]))?([-+ ])?(#)?(0)?(\d+)?([,_])?(?:\.(\d+))?([a-zA-Z%])?$/su;

/** `format(value, specification)` @throws TemplateError */
export function formatValue(meter: Meter, value: Value, specification: string): string {
  if (specification === '') return textOf(meter, value);
  assertDefined(value);
  const match = LAYOUT.exec(specification);
  if (match === null) throw new TemplateError(`Invalid format specifier '${specification}'`);
  const [, fill, align, sign = '', alternate, zero, width, grouping = '', precision, type = ''] = match;
  const layout: Layout = {
    fill: fill ?? (zero === undefined ? ' ' : '0'),
    align: (align as Layout['align']) ?? (zero === undefined ? undefined : '='),
    sign,
    alternate: alternate !== undefined,
    width: bounded(width, MAX_WIDTH) ?? 0,
    grouping,
    precision: bounded(precision, MAX_PRECISION),
    type,
  };
  if (typeof value === 'string') return textField(value, layout, align);
  const number = asNumber(value);
  if (number === undefined) {
    throw new TemplateError(`unsupported format string passed to ${typeName(value)}.__format__`);
  }
  return padded(numberField(number, value instanceof Float, layout), layout, '>');
}

function textField(text: string, layout: Layout, align: string | undefined): string {
  if (layout.type !== '' && layout.type !== 's') {
    throw new TemplateError(`Unknown format code '${layout.type}' for object of type 'str'`);
  }
  if (align === '=' || layout.sign !== '' || layout.grouping !== '') {
    throw new TemplateError('a text has no sign and no digits to be grouped');
  }
  const { precision } = layout;
  const kept = precision === undefined ? text : Array.from(text).slice(0, precision).join('');
  return padded(kept, { ...layout, align: layout.align === '=' ? '<' : layout.align }, '<');
}

const RADIX: Readonly<Record<string, number>> = { b: 2, o: 8, x: 16, X: 16 };

/** Digits of a number with its sign. */
function numberField(value: number, isFloat: boolean, layout: Layout): string {
  const { type, precision, grouping } = layout;
  const magnitude = Math.abs(value);
  const isNegative = value < 0 || Object.is(value, -0);
  const sign = isNegative ? '-' : layout.sign === '-' ? '' : layout.sign;
  const radix = RADIX[type];
  if (!isFloat && (radix !== undefined || type === 'c')) {
    if (radix === undefined) return String.fromCodePoint(value);
    const prefix = layout.alternate ? `0${type}` : '';
    const digits = magnitude.toString(radix);
    return sign + prefix + grouped(type === 'X' ? digits.toUpperCase() : digits, grouping, 4);
  }
  if (!isFloat && (type === '' || type === 'd' || type === 'n')) {
    if (precision !== undefined) throw new TemplateError('Precision not allowed in integer format specifier');
    return sign + grouped(String(magnitude), grouping, 3);
  }
  if (!'eEfFgG%'.includes(type)) {
    throw new TemplateError(`Unknown format code '${type}' for object of type '${isFloat ? 'float' : 'int'}'`);
  }
  const text = floatField(magnitude, type, precision, layout.alternate);
  const point = text.search(/[.e%]|$/);
  return sign + grouped(text.slice(0, point), grouping, 3) + text.slice(point);
}

/** A number that is not negative. */
function floatField(value: number, type: string, precision: number | undefined, keepZeros: boolean): string {
  if (!Number.isFinite(value)) return type === type.toUpperCase() ? floatText(value).toUpperCase() : floatText(value);
  switch (type) {
    case 'f':
    case 'F':
      return fixed(value, precision ?? 6);
    case '%':
      return `${fixed(value * 100, precision ?? 6)}%`;
    case 'e':
    case 'E': {
      const [digits, exponent] = value.toExponential(precision ?? 6).split('e') as [string, string];
      return `${digits}${type}${exponentText(Number(exponent))}`;
    }
    default: {
      if (type === '' && precision === undefined) return floatText(value);
      const significant = precision === undefined ? 6 : precision || 1;
      const exponent = Number(value.toExponential(significant - 1).split('e')[1]);
      const isSmall = exponent >= -4 && exponent < (type === '' ? significant - 1 : significant);
      if (!isSmall) {
        const [digits] = value.toExponential(significant - 1).split('e') as [string];
        const mantissa = keepZeros ? digits : digits.replace(/\.?0+$/, '');
        return `${mantissa}${type === 'G' ? 'E' : 'e'}${exponentText(exponent)}`;
      }
      const text = fixed(value, Math.max(0, significant - 1 - exponent));
      const trimmed = keepZeros || !text.includes('.') ? text : text.replace(/\.?0+$/, '');
      return type === '' && !trimmed.includes('.') ? `${trimmed}.0` : trimmed;
    }
  }
}

/** Digits behind the point, rounded half to even where the number lies exactly between, as C does. */
export function fixed(value: number, digits: number): string {
  // JavaScript writes numbers from 1e21 on with an exponent, and they are whole.
  if (value >= 1e21) return BigInt(value).toString() + (digits > 0 ? `.${'0'.repeat(digits)}` : '');
  const text = value.toFixed(digits);
  // `toFixed` takes the greater of two that are equally near. Only a number whose own digits end there lies between.
  const exact = value.toFixed(Math.min(100, digits + 60));
  const rest = exact.slice(exact.indexOf('.') + 1 + digits);
  if (!/^50*$/.test(rest) || Number(text.at(-1)) % 2 === 0) return text;
  const below = exact.slice(0, exact.indexOf('.') + 1 + digits);
  return digits === 0 ? below.slice(0, -1) : below;
}

function grouped(digits: string, separator: string, size: number): string {
  if (separator === '') return digits;
  return digits.replaceAll(new RegExp(`\\B(?=(?:.{${size}})+$)`, 'g'), separator);
}

function padded(text: string, { fill, align, width, type }: Layout, usual: '<' | '>'): string {
  const missing = width - lengthOf(text);
  if (missing <= 0) return text;
  switch (align ?? usual) {
    case '<':
      return text + fill.repeat(missing);
    case '>':
      return fill.repeat(missing) + text;
    case '^':
      return fill.repeat(Math.floor(missing / 2)) + text + fill.repeat(Math.ceil(missing / 2));
    default: {
      const signs = RADIX[type] === undefined ? /^[-+ ]?/.exec(text)![0] : /^[-+ ]?(?:0[boxX])?/.exec(text)![0];
      return signs + fill.repeat(missing) + text.slice(signs.length);
    }
  }
}

function bounded(digits: string | undefined, highest: number): number | undefined {
  if (digits === undefined) return undefined;
  if (Number(digits) > highest) throw new TemplateError(`${digits} places are too many, expected at most ${highest}`);
  return Number(digits);
}

/** `text.format(…)` @throws TemplateError */
export function format(meter: Meter, text: string, { positional, named }: Arguments): string {
  let next = 0;
  const valueAt = (field: string): Value => {
    const [, name, path] = /^([^.[]*)(.*)$/s.exec(field)!;
    const value = name === '' ? positional[next++] : /^\d+$/.test(name!) ? positional[Number(name)] : named.get(name!);
    if (value === undefined) {
      if (name !== '' && !/^\d+$/.test(name!)) throw new TemplateError(`format() has no argument '${name}'`);
      throw new TemplateError('Replacement index is out of range for positional args tuple');
    }
    return path === '' ? value : follow(value, path!);
  };
  const fill = (part: string, depth: number): string =>
    part.replaceAll(/\{\{|\}\}|\{((?:[^{}]|\{[^{}]*\})*)\}|[{}]/g, (match: string, inner: string | undefined) => {
      if (match === '{{' || match === '}}') return match[0]!;
      if (inner === undefined) throw new TemplateError(`Single '${match}' encountered in format string`);
      const [, field, conversion, specification = ''] = /^([^!:]*)(?:!(.))?(?::(.*))?$/s.exec(inner) ?? [];
      if (field === undefined) throw new TemplateError(`format() does not understand ${match}`);
      const value = valueAt(field);
      const layout = depth === 0 ? fill(specification, 1) : specification;
      if (conversion === undefined) return formatValue(meter, value, layout);
      if (conversion !== 'r' && conversion !== 's') {
        throw new TemplateError(`format() does not know the conversion !${conversion}`);
      }
      return formatValue(meter, conversion === 'r' ? representationOf(meter, value) : textOf(meter, value), layout);
    });
  const out = fill(text, 0);
  meter.text(out.length);
  return out;
}

/** `[key]` and `[0]` behind a field's name. */
function follow(start: Value, path: string): Value {
  let value = start;
  for (const part of path.match(/\[[^\]]*\]|[^[]+/gs) ?? []) {
    const key = part.startsWith('[') ? part.slice(1, -1) : undefined;
    const found =
      key === undefined
        ? undefined
        : value instanceof Dict
          ? value.get(key)
          : value instanceof List || value instanceof Tuple
            ? value.items[/^\d+$/.test(key) ? Number(key) : -1]
            : undefined;
    if (found === undefined) throw new TemplateError(`format() finds no ${part} in a ${typeName(value)}`);
    value = found;
  }
  return value;
}

/** `text % values` @throws TemplateError */
export function percentFormat(meter: Meter, text: string, values: Value): string {
  const list = values instanceof Tuple ? values.items : [values];
  let next = 0;
  const take = (): Value => {
    const value = list[next++];
    if (value === undefined) throw new TemplateError('not enough arguments for format string');
    return value;
  };
  const out = text.replaceAll(
    /%(?:\(([^)]*)\))?([-+ #0]*)(\*|\d+)?(?:\.(\*|\d*))?[hlL]?(.)?/gs,
    (match, key: string | undefined, flags: string, width: string | undefined, precision: string | undefined, type) => {
      if (match === '%%') return '%';
      if (type === undefined) throw new TemplateError('incomplete format');
      const measure = (digits: string | undefined): string | undefined =>
        digits === '*' ? String(wholeNumber(take())) : digits;
      const columns = measure(width) ?? '';
      const places = measure(precision);
      let value: Value;
      if (key === undefined) value = take();
      else {
        if (!(values instanceof Dict)) throw new TemplateError('format requires a mapping');
        const found = values.get(key);
        if (found === undefined) throw new TemplateError(`format finds no key '${key}'`);
        value = found;
      }
      return percentField(meter, value, String(type), flags, columns, places === '' ? '0' : places);
    },
  );
  if (next < list.length && !(values instanceof Dict) && !(next === 0 && isKeyed(values))) {
    throw new TemplateError('not all arguments converted during string formatting');
  }
  meter.text(out.length);
  return out;
}

/** What `%` takes for a mapping, of which nothing need be used. */
function isKeyed(value: Value): boolean {
  return value instanceof List || value instanceof Range || value instanceof Undefined;
}

function wholeNumber(value: Value): number {
  const number = asInteger(value);
  if (number === undefined) throw new TemplateError('* wants int');
  return number;
}

function percentField(
  meter: Meter,
  value: Value,
  type: string,
  flags: string,
  width: string,
  precision: string | undefined,
): string {
  const align = flags.includes('-') ? '<' : '';
  const sign = flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : '';
  const zero = flags.includes('0') && align === '' ? '0' : '';
  const alternate = flags.includes('#') ? '#' : '';
  const places = precision === undefined ? '' : `.${precision}`;
  switch (type) {
    case 's':
      return formatValue(meter, textOf(meter, value), `${align || '>'}${width}${places}`);
    case 'r':
    case 'a':
      return formatValue(meter, representationOf(meter, value), `${align || '>'}${width}${places}`);
    case 'c':
      if (typeof value === 'string' && lengthOf(value) === 1)
        return formatValue(meter, value, `${align || '>'}${width}`);
      return formatValue(meter, wholeNumber(value), `${align || '>'}${width}c`);
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o': {
      const number = asNumber(value);
      const isWhole = 'diu'.includes(type);
      if (number === undefined || (!isWhole && value instanceof Float)) {
        throw new TemplateError(`%${type} format: a real number is required, not ${typeName(value)}`);
      }
      if (places !== '')
        throw new TemplateError(`%${places}${type}: apr offers chat templates no precision of whole numbers`);
      const code = isWhole ? 'd' : type;
      return formatValue(
        meter,
        Math.trunc(number),
        `${align || (zero ? '' : '>')}${sign}${alternate}${zero}${width}${code}`,
      );
    }
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': {
      const number = asNumber(value);
      if (number === undefined) throw new TemplateError(`must be real number, not ${typeName(value)}`);
      const layout = `${align || (zero ? '' : '>')}${sign}${alternate}${zero}${width}${places}${type}`;
      return formatValue(meter, new Float(number), layout);
    }
    default:
      throw new TemplateError(`unsupported format character '${type}'`);
  }
}
