/**
 * Which names hide those of the caller before they are set.
 *
 * jinja2 gives each scope one variable for a name, for all of its length. Where a scope sets a name before it reads it,
 * and no scope around it speaks of that name, the variable is empty until it is set: what is nested in the scope does
 * not see a variable of that name that the caller of the template handed in.
 */

import type { Block, Expression, Filter, Parameter, Statement, Target } from './syntax.ts';

/** Names by the blocks at whose beginning they are empty. */
export type HiddenNames = ReadonlyMap<Block, readonly string[]>;

export function hiddenNames(program: Block): HiddenNames {
  const hidden = new Map<Block, readonly string[]>();
  new Frame(undefined, hidden).analyse(program);
  return hidden;
}

class Frame {
  readonly #outer: Frame | undefined;
  readonly #hidden: Map<Block, readonly string[]>;
  /** Names that this scope speaks of. */
  readonly #names = new Set<string>();
  readonly #setFirst: string[] = [];
  readonly #nested: (() => void)[] = [];
  /** Depth of conditions: what is set under one does not hide. */
  #conditions = 0;

  constructor(outer: Frame | undefined, hidden: Map<Block, readonly string[]>) {
    this.#outer = outer;
    this.#hidden = hidden;
  }

  analyse(block: Block): void {
    this.#block(block);
    if (this.#setFirst.length > 0) this.#hidden.set(block, this.#setFirst);
    // When the whole scope is known.
    for (const visit of this.#nested) visit();
  }

  #knows(name: string): boolean {
    if (this.#names.has(name)) return true;
    return this.#outer === undefined ? false : this.#outer.#knows(name);
  }

  #load(name: string): void {
    if (!this.#knows(name)) this.#names.add(name);
  }

  #store(name: string): void {
    if (!this.#knows(name) && this.#conditions === 0) this.#setFirst.push(name);
    this.#names.add(name);
  }

  #inner(block: Block, parameters: readonly string[]): void {
    this.#nested.push(() => {
      const frame = new Frame(this, this.#hidden);
      for (const name of parameters) frame.#names.add(name);
      frame.analyse(block);
    });
  }

  #block(block: Block): void {
    for (const statement of block) this.#statement(statement);
  }

  #statement(statement: Statement): void {
    switch (statement.type) {
      case 'print':
        this.#reads(statement.value);
        break;
      case 'if':
        for (const [condition, body] of statement.branches) {
          this.#reads(condition);
          this.#conditional(body);
        }
        this.#conditional(statement.otherwise);
        break;
      case 'for':
        this.#reads(statement.iterable);
        this.#inner(statement.body, [...namesOf(statement.target), 'loop']);
        this.#inner(statement.otherwise, []);
        break;
      case 'set':
        this.#reads(statement.value);
        this.#stores(statement.target);
        break;
      case 'setBlock':
        this.#stores(statement.target);
        this.#inner(statement.body, []);
        break;
      case 'macro':
        this.#store(statement.name);
        this.#inner(statement.body, parameterNames(statement.parameters));
        break;
      case 'callBlock':
        this.#reads(statement.call);
        this.#inner(statement.body, parameterNames(statement.parameters));
        break;
      case 'filterBlock':
        for (const filter of statement.filters) this.#reads(filter);
        this.#inner(statement.body, []);
        break;
      case 'with':
        for (const [, value] of statement.bindings) this.#reads(value);
        this.#inner(
          statement.body,
          statement.bindings.flatMap(([target]) => namesOf(target)),
        );
        break;
      default:
    }
  }

  #conditional(block: Block): void {
    this.#conditions++;
    this.#block(block);
    this.#conditions--;
  }

  #stores(target: Target): void {
    if (target.type === 'member') this.#load(target.object);
    for (const name of namesOf(target)) this.#store(name);
  }

  #reads(tree: Expression | Filter): void {
    const pending: unknown[] = [tree];
    while (pending.length > 0) {
      const node = pending.pop();
      if (typeof node !== 'object' || node === null) continue;
      const { type, name } = node as { readonly type?: unknown; readonly name?: unknown };
      if (type === 'name' && typeof name === 'string') this.#load(name);
      pending.push(...Object.values(node));
    }
  }
}

function namesOf(target: Target): string[] {
  if (target.type === 'variable') return [target.name];
  return target.type === 'variables' ? target.items.flatMap(namesOf) : [];
}

/** Names that a macro has from the start. */
function parameterNames(parameters: readonly Parameter[]): string[] {
  return [...parameters.map(({ name }) => name), 'caller', 'kwargs', 'varargs'];
}
