/** Runs the syntax tree of a template. */

import { attributeOf, itemOf } from './attributes.ts';
import { FILTERS } from './filters.ts';
import type { HiddenNames } from './frames.ts';
import { createLoop } from './loop.ts';
import type { Meter } from './meter.ts';
import { arithmetic, iterate, slice, test } from './operators.ts';
import { Scope } from './scope.ts';
import type { Block, CallArguments, Expression, Filter, Parameter, Statement, Target } from './syntax.ts';
import { TESTS } from './tests.ts';
import { textOf } from './text.ts';
import {
  type Arguments,
  Attributes,
  asInteger,
  asNumber,
  assertDefined,
  Callable,
  Dict,
  Float,
  integer,
  isTrue,
  List,
  Namespace,
  TemplateError,
  Tuple,
  typeName,
  Undefined,
  type Value,
} from './values.ts';

/** How a block ended: `break` and `continue` leave all blocks up to their loop. */
type Ending = 'break' | 'continue' | undefined;

type ForLoop = Statement & { readonly type: 'for' };

/** What filters and tests need of the interpreter. */
export interface Runtime {
  readonly meter: Meter;
  /** @throws TemplateError for a filter that there is not */
  filter(name: string, value: Value, args: Arguments): Value;
  /** @throws TemplateError for a test that there is not */
  test(name: string, value: Value, args: Arguments): boolean;
  call(callee: Value, args: Arguments): Value;
}

class Output {
  text = '';
  readonly #meter: Meter;

  constructor(meter: Meter) {
    this.#meter = meter;
  }

  write(text: string): void {
    this.#meter.bound(this.text.length + text.length);
    this.#meter.text(text.length);
    this.text += text;
  }
}

export class Interpreter implements Runtime {
  readonly meter: Meter;

  readonly #hidden: HiddenNames;

  constructor(meter: Meter, hidden: HiddenNames) {
    this.meter = meter;
    this.#hidden = hidden;
  }

  /** Text of a block with names of its own. */
  render(block: Block, outer: Scope): string {
    const out = new Output(this.meter);
    this.#run(block, this.#enter(block, outer), out);
    return out.text;
  }

  #enter(block: Block, outer: Scope): Scope {
    const scope = new Scope(outer);
    for (const name of this.#hidden.get(block) ?? []) scope.set(name, new Undefined(`'${name}' is undefined`));
    return scope;
  }

  #run(block: Block, scope: Scope, out: Output): Ending {
    for (const statement of block) {
      this.meter.step();
      const ending = this.#execute(statement, scope, out);
      if (ending !== undefined) return ending;
    }
    return undefined;
  }

  #execute(statement: Statement, scope: Scope, out: Output): Ending {
    switch (statement.type) {
      case 'data':
        out.write(statement.text);
        return undefined;
      case 'print':
        out.write(textOf(this.meter, this.evaluate(statement.value, scope)));
        return undefined;
      case 'if': {
        const branch = statement.branches.find(([condition]) => isTrue(this.evaluate(condition, scope)));
        return this.#run(branch?.[1] ?? statement.otherwise, scope, out);
      }
      case 'for':
        return this.#loop(statement, scope, out);
      case 'set':
        this.#assign(statement.target, this.evaluate(statement.value, scope), scope);
        return undefined;
      case 'setBlock': {
        const text = this.render(statement.body, scope);
        this.#assign(statement.target, this.#filtered(text, statement.filters, scope), scope);
        return undefined;
      }
      case 'macro': {
        const { name, parameters, body } = statement;
        scope.set(name, this.#macro(name, parameters, body, scope));
        return undefined;
      }
      case 'callBlock': {
        const { call, parameters, body } = statement;
        const args = this.#arguments(call.args, scope);
        const caller = this.#macro('caller', parameters, body, scope);
        const named = new Map([...args.named, ['caller', caller]] as const);
        const callee = this.evaluate(call.callee, scope);
        out.write(textOf(this.meter, this.call(callee, { ...args, named })));
        return undefined;
      }
      case 'filterBlock': {
        const text = this.render(statement.body, scope);
        out.write(textOf(this.meter, this.#filtered(text, statement.filters, scope)));
        return undefined;
      }
      case 'with': {
        const inner = this.#enter(statement.body, scope);
        for (const [target, value] of statement.bindings) this.#assign(target, this.evaluate(value, scope), inner);
        return this.#run(statement.body, inner, out);
      }
      default:
        return statement.type;
    }
  }

  #loop(statement: ForLoop, scope: Scope, out: Output, depth = 0, given?: Value): Ending {
    const { target, condition, body, otherwise, isRecursive } = statement;
    let items = iterate(this.meter, given === undefined ? this.evaluate(statement.iterable, scope) : given);
    if (condition !== undefined) {
      items = items.filter((item) => {
        const inner = new Scope(scope);
        this.#assign(target, item, inner);
        return isTrue(this.evaluate(condition, inner));
      });
    }
    const recurse = (value: Value): Value => {
      const inner = new Output(this.meter);
      this.#loop(statement, scope, inner, depth + 1, value);
      return inner.text;
    };
    const loop = createLoop(this.meter, items, depth, isRecursive ? recurse : undefined);
    for (const [index, item] of items.entries()) {
      this.meter.step();
      const inner = this.#enter(body, scope);
      inner.set('loop', loop(index));
      this.#assign(target, item, inner);
      if (this.#run(body, inner, out) === 'break') return undefined;
    }
    return items.length === 0 ? this.#run(otherwise, this.#enter(otherwise, scope), out) : undefined;
  }

  #assign(target: Target, value: Value, scope: Scope): void {
    if (target.type === 'variable') {
      scope.set(target.name, value);
      return;
    }
    if (target.type === 'member') {
      const object = scope.get(target.object);
      if (!(object instanceof Namespace)) throw new TemplateError('cannot assign attribute on non-namespace object');
      object.attributes.set(target.name, value);
      return;
    }
    const items = iterate(this.meter, value);
    const { length } = target.items;
    if (items.length < length) {
      throw new TemplateError(`not enough values to unpack (expected ${length}, got ${items.length})`);
    }
    if (items.length > length) throw new TemplateError(`too many values to unpack (expected ${length})`);
    for (const [index, item] of target.items.entries()) this.#assign(item, items[index]!, scope);
  }

  /** A macro sees the names around its definition, not those around its call. */
  #macro(name: string, parameters: readonly Parameter[], body: Block, outer: Scope): Value {
    const own = new Set(parameters.map(({ name: parameter }) => parameter));
    const uses = new Set([...extrasOf(body)].filter((extra) => !own.has(extra)));
    const call = ({ positional, named }: Arguments): Value => {
      this.meter.step();
      const scope = new Scope(outer);
      const rest = new Map(named);
      for (const [index, { name: parameter, fallback }] of parameters.entries()) {
        let value = positional[index];
        if (rest.has(parameter)) {
          if (value !== undefined) {
            throw new TemplateError(`macro '${name}' got multiple values for argument '${parameter}'`);
          }
          value = rest.get(parameter);
          rest.delete(parameter);
        }
        const missing = (): Value =>
          fallback === undefined
            ? new Undefined(`parameter '${parameter}' was not provided`)
            : this.evaluate(fallback, scope);
        scope.set(parameter, value === undefined ? missing() : value);
      }
      if (uses.has('caller')) {
        const caller = rest.get('caller');
        scope.set('caller', caller === undefined ? new Undefined('No caller defined') : caller);
        rest.delete('caller');
      }
      if (uses.has('kwargs')) scope.set('kwargs', new Dict(rest));
      else if (rest.has('caller')) {
        throw new TemplateError(`macro '${name}' was invoked with two values for the special caller argument`);
      } else if (rest.size > 0) {
        throw new TemplateError(`macro '${name}' takes no keyword argument '${[...rest.keys()][0]}'`);
      }
      if (uses.has('varargs')) scope.set('varargs', new Tuple(positional.slice(parameters.length)));
      else if (positional.length > parameters.length) {
        throw new TemplateError(`macro '${name}' takes not more than ${parameters.length} argument(s)`);
      }
      return this.render(body, scope);
    };
    return new Callable(name, call);
  }

  evaluate(node: Expression, scope: Scope): Value {
    this.meter.step();
    switch (node.type) {
      case 'constant':
        return node.value;
      case 'name':
        return this.#lookUp(node.name, scope);
      case 'list':
        return new List(node.items.map((item) => this.evaluate(item, scope)));
      case 'tuple':
        return new Tuple(node.items.map((item) => this.evaluate(item, scope)));
      case 'dict':
        return new Dict(node.pairs.map(([key, value]) => [this.evaluate(key, scope), this.evaluate(value, scope)]));
      case 'attribute':
        return attributeOf(this, this.evaluate(node.object, scope), node.name);
      case 'item':
        return itemOf(this, this.evaluate(node.object, scope), this.evaluate(node.key, scope));
      case 'slice':
        return this.#slice(node, scope);
      case 'call':
        return this.call(this.evaluate(node.callee, scope), this.#arguments(node.args, scope));
      case 'filter': {
        const value = this.evaluate(node.operand, scope);
        return this.filter(node.filter.name, value, this.#arguments(node.filter.args, scope));
      }
      case 'test': {
        const value = this.evaluate(node.operand, scope);
        return this.test(node.name, value, this.#arguments(node.args, scope));
      }
      case 'unary':
        return this.#unary(node.operator, this.evaluate(node.operand, scope));
      case 'logical': {
        const left = this.evaluate(node.left, scope);
        return isTrue(left) === (node.operator === 'or') ? left : this.evaluate(node.right, scope);
      }
      case 'binary':
        return arithmetic(this.meter, node.operator, this.evaluate(node.left, scope), this.evaluate(node.right, scope));
      case 'compare': {
        let left = this.evaluate(node.first, scope);
        for (const [operator, operand] of node.rest) {
          const right = this.evaluate(operand, scope);
          if (!test(this.meter, operator, left, right)) return false;
          left = right;
        }
        return true;
      }
      case 'conditional': {
        if (isTrue(this.evaluate(node.condition, scope))) return this.evaluate(node.yes, scope);
        if (node.no !== undefined) return this.evaluate(node.no, scope);
        return new Undefined('the inline if-expression evaluated to false and no else section was defined');
      }
    }
  }

  #lookUp(name: string, scope: Scope): Value {
    const value = scope.get(name);
    return value === undefined ? new Undefined(`'${name}' is undefined`) : value;
  }

  #slice(node: Expression & { readonly type: 'slice' }, scope: Scope): Value {
    const object = this.evaluate(node.object, scope);
    const bound = (part: Expression | undefined): number | undefined => {
      const value = part === undefined ? null : this.evaluate(part, scope);
      const number = asInteger(value);
      if (value === null || number !== undefined) return number;
      throw new TemplateError(`slice indices must be integers or None, not ${typeName(value)}`);
    };
    const bounds = { start: bound(node.start), stop: bound(node.stop), step: bound(node.step) };
    assertDefined(object);
    const part = slice(this.meter, object, bounds);
    if (part !== undefined) return part;
    throw new TemplateError(`'${typeName(object)}' object has no places, of which a slice could be taken`);
  }

  #unary(operator: 'not' | '-' | '+', value: Value): Value {
    if (operator === 'not') return !isTrue(value);
    assertDefined(value);
    const number = asNumber(value);
    if (number === undefined) throw new TemplateError(`bad operand type for unary ${operator}: '${typeName(value)}'`);
    const result = operator === '-' ? -number : number;
    return value instanceof Float ? new Float(result) : integer(result);
  }

  #arguments(args: CallArguments, scope: Scope): Arguments {
    if (args.named.length === 0 && args.list === undefined && args.dict === undefined) {
      return { positional: args.positional.map((arg) => this.evaluate(arg, scope)), named: NO_NAMES };
    }
    const positional = args.positional.map((arg) => this.evaluate(arg, scope));
    const named = new Map<string, Value>();
    const add = (name: string, value: Value): void => {
      if (named.has(name)) throw new TemplateError(`got multiple values for keyword argument '${name}'`);
      named.set(name, value);
    };
    for (const [name, value] of args.named) add(name, this.evaluate(value, scope));
    if (args.list !== undefined) positional.push(...iterate(this.meter, this.evaluate(args.list, scope)));
    if (args.dict !== undefined) {
      const dict = this.evaluate(args.dict, scope);
      if (!(dict instanceof Dict))
        throw new TemplateError(`argument after ** must be a mapping, not ${typeName(dict)}`);
      for (const [key, value] of dict.entries()) {
        if (typeof key !== 'string') throw new TemplateError('keywords must be strings');
        add(key, value);
      }
    }
    return { positional, named };
  }

  #filtered(text: string, filters: readonly Filter[], scope: Scope): Value {
    let value: Value = text;
    for (const { name, args } of filters) value = this.filter(name, value, this.#arguments(args, scope));
    return value;
  }

  call(callee: Value, args: Arguments): Value {
    if (callee instanceof Callable) return callee.call(args);
    if (callee instanceof Attributes && callee.call !== undefined) return callee.call(args);
    assertDefined(callee);
    throw new TemplateError(`'${typeName(callee)}' object is not callable`);
  }

  filter(name: string, value: Value, args: Arguments): Value {
    const filter = FILTERS.get(name);
    if (filter === undefined) throw new TemplateError(`No filter named '${name}'`);
    if (typeof value === 'string') this.meter.text(value.length);
    return filter(this, value, args);
  }

  test(name: string, value: Value, args: Arguments): boolean {
    const predicate = TESTS.get(name);
    if (predicate === undefined) throw new TemplateError(`No test named '${name}'`);
    return predicate(this, value, args);
  }
}

const NO_NAMES: ReadonlyMap<string, Value> = new Map();

/** What a macro is given besides its parameters, if it asks for it. */
const EXTRAS = ['caller', 'kwargs', 'varargs'] as const;

const known = new WeakMap<Block, ReadonlySet<string>>();

function extrasOf(body: Block): ReadonlySet<string> {
  let extras = known.get(body);
  if (extras === undefined) {
    extras = new Set(EXTRAS.filter((extra) => mentions(body, extra)));
    known.set(body, extras);
  }
  return extras;
}

/** Whether the tree reads this name. */
export function mentions(tree: unknown, name: string): boolean {
  const pending = [tree];
  while (pending.length > 0) {
    const node = pending.pop();
    if (typeof node !== 'object' || node === null) continue;
    const { type, name: own } = node as { readonly type?: unknown; readonly name?: unknown };
    if (type === 'name' && own === name) return true;
    pending.push(...Object.values(node));
  }
  return false;
}
