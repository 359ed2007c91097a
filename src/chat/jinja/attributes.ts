/** What stands behind a dot or in brackets: items, and the methods that Python's own types have. */

import type { Runtime } from './interpreter.ts';
import { compare, equals, iterate } from './operators.ts';
import { PYTHON_TEXT_METHODS, TEXT_METHODS } from './text-methods.ts';
import {
  type Arguments,
  Attributes,
  asInteger,
  assertDefined,
  bind,
  Callable,
  Dict,
  hashOf,
  isTrue,
  List,
  Namespace,
  Range,
  TemplateError,
  Tuple,
  typeName,
  Undefined,
  type Value,
  View,
} from './values.ts';

/** `object.name`: a method goes before an item of that name, as in jinja2. @throws TemplateError */
export function attributeOf(runtime: Runtime, object: Value, name: string): Value {
  assertDefined(object);
  const own = ownAttribute(runtime, object, name);
  if (own !== undefined) return own;
  if (object instanceof Dict) {
    const item = object.get(name);
    if (item !== undefined) return item;
  }
  return missing(object, name);
}

/** `object[key]`: an item goes before a method of that name. @throws TemplateError */
export function itemOf(runtime: Runtime, object: Value, key: Value): Value {
  assertDefined(object);
  const item = placed(runtime, object, key);
  if (item !== undefined) return item;
  const own = typeof key === 'string' ? ownAttribute(runtime, object, key) : undefined;
  return own === undefined ? missing(object, typeof key === 'string' ? key : undefined) : own;
}

function missing(object: Value, name: string | undefined): Undefined {
  const what = object === null ? 'None' : `${typeName(object)} object`;
  return new Undefined(name === undefined ? `${what} has no such element` : `'${what}' has no attribute '${name}'`);
}

function placed(runtime: Runtime, object: Value, key: Value): Value | undefined {
  if (object instanceof Dict) return isKey(key) ? object.get(key) : undefined;
  const at = asInteger(key);
  if (at === undefined) return undefined;
  if (typeof object === 'string') {
    runtime.meter.text(object.length);
    return Array.from(object).at(at);
  }
  if (object instanceof List || object instanceof Tuple) return object.items.at(at);
  return object instanceof Range ? object.items().at(at) : undefined;
}

/** Whether a dictionary can have such a key. */
function isKey(key: Value): boolean {
  try {
    hashOf(key);
    return true;
  } catch (error) {
    if (error instanceof TemplateError) return false;
    throw error;
  }
}

function ownAttribute(runtime: Runtime, object: Value, name: string): Value | undefined {
  if (typeof object === 'string') {
    const method = TEXT_METHODS.get(name);
    if (method !== undefined) return new Callable(name, (args) => method(runtime, object, args));
    if (PYTHON_TEXT_METHODS.has(name))
      throw new TemplateError(`str.${name} is a method of Python's that apr does not offer to chat templates`);
    return undefined;
  }
  if (object instanceof Dict) return methodOf(DICT_METHODS, runtime, object, name);
  if (object instanceof List) return methodOf(LIST_METHODS, runtime, object, name);
  if (object instanceof Tuple) {
    const at = object.names.indexOf(name);
    return at >= 0 ? object.items[at] : methodOf(TUPLE_METHODS, runtime, object, name);
  }
  if (object instanceof Namespace || object instanceof Attributes) return object.attributes.get(name);
  if (object instanceof Callable && name === 'name') return object.name;
  return undefined;
}

type Method<T> = (runtime: Runtime, object: T, args: Arguments) => Value;

function methodOf<T>(
  methods: ReadonlyMap<string, Method<T>>,
  runtime: Runtime,
  object: T,
  name: string,
): Value | undefined {
  const method = methods.get(name);
  return method === undefined ? undefined : new Callable(name, (args) => method(runtime, object, args));
}

const DICT_METHODS: ReadonlyMap<string, Method<Dict>> = new Map<string, Method<Dict>>([
  [
    'get',
    (_, dict, args) => {
      const [key, fallback = null] = bind('get', args, ['key', 'default'], 1);
      const value = dict.get(key!);
      return value === undefined ? fallback : value;
    },
  ],
  ['keys', (_, dict) => new View('dict_keys', dict.keys())],
  ['values', (_, dict) => new View('dict_values', dict.values())],
  ['items', (_, dict) => new View('dict_items', pairsOf(dict))],
  ['copy', (_, dict) => new Dict(dict.entries())],
  [
    'update',
    (runtime, dict, { positional, named }) => {
      for (const source of positional) for (const [key, value] of entriesOf(runtime, source)) dict.set(key, value);
      for (const [key, value] of named) dict.set(key, value);
      return null;
    },
  ],
  [
    'setdefault',
    (_, dict, args) => {
      const [key, fallback = null] = bind('setdefault', args, ['key', 'default'], 1);
      if (!dict.has(key!)) dict.set(key!, fallback);
      return dict.get(key!)!;
    },
  ],
  [
    'pop',
    (_, dict, args) => {
      const [key, fallback] = bind('pop', args, ['key', 'default'], 1);
      const value = dict.has(key!) ? dict.get(key!) : fallback;
      if (value === undefined) throw new TemplateError('pop() finds no such key');
      dict.delete(key!);
      return value;
    },
  ],
  [
    'clear',
    (_, dict) => {
      dict.clear();
      return null;
    },
  ],
  [
    'popitem',
    (_, dict) => {
      const last = dict.entries().at(-1);
      if (last === undefined) throw new TemplateError('popitem(): dictionary is empty');
      dict.delete(last[0]);
      return new Tuple([...last]);
    },
  ],
]);

/** Entries as tuples. */
export function pairsOf(dict: Dict): Tuple[] {
  return dict.entries().map(([key, value]) => new Tuple([key, value]));
}

/** Entries of a dictionary, or of a list of pairs. @throws TemplateError */
export function entriesOf(runtime: Runtime, source: Value): readonly (readonly [Value, Value])[] {
  if (source instanceof Dict) return source.entries();
  return iterate(runtime.meter, source).map((pair) => {
    const [key, value, ...rest] = iterate(runtime.meter, pair);
    if (key === undefined || value === undefined || rest.length > 0) {
      throw new TemplateError('a dictionary is made of pairs of a key and a value');
    }
    return [key, value] as const;
  });
}

const countIn = (runtime: Runtime, { items }: { readonly items: readonly Value[] }, args: Arguments): Value => {
  const [wanted] = bind('count', args, ['value'], 1);
  return items.filter((item) => equals(runtime.meter, item, wanted!)).length;
};

const indexIn = (runtime: Runtime, { items }: { readonly items: readonly Value[] }, args: Arguments): Value => {
  const [wanted] = bind('index', args, ['value'], 1);
  const at = items.findIndex((item) => equals(runtime.meter, item, wanted!));
  if (at < 0) throw new TemplateError('index(): the value is not in the list');
  return at;
};

const TUPLE_METHODS: ReadonlyMap<string, Method<Tuple>> = new Map<string, Method<Tuple>>([
  ['count', countIn],
  ['index', indexIn],
]);

/** A change of a list that gives `None`. */
function change(name: string, names: readonly string[], apply: (list: List, values: (Value | undefined)[]) => void) {
  return [
    name,
    ({ meter }: Runtime, list: List, args: Arguments): Value => {
      apply(list, bind(name, args, names, names.length));
      meter.items(list.items.length);
      return null;
    },
  ] as const;
}

const LIST_METHODS: ReadonlyMap<string, Method<List>> = new Map<string, Method<List>>([
  ['count', countIn],
  ['index', indexIn],
  ['copy', (_, list) => new List([...list.items])],
  change('append', ['value'], (list, [value]) => list.items.push(value!)),
  change('insert', ['index', 'value'], (list, [index, value]) => list.items.splice(asInteger(index!) ?? 0, 0, value!)),
  change('clear', [], (list) => list.items.splice(0)),
  change('reverse', [], (list) => list.items.reverse()),
  [
    'extend',
    ({ meter }, list, args) => {
      const [more] = bind('extend', args, ['values'], 1);
      const values = [...iterate(meter, more!)];
      meter.items(list.items.length + values.length);
      list.items.push(...values);
      return null;
    },
  ],
  [
    'pop',
    (_, list, args) => {
      const [index = -1] = bind('pop', args, ['index']);
      const at = asInteger(index);
      const place = at === undefined ? -1 : at < 0 ? at + list.items.length : at;
      if (place < 0 || place >= list.items.length) throw new TemplateError('pop index out of range');
      return list.items.splice(place, 1)[0]!;
    },
  ],
  [
    'remove',
    ({ meter }, list, args) => {
      const [value] = bind('remove', args, ['value'], 1);
      const at = list.items.findIndex((item) => equals(meter, item, value!));
      if (at < 0) throw new TemplateError('remove(): the value is not in the list');
      list.items.splice(at, 1);
      return null;
    },
  ],
  [
    'sort',
    ({ meter }, list, args) => {
      if (args.positional.length > 0 || args.named.has('key')) throw new TemplateError('sort() takes no key here');
      const sign = isTrue(args.named.get('reverse') ?? false) ? -1 : 1;
      list.items.sort((one, other) => sign * compare(meter, one, other));
      return null;
    },
  ],
]);
