/** Statements of a template as a tree: those of jinja2 that the transformers library offers to chat templates. */

import { ExpressionParser } from './expressions.ts';
import { tokenize } from './lexer.ts';
import type { Block, Expression, Filter, Parameter, Statement, Target } from './syntax.ts';

/** @throws TemplateError with the line */
export function parse(template: string): Block {
  return new Parser(tokenize(template)).template();
}

/** Statements that need other templates, or extensions that chat templates do not have. */
const REFUSED: ReadonlySet<string> = new Set([
  'extends',
  'block',
  'include',
  'import',
  'from',
  'autoescape',
  'do',
  'trans',
]);

class Parser extends ExpressionParser {
  #loops = 0;

  template(): Block {
    const body = this.#block([]);
    if (!this.is('end')) throw this.unexpected('a statement');
    return body;
  }

  /** Up to a statement of one of these names, whose `{%` has been read then. */
  #block(ends: readonly string[]): Block {
    const body: Statement[] = [];
    for (;;) {
      if (this.is('data')) body.push({ type: 'data', text: this.next().value });
      else if (this.skip('print')) {
        body.push({ type: 'print', value: this.sequence(() => this.is('endPrint')) });
        this.expect('endPrint');
      } else if (this.skip('block')) {
        if (this.is('name') && ends.includes(this.token.value)) return body;
        body.push(...this.#statement());
        this.expect('endBlock');
      } else if (ends.length === 0) return body;
      else throw this.unexpected(`{% ${ends.at(-1)} %}`);
    }
  }

  /** A statement's body: the rest of its own tag, and all up to the tag of one of these names. */
  #body(...ends: string[]): Block {
    this.skip('operator', ':');
    this.expect('endBlock');
    return this.#block(ends);
  }

  #statement(): Statement[] {
    const { value } = this.expect('name');
    switch (value) {
      case 'set':
        return [this.#set()];
      case 'if':
        return [this.#if()];
      case 'for':
        return [this.#for()];
      case 'macro':
        return [this.#macro()];
      case 'call':
        return [this.#call()];
      case 'filter':
        return [this.#filterBlock()];
      case 'with':
        return [this.#with()];
      case 'generation': {
        // Marks what the assistant said, for training.
        const body = this.#body('endgeneration');
        this.next();
        return [{ type: 'with', bindings: [], body }];
      }
      case 'break':
      case 'continue':
        if (this.#loops === 0) throw this.error(`{% ${value} %} stands outside of a loop`);
        return [{ type: value }];
      default:
        if (REFUSED.has(value)) throw this.error(`chat templates have no {% ${value} %}`);
        throw this.error(`there is no statement {% ${value} %}`);
    }
  }

  #set(): Statement {
    const target = this.#target(() => this.is('operator', '='), true);
    if (this.skip('operator', '=')) return { type: 'set', target, value: this.sequence(() => this.is('endBlock')) };
    const filters = this.#filters();
    const body = this.#body('endset');
    this.next();
    return { type: 'setBlock', target, filters, body };
  }

  #filters(): Filter[] {
    const filters: Filter[] = [];
    while (this.is('operator', '|')) filters.push(this.filter());
    return filters;
  }

  #if(): Statement {
    const branches: (readonly [Expression, Block])[] = [];
    for (;;) {
      const condition = this.sequence(() => this.is('endBlock'), false);
      branches.push([condition, this.#body('elif', 'else', 'endif')]);
      const { value } = this.next();
      if (value === 'elif') continue;
      if (value === 'endif') return { type: 'if', branches, otherwise: [] };
      const otherwise = this.#body('endif');
      this.next();
      return { type: 'if', branches, otherwise };
    }
  }

  #for(): Statement {
    const target = this.#target(() => this.is('name', 'in'), false);
    this.expect('name', 'in');
    const iterable = this.sequence(() => this.is('endBlock') || this.is('name', 'recursive'), false);
    const condition = this.skip('name', 'if') ? this.expression() : undefined;
    const isRecursive = this.skip('name', 'recursive');
    this.#loops++;
    const body = this.#body('endfor', 'else');
    this.#loops--;
    let otherwise: Block = [];
    if (this.next().value === 'else') {
      otherwise = this.#body('endfor');
      this.next();
    }
    return { type: 'for', target, iterable, condition, isRecursive, body, otherwise };
  }

  #macro(): Statement {
    const name = this.expect('name').value;
    const parameters = this.#parameters();
    const body = this.#outsideOfLoops(() => this.#body('endmacro'));
    this.next();
    return { type: 'macro', name, parameters, body };
  }

  #call(): Statement {
    const parameters = this.is('operator', '(') ? this.#parameters() : [];
    const call = this.expression();
    if (call.type !== 'call') throw this.error('{% call %} expects the call of a macro');
    const body = this.#outsideOfLoops(() => this.#body('endcall'));
    this.next();
    return { type: 'callBlock', call, parameters, body };
  }

  #filterBlock(): Statement {
    const filters = [this.filterName(), ...this.#filters()];
    const body = this.#body('endfilter');
    this.next();
    return { type: 'filterBlock', filters, body };
  }

  #with(): Statement {
    const bindings: (readonly [Target, Expression])[] = [];
    while (!this.is('endBlock')) {
      if (bindings.length > 0) this.expect('operator', ',');
      const target = this.#target(() => this.is('operator', '='), false);
      this.expect('operator', '=');
      bindings.push([target, this.expression()]);
    }
    const body = this.#body('endwith');
    this.next();
    return { type: 'with', bindings, body };
  }

  /** The body of a macro is its own: no `break` reaches out of it. */
  #outsideOfLoops<T>(read: () => T): T {
    const loops = this.#loops;
    this.#loops = 0;
    const result = read();
    this.#loops = loops;
    return result;
  }

  #parameters(): Parameter[] {
    const parameters: Parameter[] = [];
    this.expect('operator', '(');
    while (!this.is('operator', ')')) {
      if (parameters.length > 0) this.expect('operator', ',');
      const name = this.expect('name').value;
      const fallback = this.skip('operator', '=') ? this.expression() : undefined;
      if (fallback === undefined && parameters.at(-1)?.fallback !== undefined) {
        throw this.error(`parameter ${name} has no default, but the one before it has`);
      }
      parameters.push({ name, fallback });
    }
    this.expect('operator', ')');
    return parameters;
  }

  /** A name, or several with commas between; where asked for, attributes of a namespace too. */
  #target(isEnd: () => boolean, hasAttributes: boolean): Target {
    const items: Target[] = [];
    let isTuple = false;
    while (!isEnd()) {
      items.push(this.#singleTarget(hasAttributes));
      if (!this.skip('operator', ',')) break;
      isTuple = true;
    }
    if (isTuple) return { type: 'variables', items };
    if (items[0] === undefined) throw this.unexpected('a name');
    return items[0];
  }

  #singleTarget(hasAttributes: boolean): Target {
    if (this.skip('operator', '(')) {
      const target = this.#target(() => this.is('operator', ')'), hasAttributes);
      this.expect('operator', ')');
      return target;
    }
    const name = this.expect('name').value;
    if (CONSTANTS.has(name)) throw this.error(`nothing can be assigned to ${name}`);
    if (!hasAttributes || !this.skip('operator', '.')) return { type: 'variable', name };
    return { type: 'member', object: name, name: this.expect('name').value };
  }
}

const CONSTANTS: ReadonlySet<string> = new Set(['true', 'True', 'false', 'False', 'none', 'None']);
