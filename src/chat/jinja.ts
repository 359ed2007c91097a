/**
 * Jinja for chat templates: `@huggingface/jinja` with what it lacks. A template comes from a model file and is hostile
 * until it has rendered: steps, strings and lists are bounded. The version is pinned, since this class counts on every
 * expression passing through `evaluate`.
 */

import * as library from '@huggingface/jinja';
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

/** A loop; with a condition, what it runs over is within a selection. */
interface ForLoop extends Node {
  readonly iterable: Node & { readonly lhs?: Node };
}

interface Value {
  readonly type: string;
  readonly value: unknown;
}

interface Environment {
  set(name: string, value: unknown): void;
}

interface Interpreter {
  run(program: Node): Value;
  evaluate(node: Node | undefined, environment: Environment): Value;
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

class BoundedInterpreter extends Interpreter {
  #steps = 0;
  /** What the loop that is about to begin runs over. */
  #iterable: Node | undefined;

  override evaluate(node: Node | undefined, environment: Environment): Value {
    this.#count(1);
    const isIterable = node !== undefined && node === this.#iterable;
    if (node?.type === 'For') {
      const { iterable } = node as ForLoop;
      this.#iterable = iterable.type === 'SelectExpression' ? (iterable.lhs ?? iterable) : iterable;
    }
    const value = (node && this.#strip(node, environment)) ?? super.evaluate(node, environment);
    // `first` and `last` of an empty list are undefined.
    if (value === undefined) return value;
    if (typeof value.value === 'string' && value.value.length > MAX_STRING) {
      throw new TemplateLimit(`it makes a text of more than ${MAX_STRING} characters`);
    }
    if (Array.isArray(value.value) && value.value.length > MAX_ITEMS) {
      throw new TemplateLimit(`it makes a list of more than ${MAX_ITEMS} items`);
    }
    if (isIterable && Array.isArray(value.value)) this.#count(value.value.length * ITEM_STEPS);
    return value;
  }

  #count(steps: number): void {
    this.#steps += steps;
    if (this.#steps > MAX_STEPS) throw new TemplateLimit(`it takes more than ${MAX_STEPS} steps`);
  }

  /** `text.strip(characters)`, whose argument the library ignores; undefined for everything else. */
  #strip(node: Node, environment: Environment): Value | undefined {
    if (node.type !== 'CallExpression') return undefined;
    const { callee, args } = node as MethodCall;
    const name = callee.type === 'MemberExpression' && callee.computed !== true ? callee.property.value : undefined;
    if (args.length !== 1 || (name !== 'strip' && name !== 'lstrip' && name !== 'rstrip')) return undefined;
    const text = this.evaluate(callee.object, environment);
    const characters = this.evaluate(args[0], environment);
    if (text.type !== 'StringValue' || characters.type !== 'StringValue') return undefined;
    const stripped = strip(String(text.value), String(characters.value), name);
    return super.evaluate({ type: 'StringLiteral', value: stripped } as Node, environment);
  }
}

function strip(text: string, characters: string, name: 'strip' | 'lstrip' | 'rstrip'): string {
  const set = new Set(characters);
  const letters = Array.from(text);
  let start = 0;
  let end = letters.length;
  if (name !== 'rstrip') while (start < end && set.has(letters[start]!)) start++;
  if (name !== 'lstrip') while (end > start && set.has(letters[end - 1]!)) end--;
  return letters.slice(start, end).join('');
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
