/**
 * Jinja for chat templates: `@huggingface/jinja` with what it lacks. A template comes from a model file and is hostile
 * until it has rendered: steps, strings and lists are bounded. The version is pinned, since this class counts on every
 * expression passing through `evaluate`.
 */

import * as library from '@huggingface/jinja';
import { escapeHtml, format, strip, toText, type Value } from './python.ts';
import { strftime } from './strftime.ts';

/** Evaluated expressions and statements of one rendering; a message takes about a hundred. */
const MAX_STEPS = 500_000;
/** What one item of a loop counts before its body is evaluated: the library makes a scope for each. */
const ITEM_STEPS = 4;
const MAX_STRING = 2 ** 26;
const MAX_ITEMS = 1_000_000;

/** A node of the syntax tree. */
interface Node {
  readonly type: string;
}

/** A call `object.name(…)` as the parser writes it. */
interface MethodCall extends Node {
  readonly callee: Node & {
    readonly computed?: boolean;
    readonly object: Node;
    readonly property: { value?: unknown };
  };
  readonly args: readonly Node[];
}

/** `operand | filter`, or `operand | filter(…)`. */
interface FilterCall extends Node {
  readonly operand: Node;
  readonly filter: Node & {
    readonly value?: unknown;
    readonly callee?: Node & { value?: unknown };
    args?: readonly Node[];
  };
}

/** A loop; with a condition, what it runs over is within a selection. */
interface ForLoop extends Node {
  readonly iterable: Node & { readonly lhs?: Node };
  readonly body: readonly Node[];
}

/** A value that is known already, in place of a node that would be evaluated. */
interface Resolved extends Node {
  readonly value: Value;
}

interface Environment {
  set(name: string, value: unknown): void;
}

interface Interpreter {
  run(program: Node): Value;
  evaluate(node: Node | undefined, environment: Environment): Value;
  evaluateBlock(statements: readonly Node[], environment: Environment): Value;
}

// The package's own declarations import each other without file extensions, which TypeScript does not resolve here.
const { Environment, Interpreter, parse, tokenize } = library as unknown as {
  readonly Environment: new () => Environment;
  readonly Interpreter: new (environment: Environment) => Interpreter;
  readonly parse: (tokens: unknown) => Node;
  readonly tokenize: (source: string, options: { lstrip_blocks: boolean; trim_blocks: boolean }) => unknown;
};

/** Raised by the template itself through `raise_exception`. */
export class TemplateRefusal extends Error {}

/** A template that exceeds its bounds. */
export class TemplateLimit extends Error {}

/** @throws Error when the template cannot be parsed */
export function parseTemplate(template: string): Node {
  return parse(tokenize(template, { lstrip_blocks: true, trim_blocks: true }));
}

/**
 * Whether the template asks its caller for one of these variables: it reads one, and does not merely set it for itself.
 */
export function asksFor(program: Node, names: readonly string[]): boolean {
  const read = new Set<unknown>();
  const set = new Set<unknown>();
  const tested = new Set<unknown>();
  const pending: unknown[] = [program];
  while (pending.length > 0) {
    const node = pending.pop();
    if (typeof node !== 'object' || node === null) continue;
    if (node instanceof Map) {
      pending.push(...[...node].flat());
      continue;
    }
    const { type, value, operand, assignee, loopvar, computed, property, ...rest } = node as Record<string, unknown>;
    const nameOf = (other: unknown): unknown => (other as { value?: unknown } | undefined)?.value;
    if (type === 'Identifier') read.add(value);
    if (type === 'Set') set.add(nameOf(assignee));
    if (type === 'For') set.add(nameOf(loopvar));
    if (type === 'TestExpression') tested.add(nameOf(operand));
    // `message.thinking` is a property, no variable.
    pending.push(value, operand, computed === true ? property : undefined, ...Object.values(rest));
  }
  return names.some((name) => read.has(name) && (!set.has(name) || tested.has(name)));
}

/**
 * Text of a parsed template.
 * @throws TemplateRefusal, TemplateLimit, Error
 */
export function renderTemplate(program: Node, variables: Readonly<Record<string, unknown>>, now: Date): string {
  const environment = new Environment();
  const globals = {
    true: true,
    false: false,
    none: null,
    True: true,
    False: false,
    None: null,
    raise_exception: (message: unknown) => {
      throw new TemplateRefusal(String(message));
    },
    range: boundedRange,
    strftime_now: (format: unknown) => strftime(now, String(format)),
    ...variables,
  };
  for (const [name, value] of Object.entries(globals)) environment.set(name, value);
  return String(new BoundedInterpreter(environment).run(program).value);
}

/** Statements have no text of their own; expressions that come to nothing are `None`. */
const STATEMENTS: ReadonlySet<string> = new Set([
  'Set',
  'If',
  'For',
  'Macro',
  'Comment',
  'CallStatement',
  'FilterStatement',
]);

class BoundedInterpreter extends Interpreter {
  #steps = 0;
  /** What the loop that is about to begin runs over. */
  #iterable: Node | undefined;
  readonly #loopBodies = new WeakSet<readonly Node[]>();
  /** Text of an iteration that `continue` or `break` cut short. */
  #partial = '';

  override evaluate(node: Node | undefined, environment: Environment): Value {
    this.#count(1);
    if (node?.type === 'Resolved') return (node as Resolved).value;
    const isIterable = node !== undefined && node === this.#iterable;
    let value: Value;
    if (node?.type === 'For') value = this.#loop(node as ForLoop, environment);
    else value = (node && this.#added(node, environment)) ?? super.evaluate(node, environment);
    // `first` and `last` of an empty list are undefined.
    if (value === undefined) return value;
    if (typeof value.value === 'string' && value.value.length > MAX_STRING) {
      throw new TemplateLimit(`it makes a text of more than ${MAX_STRING} characters`);
    }
    if (Array.isArray(value.value) && value.value.length > MAX_ITEMS) {
      throw new TemplateLimit(`it makes a list of more than ${MAX_ITEMS} items`);
    }
    if (!isIterable) return value;
    const items = this.#items(value);
    if (Array.isArray(items.value)) this.#count(items.value.length * ITEM_STEPS);
    return items;
  }

  /** As the library has it, but with Python's texts of values, and with what stands before a `break`. */
  override evaluateBlock(statements: readonly Node[], environment: Environment): Value {
    let text = '';
    const isLoop = this.#loopBodies.has(statements);
    for (const statement of statements) {
      try {
        const value = this.evaluate(statement, environment);
        if (value === undefined || value.type === 'UndefinedValue') continue;
        if (value.type === 'NullValue' && STATEMENTS.has(statement.type)) continue;
        text += toText(value);
      } catch (error) {
        const name = (error as Error | undefined)?.constructor?.name;
        if (name !== 'BreakControl' && name !== 'ContinueControl') throw error;
        text += this.#partial;
        this.#partial = '';
        if (isLoop && name === 'ContinueControl') break;
        this.#partial = text;
        throw error;
      }
      if (text.length > MAX_STRING) throw new TemplateLimit(`it makes a text of more than ${MAX_STRING} characters`);
    }
    return this.#text(text);
  }

  #loop(node: ForLoop, environment: Environment): Value {
    const { iterable, body } = node;
    this.#iterable = iterable.type === 'SelectExpression' ? (iterable.lhs ?? iterable) : iterable;
    this.#loopBodies.add(body);
    const value = super.evaluate(node, environment);
    if (this.#partial === '') return value;
    const last = this.#partial;
    this.#partial = '';
    return this.#text(toText(value) + last);
  }

  #count(steps: number): void {
    this.#steps += steps;
    if (this.#steps > MAX_STEPS) throw new TemplateLimit(`it takes more than ${MAX_STEPS} steps`);
  }

  #text(value: string): Value {
    return super.evaluate({ type: 'StringLiteral', value } as Node, new Environment());
  }

  #number(value: number): Value {
    return super.evaluate({ type: 'IntegerLiteral', value } as Node, new Environment());
  }

  #list(values: readonly Value[]): Value {
    const items = values.map((value) => ({ type: 'Resolved', value }));
    return super.evaluate({ type: 'ArrayLiteral', value: items } as Node, new Environment());
  }

  /** What a loop runs over: the letters of a text, and nothing where there is nothing. */
  #items(value: Value): Value {
    if (value.type === 'UndefinedValue') return this.#list([]);
    return value.type === 'StringValue' ? this.#list(Array.from(toText(value), (letter) => this.#text(letter))) : value;
  }

  /** Filters and methods that the library lacks or has wrong; undefined for everything else. */
  #added(node: Node, environment: Environment): Value | undefined {
    if (node.type === 'FilterExpression') {
      const { operand, filter } = node as FilterCall;
      const name = filter.type === 'CallExpression' ? filter.callee?.value : filter.value;
      if (!FILTERS.has(name)) return undefined;
      const value = this.evaluate(operand, environment);
      return (
        this.#filter(String(name), value, filter.args ?? [], environment) ??
        super.evaluate({ ...node, operand: { type: 'Resolved', value } } as Node, environment)
      );
    }
    if (node.type !== 'CallExpression') return undefined;
    const { callee, args } = node as MethodCall;
    const name = callee.type === 'MemberExpression' && callee.computed !== true ? callee.property.value : undefined;
    if (!METHODS.has(name)) return undefined;
    const object = this.evaluate(callee.object, environment);
    const resolved = { ...node, callee: { ...callee, object: { type: 'Resolved', value: object } } };
    if (object.type !== 'StringValue') return super.evaluate(resolved as Node, environment);
    return (
      this.#method(String(name), toText(object), args, environment) ?? super.evaluate(resolved as Node, environment)
    );
  }

  #filter(name: string, value: Value, args: readonly Node[], environment: Environment): Value | undefined {
    const [first, ...rest] = args;
    const isText = value.type === 'StringValue';
    const items = value.type === 'ArrayValue' ? (value.value as readonly Value[]) : undefined;
    switch (name) {
      case 'string':
        return this.#text(toText(value));
      case 'capitalize': {
        if (!isText) return undefined;
        const [letter = '', ...others] = Array.from(toText(value));
        return this.#text(letter.toUpperCase() + others.join('').toLowerCase());
      }
      case 'e':
      case 'escape':
        return this.#text(escapeHtml(toText(value)));
      case 'trim':
        if (!isText || first === undefined) return undefined;
        return this.#text(strip(toText(value), toText(this.evaluate(first, environment)), 'strip'));
      case 'list':
        return isText || value.type === 'UndefinedValue' ? this.#items(value) : undefined;
      case 'reverse':
        return isText ? this.#text(Array.from(toText(value)).reverse().join('')) : undefined;
      case 'min':
      case 'max':
        if (items === undefined || args.length > 0) return undefined;
        return items.reduce<Value | undefined>(
          (best, item) => (best && !beats(name, item, best) ? best : item),
          undefined,
        );
      case 'sum':
        if (items === undefined || args.length > 0 || !items.every(({ type }) => type === 'IntegerValue'))
          return undefined;
        return this.#number(items.reduce((sum, item) => sum + Number(item.value), 0));
      case 'map': {
        if (items === undefined || first === undefined || first.type === 'KeywordArgumentExpression') return undefined;
        const callee = { type: 'Identifier', value: toText(this.evaluate(first, environment)) };
        const filter = rest.length === 0 ? callee : { type: 'CallExpression', callee, args: rest };
        const apply = (item: Value): Value => {
          const operand = { type: 'Resolved', value: item };
          return this.evaluate({ type: 'FilterExpression', operand, filter } as Node, environment);
        };
        return this.#list(items.map(apply));
      }
      default:
        return undefined;
    }
  }

  #method(name: string, text: string, args: readonly Node[], environment: Environment): Value | undefined {
    const named = new Map<string, Value>();
    const positional: Value[] = [];
    for (const arg of args) {
      if (arg.type === 'KeywordArgumentExpression') {
        const { key, value } = arg as Node & { readonly key: { value: string }; readonly value: Node };
        named.set(key.value, this.evaluate(value, environment));
      } else positional.push(this.evaluate(arg, environment));
    }
    const [first] = positional;
    const argument = first?.type === 'StringValue' ? toText(first) : undefined;
    switch (name) {
      case 'strip':
      case 'lstrip':
      case 'rstrip':
        return argument === undefined ? undefined : this.#text(strip(text, argument, name));
      case 'format':
        return this.#text(format(text, positional, named));
      case 'join': {
        if (first?.type !== 'ArrayValue') return undefined;
        return this.#text((first.value as readonly Value[]).map(toText).join(text));
      }
      case 'find':
        return argument === undefined ? undefined : this.#number(text.indexOf(argument));
      case 'count':
        return argument === undefined || argument === '' ? undefined : this.#number(text.split(argument).length - 1);
      case 'removeprefix':
        if (argument === undefined) return undefined;
        return this.#text(text.startsWith(argument) ? text.slice(argument.length) : text);
      case 'removesuffix':
        if (argument === undefined) return undefined;
        return this.#text(argument !== '' && text.endsWith(argument) ? text.slice(0, -argument.length) : text);
      case 'splitlines':
        if (args.length > 0) return undefined;
        return this.#list(
          text
            .replace(/\r?\n$|\r$/, '')
            .split(/\r\n|\n|\r/)
            .map((line) => this.#text(line)),
        );
      default:
        return undefined;
    }
  }
}

const FILTERS: ReadonlySet<unknown> = new Set([
  'string',
  'capitalize',
  'e',
  'escape',
  'trim',
  'list',
  'reverse',
  'min',
  'max',
  'sum',
  'map',
]);

const METHODS: ReadonlySet<unknown> = new Set([
  'strip',
  'lstrip',
  'rstrip',
  'format',
  'join',
  'find',
  'count',
  'removeprefix',
  'removesuffix',
  'splitlines',
]);

/** Whether one number or text goes before another as the least or the greatest. */
function beats(name: 'min' | 'max', one: Value, other: Value): boolean {
  if (typeof one.value !== typeof other.value || (typeof one.value !== 'number' && typeof one.value !== 'string')) {
    throw new Error(`${name} cannot compare ${one.type} with ${other.type}`);
  }
  return name === 'min' ? one.value < (other.value as typeof one.value) : one.value > (other.value as typeof one.value);
}

/** Python's `range`. */
function boundedRange(first: unknown, second?: unknown, third?: unknown): number[] {
  const [start, stop, step] = second === undefined || second === null ? [0, first, 1] : [first, second, third ?? 1];
  if (![start, stop, step].every(Number.isInteger) || step === 0) {
    throw new Error('range() takes whole numbers and a step that is not 0');
  }
  const count = Math.max(0, Math.ceil(((stop as number) - (start as number)) / (step as number)));
  if (count > MAX_ITEMS) throw new TemplateLimit(`it makes a list of more than ${MAX_ITEMS} items`);
  return Array.from({ length: count }, (_, index) => (start as number) + index * (step as number));
}
