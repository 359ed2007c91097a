/** Texts of values: `str()` and `repr()`, and Python's notion of white space, lines and order. */

import type { Meter } from './meter.ts';
import {
  Callable,
  Dict,
  Float,
  Iterator,
  List,
  Namespace,
  Range,
  Tuple,
  typeName,
  Undefined,
  type Value,
  View,
} from './values.ts';

/** What `str.isspace` takes for white space. */
export const SPACE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';

/** `str(value)` */
export function textOf(meter: Meter, value: Value): string {
  if (typeof value === 'string') return value;
  return value instanceof Undefined ? '' : representationOf(meter, value);
}

/** `repr(value)`. Methods and generators come without their addresses. */
export function representationOf(meter: Meter, value: Value): string {
  meter.step();
  if (typeof value === 'string') return quoted(value);
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'number') return String(value);
  if (value instanceof Float) return floatText(value.value);
  const list = (items: readonly Value[]): string => items.map((item) => representationOf(meter, item)).join(', ');
  if (value instanceof List) return `[${list(value.items)}]`;
  if (value instanceof Tuple) return `(${list(value.items)}${value.items.length === 1 ? ',' : ''})`;
  if (value instanceof View) return `${value.name}([${list(value.items)}])`;
  if (value instanceof Dict || value instanceof Namespace) {
    const entries = value instanceof Dict ? value.entries() : [...value.attributes];
    const pairs = entries.map(([key, item]) => `${representationOf(meter, key)}: ${representationOf(meter, item)}`);
    return value instanceof Dict ? `{${pairs.join(', ')}}` : `<Namespace {${pairs.join(', ')}}>`;
  }
  if (value instanceof Range) {
    const { start, stop, step } = value;
    return step === 1 ? `range(${start}, ${stop})` : `range(${start}, ${stop}, ${step})`;
  }
  if (value instanceof Undefined) return 'Undefined';
  if (value instanceof Iterator) return '<generator object>';
  return value instanceof Callable ? `<function ${value.name}>` : `<${typeName(value)}>`;
}

/** `repr(float)`: the shortest digits that give the number back, with an exponent from 1e16 on and below 1e-4. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0';
  const [digits, power] = value.toExponential().split('e') as [string, string];
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) return `${digits}e${exponentText(exponent)}`;
  const sign = value < 0 ? '-' : '';
  const all = digits.replace(/[-.]/g, '');
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${all}`;
  const whole = all.slice(0, exponent + 1).padEnd(exponent + 1, '0');
  return `${sign}${whole}.${all.slice(exponent + 1) || '0'}`;
}

/** With a sign, and two digits at least. */
export function exponentText(exponent: number): string {
  return (exponent < 0 ? '-' : '+') + String(Math.abs(exponent)).padStart(2, '0');
}

const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\\': '\\\\' };

/**
 * What Python writes with an escape. The planes for private use are left as they are: what stands in for special tokens
 * of users is taken from there.
 */
const UNPRINTABLE = /[\\\p{Cc}\p{Cf}\p{Cs}\p{Cn}\p{Zl}\p{Zp}\p{Zs}\ue000-\uf8ff]/gu;

function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const body = text.replaceAll(UNPRINTABLE, (character) => {
    if (character === ' ') return character;
    const code = character.codePointAt(0)!;
    const hex = (width: number): string => code.toString(16).padStart(width, '0');
    return ESCAPES[character] ?? (code < 0x100 ? `\\x${hex(2)}` : code < 0x10000 ? `\\u${hex(4)}` : `\\U${hex(8)}`);
  });
  return quote + (quote === "'" ? body.replaceAll("'", "\\'") : body) + quote;
}

/** `text.strip(characters)`, at one end or at both; white space where no characters are given. */
export function strip(text: string, characters: string | undefined, name: 'strip' | 'lstrip' | 'rstrip'): string {
  let from = 0;
  let to = text.length;
  const set = characters === undefined ? undefined : new Set(characters);
  const isStripped = (letter: string): boolean => (set === undefined ? IS_SPACE.test(letter) : set.has(letter));
  if (name !== 'rstrip') {
    for (const letter of text) {
      if (!isStripped(letter)) break;
      from += letter.length;
    }
  }
  if (name !== 'lstrip') {
    while (to > from) {
      const last = text.codePointAt(to - 2);
      const size = to - 2 >= from && last !== undefined && last > 0xffff ? 2 : 1;
      if (!isStripped(text.slice(to - size, to))) break;
      to -= size;
    }
  }
  return text.slice(from, to);
}

const IS_SPACE = new RegExp(`^[${SPACE}]$`, 'u');

/** Words between white space. */
export function words(text: string): string[] {
  return text.match(new RegExp(`[^${SPACE}]+`, 'gu')) ?? [];
}

/** `text.splitlines()` */
export function lines(text: string, keepEnds = false): string[] {
  const found =
    text.match(/[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]*(?:\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]|$)/gu) ?? [];
  if (found.at(-1) === '') found.pop();
  return keepEnds ? found : found.map((line) => line.replace(/(?:\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])$/u, ''));
}

/** Order of texts by code points: JavaScript's own is by halves of them. */
export function compareText(one: string, other: string): number {
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at++) {
    const a = one.charCodeAt(at);
    const b = other.charCodeAt(at);
    if (a === b) continue;
    // Halves of characters beyond U+FFFF come after all others.
    const isHalf = (code: number): boolean => code >= 0xd800 && code < 0xe000;
    return isHalf(a) === isHalf(b) ? a - b : isHalf(a) ? 1 : -1;
  }
  return one.length - other.length;
}

/** Characters of a text, as Python counts them. */
export function lengthOf(text: string): number {
  let length = text.length;
  for (let at = 0; at < text.length - 1; at++) {
    const isFirst = (text.charCodeAt(at) & 0xfc00) === 0xd800;
    if (isFirst && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) length--;
  }
  return length;
}
