/** Filters on lists and dictionaries. */

import { attributeOf, itemOf, pairsOf } from './attributes.ts';
import type { FilterFunction } from './filters.ts';
import type { Runtime } from './interpreter.ts';
import { arithmetic, compare, equals, iterate } from './operators.ts';
import { textOf } from './text.ts';
import { expectInteger } from './text-methods.ts';
import {
  type Arguments,
  asInteger,
  bind,
  Dict,
  hashOf,
  Iterator,
  isTrue,
  List,
  Range,
  TemplateError,
  Tuple,
  typeName,
  Undefined,
  type Value,
  View,
} from './values.ts';

/** Reads `a.b.0` of an item; the whole item where no attribute is named. */
function getter(runtime: Runtime, attribute: Value, fallback: Value = null): (item: Value) => Value {
  if (attribute === null) return (item) => item;
  const path =
    typeof attribute === 'string'
      ? attribute.split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : part))
      : [expectInteger('attribute', attribute)];
  return (item) => {
    let value = item;
    for (const part of path) {
      value = itemOf(runtime, value, part);
      if (fallback !== null && value instanceof Undefined) value = fallback;
    }
    return value;
  };
}

const ignoreCase = (value: Value): Value => (typeof value === 'string' ? value.toLowerCase() : value);

/** What an item is sorted or grouped by. */
function keyOf(runtime: Runtime, attribute: Value, isCaseSensitive: Value, fallback: Value = null) {
  const get = getter(runtime, attribute, fallback);
  return isTrue(isCaseSensitive) ? get : (item: Value): Value => ignoreCase(get(item));
}

function sorted<T>(items: readonly T[], order: (one: T, other: T) => number, isReversed: Value): T[] {
  const sign = isTrue(isReversed) ? -1 : 1;
  return [...items].sort((one, other) => sign * order(one, other));
}

/** Order by several keys. */
function compareKeys({ meter }: Runtime, one: readonly Value[], other: readonly Value[]): number {
  const at = one.findIndex((key, index) => !equals(meter, key, other[index]!));
  return at < 0 ? 0 : compare(meter, one[at]!, other[at]!);
}

function sort(runtime: Runtime, value: Value, args: Arguments): Value {
  const names = ['reverse', 'case_sensitive', 'attribute'];
  const [isReversed = false, isCaseSensitive = false, attribute = null] = bind('sort', args, names);
  const parts: readonly Value[] = typeof attribute === 'string' ? attribute.split(',') : [attribute];
  const keys = parts.map((part) => keyOf(runtime, part, isCaseSensitive));
  const items = iterate(runtime.meter, value).map((item) => ({ item, keys: keys.map((key) => key(item)) }));
  const order = sorted(items, (one, other) => compareKeys(runtime, one.keys, other.keys), isReversed);
  return new List(order.map(({ item }) => item));
}

function extreme(name: 'min' | 'max'): FilterFunction {
  return (runtime, value, args) => {
    const [isCaseSensitive = false, attribute = null] = bind(name, args, ['case_sensitive', 'attribute']);
    const key = keyOf(runtime, attribute, isCaseSensitive);
    const items = iterate(runtime.meter, value);
    if (items.length === 0) return new Undefined('No aggregated item, sequence was empty.');
    return items.reduce((best, item) => {
      const order = compare(runtime.meter, key(item), key(best));
      return (name === 'min' ? order < 0 : order > 0) ? item : best;
    });
  };
}

/** `select`, `reject`, and the same by an attribute. */
function choosing(name: string, isWanted: boolean, hasAttribute: boolean): FilterFunction {
  return (runtime, value, { positional, named }) => {
    // What is false comes to nothing, even if it could not be walked.
    if (!isTrue(value)) return new Iterator([]);
    const rest = [...positional];
    const attribute = hasAttribute ? rest.shift() : null;
    if (attribute === undefined) throw new TemplateError(`${name} is missing the name of an attribute`);
    const get = getter(runtime, attribute);
    const [test, ...operands] = rest;
    const isChosen = (item: Value): boolean =>
      test === undefined
        ? isTrue(get(item))
        : runtime.test(testName(name, test), get(item), { positional: operands, named });
    return new Iterator(iterate(runtime.meter, value).filter((item) => isChosen(item) === isWanted));
  };
}

function testName(filter: string, value: Value): string {
  if (typeof value === 'string') return value;
  throw new TemplateError(`${filter} takes the name of a test, not ${typeName(value)}`);
}

function map(runtime: Runtime, value: Value, { positional, named }: Arguments): Value {
  if (!isTrue(value)) return new Iterator([]);
  let apply: (item: Value) => Value;
  const [name, ...rest] = positional;
  if (name === undefined && named.has('attribute')) {
    const [attribute, fallback = null] = bind('map', { positional, named }, ['attribute', 'default']);
    apply = getter(runtime, attribute!, fallback);
  } else if (typeof name === 'string') {
    apply = (item) => runtime.filter(name, item, { positional: rest, named });
  } else throw new TemplateError('map requires a filter argument');
  return new Iterator(iterate(runtime.meter, value).map(apply));
}

function unique(runtime: Runtime, value: Value, args: Arguments): Value {
  const [isCaseSensitive = false, attribute = null] = bind('unique', args, ['case_sensitive', 'attribute']);
  const key = keyOf(runtime, attribute, isCaseSensitive);
  const seen = new Set<string>();
  const isNew = (item: Value): boolean => {
    const hash = hashOf(key(item));
    const known = seen.has(hash);
    seen.add(hash);
    return !known;
  };
  return new Iterator(iterate(runtime.meter, value).filter(isNew));
}

function groupby(runtime: Runtime, value: Value, args: Arguments): Value {
  const names = ['attribute', 'default', 'case_sensitive'];
  const [attribute, fallback = null, isCaseSensitive = false] = bind('groupby', args, names, 1);
  const key = keyOf(runtime, attribute!, isCaseSensitive, fallback);
  const own = getter(runtime, attribute!, fallback);
  const { meter } = runtime;
  const items = iterate(meter, value).map((item) => ({ item, key: key(item) }));
  const groups: { readonly key: Value; readonly items: Value[] }[] = [];
  for (const entry of sorted(items, (one, other) => compare(meter, one.key, other.key), false)) {
    const last = groups.at(-1);
    if (last !== undefined && equals(meter, last.key, entry.key)) last.items.push(entry.item);
    else groups.push({ key: entry.key, items: [entry.item] });
  }
  return new List(groups.map((group) => new Tuple([own(group.items[0]!), new List(group.items)], ['grouper', 'list'])));
}

function dictsort(runtime: Runtime, value: Value, args: Arguments): Value {
  const [isCaseSensitive = false, by = 'key', isReversed = false] = bind('dictsort', args, [
    'case_sensitive',
    'by',
    'reverse',
  ]);
  if (by !== 'key' && by !== 'value') throw new TemplateError('You can only sort by either "key" or "value"');
  if (!(value instanceof Dict)) throw new TemplateError(`dictsort takes a dictionary, not ${typeName(value)}`);
  const key = (pair: Tuple): Value => {
    const part = pair.items[by === 'key' ? 0 : 1]!;
    return isTrue(isCaseSensitive) ? part : ignoreCase(part);
  };
  return new List(sorted(pairsOf(value), (one, other) => compare(runtime.meter, key(one), key(other)), isReversed));
}

/** Rows of so many items. */
function batch({ meter }: Runtime, value: Value, args: Arguments): Value {
  const [size, fill = null] = bind('batch', args, ['linecount', 'fill_with'], 1);
  const length = expectInteger('batch', size);
  if (length < 1) throw new TemplateError(`batch() takes a number from 1, not ${length}`);
  const items = iterate(meter, value);
  const rows: List[] = [];
  for (let at = 0; at < items.length; at += length) rows.push(new List(items.slice(at, at + length)));
  const last = rows.at(-1);
  if (last !== undefined && fill !== null) {
    meter.items(length);
    while (last.items.length < length) last.items.push(fill);
  }
  return new Iterator(rows);
}

/** So many columns. */
function columns({ meter }: Runtime, value: Value, args: Arguments): Value {
  const [slices, fill = null] = bind('slice', args, ['slices', 'fill_with'], 1);
  const number = expectInteger('slice', slices);
  if (number < 1) throw new TemplateError(`slice() takes a number from 1, not ${number}`);
  meter.items(number);
  const items = iterate(meter, value);
  const size = Math.floor(items.length / number);
  const longer = items.length % number;
  const out: List[] = [];
  for (let index = 0, at = 0; index < number; index++) {
    const end = at + size + (index < longer ? 1 : 0);
    const column = items.slice(at, end);
    if (fill !== null && index >= longer) column.push(fill);
    out.push(new List([...column]));
    at = end;
  }
  return new Iterator(out);
}

function sum(runtime: Runtime, value: Value, args: Arguments): Value {
  const [attribute = null, start = 0] = bind('sum', args, ['attribute', 'start']);
  if (typeof start === 'string') throw new TemplateError("sum() can't sum strings [use ''.join(seq) instead]");
  const get = getter(runtime, attribute);
  return iterate(runtime.meter, value).reduce<Value>(
    (total, item) => arithmetic(runtime.meter, '+', total, get(item)),
    start,
  );
}

function join(runtime: Runtime, value: Value, args: Arguments): Value {
  const [separator = '', attribute = null] = bind('join', args, ['d', 'attribute']);
  const { meter } = runtime;
  const get = getter(runtime, attribute);
  const mark = textOf(meter, separator);
  const texts: string[] = [];
  let length = 0;
  for (const item of iterate(meter, value)) {
    const text = textOf(meter, get(item));
    length += text.length + mark.length;
    meter.bound(length);
    texts.push(text);
  }
  meter.text(length);
  return texts.join(mark);
}

function reverse({ meter }: Runtime, value: Value): Value {
  if (typeof value === 'string') return Array.from(value).reverse().join('');
  const items = [...iterate(meter, value)].reverse();
  return value instanceof Iterator ? new List(items) : new Iterator(items);
}

function first({ meter }: Runtime, value: Value): Value {
  const item = value instanceof Iterator ? value.next() : iterate(meter, value)[0];
  return item === undefined ? new Undefined('No first item, sequence was empty.') : item;
}

function last({ meter }: Runtime, value: Value): Value {
  const hasPlaces =
    typeof value === 'string' ||
    value instanceof List ||
    value instanceof Tuple ||
    value instanceof Dict ||
    value instanceof View ||
    value instanceof Range;
  if (!hasPlaces) throw new TemplateError(`'${typeName(value)}' object is not reversible`);
  const item = iterate(meter, value).at(-1);
  return item === undefined ? new Undefined('No last item, sequence was empty.') : item;
}

function items(_: Runtime, value: Value): Value {
  if (value instanceof Undefined) return new Iterator([]);
  if (value instanceof Dict) return new Iterator(pairsOf(value));
  throw new TemplateError('Can only get item pairs from a mapping.');
}

function attribute(runtime: Runtime, value: Value, args: Arguments): Value {
  const [name] = bind('attr', args, ['name'], 1);
  if (typeof name !== 'string') throw new TemplateError('attr takes the name of an attribute');
  // An item of that name is none.
  const isItem = value instanceof Dict && asInteger(name) === undefined && value.has(name);
  const found = attributeOf(runtime, value, name);
  return isItem && found === value.get(name) ? new Undefined(`'dict object' has no attribute '${name}'`) : found;
}

export const LIST_FILTERS: readonly (readonly [string, FilterFunction])[] = [
  ['attr', attribute],
  ['batch', batch],
  ['dictsort', dictsort],
  ['first', first],
  ['groupby', groupby],
  ['items', items],
  ['join', join],
  ['last', last],
  ['map', map],
  ['max', extreme('max')],
  ['min', extreme('min')],
  ['reject', choosing('reject', false, false)],
  ['rejectattr', choosing('rejectattr', false, true)],
  ['reverse', reverse],
  ['select', choosing('select', true, false)],
  ['selectattr', choosing('selectattr', true, true)],
  ['slice', columns],
  ['sort', sort],
  ['sum', sum],
  ['unique', unique],
];
