/** The tests of jinja2: what stands behind `is`. */

import { FILTERS } from './filters.ts';
import type { Runtime } from './interpreter.ts';
import { arithmetic, test as compareBy, contains, equals, isIterable } from './operators.ts';
import { textOf } from './text.ts';
import { isCased } from './text-methods.ts';
import {
  type Arguments,
  Attributes,
  asInteger,
  asNumber,
  bind,
  Callable,
  Dict,
  Float,
  List,
  Range,
  Tuple,
  Undefined,
  type Value,
} from './values.ts';

type Test = (runtime: Runtime, value: Value, args: Arguments) => boolean;

const comparison =
  (name: string, operator: string): Test =>
  ({ meter }, value, args) =>
    compareBy(meter, operator, value, bind(name, args, ['other'], 1)[0]!);

const rest =
  (name: string, divisor: number | undefined, expected: number): Test =>
  ({ meter }, value, args) =>
    equals(meter, arithmetic(meter, '%', value, divisor ?? bind(name, args, ['num'], 1)[0]!), expected);

/** Each test by all of its names. */
const NAMED: readonly (readonly [readonly string[], Test])[] = [
  [['defined'], (_, value) => !(value instanceof Undefined)],
  [['undefined'], (_, value) => value instanceof Undefined],
  [['none'], (_, value) => value === null],
  [['boolean'], (_, value) => typeof value === 'boolean'],
  [['true'], (_, value) => value === true],
  [['false'], (_, value) => value === false],
  [['string'], (_, value) => typeof value === 'string'],
  // `True` is a number in Python.
  [['number'], (_, value) => asNumber(value) !== undefined],
  [['integer'], (_, value) => typeof value !== 'boolean' && asInteger(value) !== undefined],
  [['float'], (_, value) => value instanceof Float],
  [['mapping'], (_, value) => value instanceof Dict],
  [['iterable'], (_, value) => isIterable(value)],
  [
    ['sequence'],
    (_, value) =>
      typeof value === 'string' ||
      value instanceof List ||
      value instanceof Tuple ||
      value instanceof Dict ||
      value instanceof Range ||
      value instanceof Undefined,
  ],
  [
    ['callable'],
    (_, value) =>
      value instanceof Callable ||
      // What is undefined has a call of its own, to say that it is undefined.
      value instanceof Undefined ||
      (value instanceof Attributes && value.call !== undefined),
  ],
  [['escaped'], () => false],
  [['lower'], ({ meter }, value) => isCased(textOf(meter, value), 'islower')],
  [['upper'], ({ meter }, value) => isCased(textOf(meter, value), 'isupper')],
  [['odd'], rest('odd', 2, 1)],
  [['even'], rest('even', 2, 0)],
  [['divisibleby'], rest('divisibleby', undefined, 0)],
  [['eq', 'equalto', '=='], comparison('eq', '==')],
  [['ne', '!='], comparison('ne', '!=')],
  [['lt', 'lessthan', '<'], comparison('lt', '<')],
  [['le', '<='], comparison('le', '<=')],
  [['gt', 'greaterthan', '>'], comparison('gt', '>')],
  [['ge', '>='], comparison('ge', '>=')],
  [['in'], ({ meter }, value, args) => contains(meter, bind('in', args, ['seq'], 1)[0]!, value)],
  [['sameas'], (_, value, args) => bind('sameas', args, ['other'], 1)[0] === value],
  [['filter'], (_, value) => typeof value === 'string' && FILTERS.has(value)],
  [['test'], (_, value) => typeof value === 'string' && TESTS.has(value)],
];

/** By name; `runtime.test` looks here. */
export const TESTS: ReadonlyMap<string, Test> = new Map(
  NAMED.flatMap(([names, predicate]) => names.map((name) => [name, predicate] as const)),
);
