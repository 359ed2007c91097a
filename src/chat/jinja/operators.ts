/** Python's operators. */

import { percentFormat } from './format.ts';
import type { Meter } from './meter.ts';
import { compareText, textOf } from './text.ts';
import {
  asInteger,
  asNumber,
  assertDefined,
  Dict,
  Float,
  Iterator,
  integer,
  List,
  Range,
  TemplateError,
  Tuple,
  typeName,
  Undefined,
  type Value,
  View,
} from './values.ts';

/**
 * What walking over a value gives.
 * @throws TemplateError for a value that cannot be walked
 */
export function iterate(meter: Meter, value: Value): readonly Value[] {
  const items = itemsOf(value);
  if (items === undefined) throw new TemplateError(`'${typeName(value)}' object is not iterable`);
  meter.items(items.length);
  return items;
}

function itemsOf(value: Value): readonly Value[] | undefined {
  if (typeof value === 'string') return Array.from(value);
  if (value instanceof List || value instanceof Tuple || value instanceof View) return value.items;
  if (value instanceof Dict) return value.keys();
  if (value instanceof Iterator) return value.take();
  if (value instanceof Range) return value.items();
  return value instanceof Undefined ? [] : undefined;
}

export function isIterable(value: Value): boolean {
  return value instanceof Iterator || itemsOf(value) !== undefined;
}

/** `one == other` */
export function equals(meter: Meter, one: Value, other: Value): boolean {
  meter.step();
  if (one === other) return true;
  const a = asNumber(one);
  const b = asNumber(other);
  if (a !== undefined || b !== undefined) return a === b;
  const listsEqual = (left: readonly Value[], right: readonly Value[]): boolean =>
    left.length === right.length && left.every((item, index) => equals(meter, item, right[index]!));
  if (one instanceof List) return other instanceof List && listsEqual(one.items, other.items);
  if (one instanceof Tuple) return other instanceof Tuple && listsEqual(one.items, other.items);
  if (one instanceof Range) return other instanceof Range && listsEqual(one.items(), other.items());
  if (one instanceof Dict && other instanceof Dict) {
    return (
      one.size === other.size &&
      one.entries().every(([key, item]) => other.has(key) && equals(meter, item, other.get(key)!))
    );
  }
  return one instanceof Undefined && other instanceof Undefined;
}

/** `one < other` as a negative number, `one > other` as a positive one. @throws TemplateError */
export function compare(meter: Meter, one: Value, other: Value, operator = '<'): number {
  meter.step();
  const a = asNumber(one);
  const b = asNumber(other);
  if (a !== undefined && b !== undefined) return a === b ? 0 : a < b ? -1 : a > b ? 1 : Number.NaN;
  if (typeof one === 'string' && typeof other === 'string') return compareText(one, other);
  const isPair = (one instanceof List && other instanceof List) || (one instanceof Tuple && other instanceof Tuple);
  if (isPair) {
    const length = Math.min(one.items.length, other.items.length);
    for (let index = 0; index < length; index++) {
      if (equals(meter, one.items[index]!, other.items[index]!)) continue;
      return compare(meter, one.items[index]!, other.items[index]!, operator);
    }
    return one.items.length - other.items.length;
  }
  assertDefined(one);
  assertDefined(other);
  throw new TemplateError(
    `'${operator}' not supported between instances of '${typeName(one)}' and '${typeName(other)}'`,
  );
}

/** `item in container` @throws TemplateError */
export function contains(meter: Meter, container: Value, item: Value): boolean {
  if (typeof container === 'string') {
    meter.text(container.length);
    if (typeof item === 'string') return container.includes(item);
    throw new TemplateError(`'in <string>' requires string as left operand, not ${typeName(item)}`);
  }
  if (container instanceof Dict) return container.has(item);
  if (itemsOf(container) === undefined) {
    throw new TemplateError(`argument of type '${typeName(container)}' is not iterable`);
  }
  return iterate(meter, container).some((other) => equals(meter, other, item));
}

/** Comparison by one of Python's operators. @throws TemplateError */
export function test(meter: Meter, operator: string, one: Value, other: Value): boolean {
  switch (operator) {
    case '==':
      return equals(meter, one, other);
    case '!=':
      return !equals(meter, one, other);
    case 'in':
      return contains(meter, other, one);
    case 'not in':
      return !contains(meter, other, one);
    case '<':
      return compare(meter, one, other, operator) < 0;
    case '<=':
      return compare(meter, one, other, operator) <= 0;
    case '>':
      return compare(meter, one, other, operator) > 0;
    case '>=':
      return compare(meter, one, other, operator) >= 0;
    default:
      throw new TemplateError(`unknown operator ${operator}`);
  }
}

/** `one operator other` @throws TemplateError */
export function arithmetic(meter: Meter, operator: string, one: Value, other: Value): Value {
  if (operator === '~') {
    const [left, right] = [textOf(meter, one), textOf(meter, other)];
    meter.text(left.length + right.length);
    return left + right;
  }
  if (operator === '%' && typeof one === 'string') return percentFormat(meter, one, other);
  assertDefined(one);
  assertDefined(other);
  const a = asNumber(one);
  const b = asNumber(other);
  if (a !== undefined && b !== undefined) {
    const isFloat = one instanceof Float || other instanceof Float;
    return calculate(operator, a, b, isFloat);
  }
  if (operator === '+') {
    if (typeof one === 'string' && typeof other === 'string') {
      meter.text(one.length + other.length);
      return one + other;
    }
    if (one instanceof List && other instanceof List) {
      meter.items(one.items.length + other.items.length);
      return new List([...one.items, ...other.items]);
    }
    if (one instanceof Tuple && other instanceof Tuple) {
      meter.items(one.items.length + other.items.length);
      return new Tuple([...one.items, ...other.items]);
    }
    if (typeof one === 'string') {
      throw new TemplateError(`can only concatenate str (not "${typeName(other)}") to str`);
    }
  }
  const product = operator === '*' ? (repeated(meter, one, other) ?? repeated(meter, other, one)) : undefined;
  if (product !== undefined) return product;
  throw new TemplateError(`unsupported operand type(s) for ${operator}: '${typeName(one)}' and '${typeName(other)}'`);
}

/** A text or list so many times. */
function repeated(meter: Meter, value: Value, times: Value): Value | undefined {
  const count = asInteger(times);
  if (count === undefined) return undefined;
  if (typeof value === 'string') {
    meter.text(value.length * Math.max(0, count));
    return value.repeat(Math.max(0, count));
  }
  if (!(value instanceof List || value instanceof Tuple)) return undefined;
  const length = value.items.length * Math.max(0, count);
  meter.items(length);
  const items = Array.from({ length }, (_, index) => value.items[index % value.items.length]!);
  return value instanceof List ? new List(items) : new Tuple(items);
}

function calculate(operator: string, a: number, b: number, isFloat: boolean): Value {
  const result = (value: number): Value => (isFloat ? new Float(value) : integer(value));
  switch (operator) {
    case '+':
      return result(a + b);
    case '-':
      return result(a - b);
    case '*':
      return result(a * b);
    case '/':
      if (b === 0) throw new TemplateError('division by zero');
      return new Float(a / b);
    case '//':
      if (b === 0) throw new TemplateError('division by zero');
      return result(Math.floor(a / b));
    case '%': {
      if (b === 0) throw new TemplateError('modulo by zero');
      // The result has the sign of the divisor.
      const rest = a % b;
      return result(rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest);
    }
    case '**': {
      if (a === 0 && b < 0) throw new TemplateError('0.0 cannot be raised to a negative power');
      const power = a ** b;
      if (!Number.isFinite(power)) throw new TemplateError(`${a} ** ${b} is no number that can be written`);
      return isFloat || b < 0 ? new Float(power) : integer(power);
    }
    default:
      throw new TemplateError(`unknown operator ${operator}`);
  }
}

/** Bounds of a slice; undefined where none is given. */
export interface SliceBounds {
  readonly start: number | undefined;
  readonly stop: number | undefined;
  readonly step: number | undefined;
}

/** `value[start:stop:step]`; undefined for a value that has no places. @throws TemplateError for a step of 0 */
export function slice(meter: Meter, value: Value, bounds: SliceBounds): Value | undefined {
  const isPlaced =
    typeof value === 'string' || value instanceof List || value instanceof Tuple || value instanceof Range;
  if (!isPlaced) return undefined;
  const all = iterate(meter, value);
  const { step = 1 } = bounds;
  const [from, to] = sliceEnds(all.length, bounds, step);
  if (value instanceof Range) {
    return new Range(value.start + from * value.step, value.start + to * value.step, value.step * step);
  }
  const items: Value[] = [];
  for (let at = from; step > 0 ? at < to : at > to; at += step) items.push(all[at]!);
  if (typeof value === 'string') return items.join('');
  return value instanceof Tuple ? new Tuple(items) : new List(items);
}

/** First place of a slice, and the one behind its last. */
function sliceEnds(length: number, { start, stop }: SliceBounds, step: number): readonly [number, number] {
  if (step === 0) throw new TemplateError('slice step cannot be zero');
  const [lowest, highest] = step > 0 ? [0, length] : [-1, length - 1];
  const clamp = (bound: number): number => Math.min(highest, Math.max(lowest, bound < 0 ? bound + length : bound));
  const from = start === undefined ? (step > 0 ? lowest : highest) : clamp(start);
  const to = stop === undefined ? (step > 0 ? highest : lowest) : clamp(stop);
  return [from, to];
}
