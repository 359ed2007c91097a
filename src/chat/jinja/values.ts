/** Values of a template in the manner of Python's, since templates are written for Python's jinja2. */

/** `str`, `int`, `bool` and `None` are JavaScript's own values; a JavaScript number is a whole one. */
export type Value =
  | string
  | number
  | boolean
  | null
  | Float
  | Undefined
  | List
  | Tuple
  | View
  | Iterator
  | Range
  | Dict
  | Namespace
  | Callable
  | Attributes;

/** A mistake of the template, with the sentence that Python has for it. */
export class TemplateError extends Error {}

export class Float {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

/** What a name or a key that is not there comes to: empty where it is printed or walked, an error where it is used. */
export class Undefined {
  readonly reason: string;
  constructor(reason: string) {
    this.reason = reason;
  }
}

export class List {
  readonly items: Value[];
  constructor(items: Value[]) {
    this.items = items;
  }
}

export class Tuple {
  readonly items: readonly Value[];
  /** Names of the items, for tuples that have some. */
  readonly names: readonly string[];
  constructor(items: readonly Value[], names: readonly string[] = []) {
    this.items = items;
    this.names = names;
  }
}

/** `dict.keys()` and its like: has a length, but no places. */
export class View {
  readonly name: string;
  readonly items: readonly Value[];
  constructor(name: string, items: readonly Value[]) {
    this.name = name;
    this.items = items;
  }
}

/** What most filters give: true whatever is in it, without length or places, and empty once it has been walked. */
export class Iterator {
  #items: readonly Value[];
  constructor(items: readonly Value[]) {
    this.#items = items;
  }

  take(): readonly Value[] {
    const items = this.#items;
    this.#items = [];
    return items;
  }

  /** The first one, which leaves the rest. */
  next(): Value | undefined {
    const [first] = this.#items;
    this.#items = this.#items.slice(1);
    return first;
  }
}

export class Range {
  readonly start: number;
  readonly stop: number;
  readonly step: number;
  constructor(start: number, stop: number, step: number) {
    this.start = start;
    this.stop = stop;
    this.step = step;
  }

  get length(): number {
    return Math.max(0, Math.ceil((this.stop - this.start) / this.step));
  }

  items(): Value[] {
    return Array.from({ length: this.length }, (_, index) => this.start + index * this.step);
  }
}

export class Dict {
  readonly #entries = new Map<string, [Value, Value]>();

  constructor(entries: Iterable<readonly [Value, Value]> = []) {
    for (const [key, value] of entries) this.set(key, value);
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: Value): Value | undefined {
    return this.#entries.get(hashOf(key))?.[1];
  }

  has(key: Value): boolean {
    return this.#entries.has(hashOf(key));
  }

  /** Of equal keys the first one stays, as in Python. */
  set(key: Value, value: Value): void {
    const hash = hashOf(key);
    const entry = this.#entries.get(hash);
    if (entry === undefined) this.#entries.set(hash, [key, value]);
    else entry[1] = value;
  }

  delete(key: Value): boolean {
    return this.#entries.delete(hashOf(key));
  }

  clear(): void {
    this.#entries.clear();
  }

  entries(): (readonly [Value, Value])[] {
    return [...this.#entries.values()];
  }

  keys(): Value[] {
    return this.entries().map(([key]) => key);
  }

  values(): Value[] {
    return this.entries().map(([, value]) => value);
  }
}

/** `namespace(…)`: what a template may write to from within a loop. */
export class Namespace {
  readonly attributes: Map<string, Value>;
  constructor(attributes: Map<string, Value>) {
    this.attributes = attributes;
  }
}

/** An object of jinja2's own, such as `loop`: nothing but its attributes, and what a call of it gives. */
export class Attributes {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, Value>;
  readonly call: ((args: Arguments) => Value) | undefined;
  constructor(name: string, attributes: ReadonlyMap<string, Value>, call?: (args: Arguments) => Value) {
    this.name = name;
    this.attributes = attributes;
    this.call = call;
  }
}

/** Arguments of a call. */
export interface Arguments {
  readonly positional: readonly Value[];
  readonly named: ReadonlyMap<string, Value>;
}

export class Callable {
  readonly name: string;
  readonly call: (args: Arguments) => Value;
  constructor(name: string, call: (args: Arguments) => Value) {
    this.name = name;
    this.call = call;
  }
}

/**
 * The arguments in the order of these parameters, undefined where one is not given.
 * @throws TemplateError for one too many, an unknown name, one given twice, or one of the first `required` missing
 */
export function bind(
  what: string,
  { positional, named }: Arguments,
  names: readonly string[],
  required = 0,
): (Value | undefined)[] {
  if (positional.length > names.length) {
    throw new TemplateError(`${what}() takes at most ${names.length} arguments, ${positional.length} are given`);
  }
  const bound: (Value | undefined)[] = names.map((_, index) => positional[index]);
  for (const [name, value] of named) {
    const index = names.indexOf(name);
    if (index < 0) throw new TemplateError(`${what}() got an unexpected keyword argument '${name}'`);
    if (bound[index] !== undefined) throw new TemplateError(`${what}() got multiple values for argument '${name}'`);
    bound[index] = value;
  }
  for (let index = 0; index < required; index++) {
    if (bound[index] === undefined) throw new TemplateError(`${what}() is missing its argument '${names[index]}'`);
  }
  return bound;
}

/** What Python says of the value's type. */
export function typeName(value: Value): string {
  if (value === null) return 'NoneType';
  if (typeof value === 'string') return 'str';
  if (typeof value === 'number') return 'int';
  if (typeof value === 'boolean') return 'bool';
  if (value instanceof Float) return 'float';
  if (value instanceof List) return 'list';
  if (value instanceof Tuple) return 'tuple';
  if (value instanceof Dict) return 'dict';
  if (value instanceof Iterator) return 'generator';
  if (value instanceof Range) return 'range';
  if (value instanceof View || value instanceof Attributes) return value.name;
  if (value instanceof Undefined) return 'Undefined';
  return value instanceof Namespace ? 'Namespace' : 'function';
}

/** `bool(value)` */
export function isTrue(value: Value): boolean {
  if (value === null || typeof value !== 'object') return Boolean(value);
  if (value instanceof Float) return value.value !== 0;
  if (value instanceof List || value instanceof Tuple || value instanceof View) return value.items.length > 0;
  if (value instanceof Dict) return value.size > 0;
  if (value instanceof Range) return value.length > 0;
  return !(value instanceof Undefined);
}

/** A number for arithmetic: `True` is 1. */
export function asNumber(value: Value): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value === 'boolean') return Number(value);
  return value instanceof Float ? value.value : undefined;
}

/** The number of an `int` or `bool`. */
export function asInteger(value: Value): number | undefined {
  return value instanceof Float ? undefined : asNumber(value);
}

/** @throws TemplateError for a number whose neighbours cannot be told apart any more */
export function integer(value: number): number {
  if (Number.isSafeInteger(value)) return value === 0 ? 0 : value;
  throw new TemplateError(`${value} is beyond 2^53, up to which whole numbers are exact`);
}

/** Throws what jinja2 has to say about a value that is not there. */
export function assertDefined(value: Value): void {
  if (value instanceof Undefined) throw new TemplateError(value.reason);
}

/**
 * A text that equal keys of a dictionary have in common.
 * @throws TemplateError for what cannot be a key
 */
export function hashOf(key: Value): string {
  if (typeof key === 'string') return `s${key}`;
  if (key === null) return 'None';
  const number = asNumber(key);
  if (number !== undefined) return `n${number}`;
  if (key instanceof Tuple) return `t${JSON.stringify(key.items.map(hashOf))}`;
  if (key instanceof Undefined) return 'Undefined';
  throw new TemplateError(`unhashable type: '${typeName(key)}'`);
}
