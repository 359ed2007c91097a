/** Expressions of a template as a tree; what binds tighter is as in jinja2. */

import type { Token, TokenKind } from './lexer.ts';
import type { CallArguments, Expression, Filter } from './syntax.ts';
import { Float, integer, TemplateError } from './values.ts';

const NO_ARGUMENTS: CallArguments = { positional: [], named: [], list: undefined, dict: undefined };

const COMPARISONS: ReadonlySet<string> = new Set(['==', '!=', '<', '<=', '>', '>=']);

/** A cursor over tokens that reads expressions. */
export class ExpressionParser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  protected get token(): Token {
    return this.#tokens[this.#at]!;
  }

  protected peek(): Token {
    return this.#tokens[this.#at + 1] ?? this.token;
  }

  protected next(): Token {
    const { token } = this;
    if (token.kind !== 'end') this.#at++;
    return token;
  }

  protected is(kind: TokenKind, value?: string): boolean {
    return this.token.kind === kind && (value === undefined || this.token.value === value);
  }

  protected skip(kind: TokenKind, value?: string): boolean {
    const found = this.is(kind, value);
    if (found) this.next();
    return found;
  }

  protected expect(kind: TokenKind, value?: string): Token {
    if (!this.is(kind, value)) throw this.unexpected(value === undefined ? NAMES[kind] : `'${value}'`);
    return this.next();
  }

  protected unexpected(expected: string): TemplateError {
    const { kind, value } = this.token;
    const isSpelled = kind === 'name' || kind === 'operator' || kind === 'integer' || kind === 'float';
    return this.error(`found ${isSpelled ? `'${value}'` : NAMES[kind]}, expected ${expected}`);
  }

  protected error(reason: string): TemplateError {
    return new TemplateError(`line ${this.token.line}: ${reason}`);
  }

  /** One expression, or several with commas between as a tuple. */
  protected sequence(isEnd: () => boolean, hasCondition = true): Expression {
    const items: Expression[] = [];
    let isTuple = false;
    while (!isEnd()) {
      items.push(hasCondition ? this.expression() : this.#or());
      if (!this.skip('operator', ',')) break;
      isTuple = true;
    }
    if (isTuple) return { type: 'tuple', items };
    if (items[0] === undefined) throw this.unexpected('an expression');
    return items[0];
  }

  protected expression(): Expression {
    const yes = this.#or();
    if (!this.skip('name', 'if')) return yes;
    const condition = this.#or();
    const no = this.skip('name', 'else') ? this.expression() : undefined;
    const node: Expression = { type: 'conditional', condition, yes, no };
    // `a if b if c` is `(a if b) if c`.
    return no === undefined && this.is('name', 'if') ? this.#moreConditions(node) : node;
  }

  #moreConditions(first: Expression): Expression {
    let yes = first;
    while (this.skip('name', 'if')) {
      const condition = this.#or();
      const no = this.skip('name', 'else') ? this.expression() : undefined;
      yes = { type: 'conditional', condition, yes, no };
    }
    return yes;
  }

  #or(): Expression {
    let left = this.#and();
    while (this.skip('name', 'or')) left = { type: 'logical', operator: 'or', left, right: this.#and() };
    return left;
  }

  #and(): Expression {
    let left = this.#not();
    while (this.skip('name', 'and')) left = { type: 'logical', operator: 'and', left, right: this.#not() };
    return left;
  }

  #not(): Expression {
    if (this.skip('name', 'not')) return { type: 'unary', operator: 'not', operand: this.#not() };
    return this.#compare();
  }

  /** `a < b < c` is `a < b and b < c`. */
  #compare(): Expression {
    const first = this.#sum();
    const rest: (readonly [string, Expression])[] = [];
    for (;;) {
      if (this.is('operator') && COMPARISONS.has(this.token.value)) {
        const { value } = this.next();
        rest.push([value, this.#sum()]);
      } else if (this.skip('name', 'in')) rest.push(['in', this.#sum()]);
      else if (this.is('name', 'not') && this.peek().kind === 'name' && this.peek().value === 'in') {
        this.next();
        this.next();
        rest.push(['not in', this.#sum()]);
      } else return rest.length === 0 ? first : { type: 'compare', first, rest };
    }
  }

  #sum(): Expression {
    return this.#binary(['+', '-'], () => this.#concatenation());
  }

  #concatenation(): Expression {
    return this.#binary(['~'], () => this.#product());
  }

  #product(): Expression {
    return this.#binary(['*', '/', '//', '%'], () => this.#power());
  }

  #power(): Expression {
    return this.#binary(['**'], () => this.#unary(true));
  }

  #binary(operators: readonly string[], operand: () => Expression): Expression {
    let left = operand();
    while (this.is('operator') && operators.includes(this.token.value)) {
      const operator = this.next().value;
      left = { type: 'binary', operator, left, right: operand() };
    }
    return left;
  }

  #unary(hasFilters: boolean): Expression {
    const sign = this.is('operator', '-') ? '-' : this.is('operator', '+') ? '+' : undefined;
    let node: Expression;
    if (sign === undefined) node = this.#primary();
    else {
      this.next();
      node = { type: 'unary', operator: sign, operand: this.#unary(false) };
    }
    node = this.#postfix(node);
    return hasFilters ? this.#filtersAndTests(node) : node;
  }

  #primary(): Expression {
    const { kind, value } = this.token;
    switch (kind) {
      case 'name':
        this.next();
        return CONSTANTS.get(value) ?? { type: 'name', name: value };
      case 'text': {
        let text = '';
        while (this.is('text')) text += this.next().value;
        return { type: 'constant', value: text };
      }
      case 'integer':
        this.next();
        return { type: 'constant', value: integer(Number(value)) };
      case 'float':
        this.next();
        return { type: 'constant', value: new Float(Number(value)) };
      case 'operator':
        if (value === '(') return this.#parenthesised();
        if (value === '[') return this.#list();
        if (value === '{') return this.#dict();
        break;
      default:
    }
    throw this.unexpected('an expression');
  }

  #parenthesised(): Expression {
    this.expect('operator', '(');
    if (this.skip('operator', ')')) return { type: 'tuple', items: [] };
    const node = this.sequence(() => this.is('operator', ')'));
    this.expect('operator', ')');
    return node;
  }

  #list(): Expression {
    const items: Expression[] = [];
    this.expect('operator', '[');
    while (!this.is('operator', ']')) {
      items.push(this.expression());
      if (!this.skip('operator', ',')) break;
    }
    this.expect('operator', ']');
    return { type: 'list', items };
  }

  #dict(): Expression {
    const pairs: (readonly [Expression, Expression])[] = [];
    this.expect('operator', '{');
    while (!this.is('operator', '}')) {
      const key = this.expression();
      this.expect('operator', ':');
      pairs.push([key, this.expression()]);
      if (!this.skip('operator', ',')) break;
    }
    this.expect('operator', '}');
    return { type: 'dict', pairs };
  }

  #postfix(start: Expression): Expression {
    let node = start;
    for (;;) {
      if (this.skip('operator', '.')) {
        if (this.is('name')) node = { type: 'attribute', object: node, name: this.next().value };
        else {
          const key: Expression = { type: 'constant', value: integer(Number(this.expect('integer').value)) };
          node = { type: 'item', object: node, key };
        }
      } else if (this.skip('operator', '[')) node = this.#subscript(node);
      else if (this.is('operator', '(')) node = { type: 'call', callee: node, args: this.callArguments() };
      else return node;
    }
  }

  #subscript(object: Expression): Expression {
    const bound = (): Expression | undefined =>
      this.is('operator', ':') || this.is('operator', ']') ? undefined : this.expression();
    const start = bound();
    if (this.skip('operator', ':')) {
      const stop = bound();
      const step = this.skip('operator', ':') ? bound() : undefined;
      this.expect('operator', ']');
      return { type: 'slice', object, start, stop, step };
    }
    if (start === undefined) throw this.unexpected('a place or a key');
    if (!this.skip('operator', ',')) {
      this.expect('operator', ']');
      return { type: 'item', object, key: start };
    }
    const items = [start];
    while (!this.is('operator', ']')) {
      items.push(this.expression());
      if (!this.skip('operator', ',')) break;
    }
    this.expect('operator', ']');
    return { type: 'item', object, key: { type: 'tuple', items } };
  }

  #filtersAndTests(start: Expression): Expression {
    let node = start;
    for (;;) {
      if (this.is('operator', '|')) node = { type: 'filter', operand: node, filter: this.filter() };
      else if (this.skip('name', 'is')) node = this.#test(node);
      else if (this.is('operator', '(')) node = { type: 'call', callee: node, args: this.callArguments() };
      else return node;
    }
  }

  /** `| name`, or `| name(…)`. */
  protected filter(): Filter {
    this.expect('operator', '|');
    return this.filterName();
  }

  protected filterName(): Filter {
    const name = this.#dottedName();
    return { name, args: this.is('operator', '(') ? this.callArguments() : NO_ARGUMENTS };
  }

  #dottedName(): string {
    let name = this.expect('name').value;
    while (this.skip('operator', '.')) name += `.${this.expect('name').value}`;
    return name;
  }

  #test(operand: Expression): Expression {
    const isNegated = this.skip('name', 'not');
    const name = this.#dottedName();
    let args = NO_ARGUMENTS;
    if (this.is('operator', '(')) args = this.callArguments();
    else if (this.#beginsTestArgument()) {
      if (this.is('name', 'is')) throw this.error('tests cannot be chained with is');
      args = { ...NO_ARGUMENTS, positional: [this.#postfix(this.#primary())] };
    }
    const node: Expression = { type: 'test', operand, name, args };
    return isNegated ? { type: 'unary', operator: 'not', operand: node } : node;
  }

  /** A test takes what follows as its argument, but for a few words. */
  #beginsTestArgument(): boolean {
    const { kind, value } = this.token;
    if (kind === 'name') return value !== 'else' && value !== 'or' && value !== 'and';
    return kind === 'text' || kind === 'integer' || kind === 'float' || (kind === 'operator' && '[{'.includes(value));
  }

  protected callArguments(): CallArguments {
    const positional: Expression[] = [];
    const named: (readonly [string, Expression])[] = [];
    let list: Expression | undefined;
    let dict: Expression | undefined;
    this.expect('operator', '(');
    while (!this.is('operator', ')')) {
      if (dict !== undefined) throw this.error('nothing may follow **');
      if (this.skip('operator', '*')) {
        if (list !== undefined) throw this.error('* may stand once');
        list = this.expression();
      } else if (this.skip('operator', '**')) dict = this.expression();
      else if (this.is('name') && this.peek().kind === 'operator' && this.peek().value === '=') {
        const name = this.next().value;
        this.next();
        named.push([name, this.expression()]);
      } else {
        if (named.length > 0 || list !== undefined) throw this.error('an argument without a name follows a named one');
        positional.push(this.expression());
      }
      if (!this.skip('operator', ',')) break;
    }
    this.expect('operator', ')');
    return { positional, named, list, dict };
  }
}

const constant = (value: boolean | null): Expression => ({ type: 'constant', value });

const CONSTANTS: ReadonlyMap<string, Expression> = new Map([
  ['true', constant(true)],
  ['True', constant(true)],
  ['false', constant(false)],
  ['False', constant(false)],
  ['none', constant(null)],
  ['None', constant(null)],
]);

const NAMES: Readonly<Record<TokenKind, string>> = {
  data: 'text',
  print: '{{',
  endPrint: '}}',
  block: '{%',
  endBlock: '%}',
  name: 'a name',
  text: 'a text',
  integer: 'a whole number',
  float: 'a number',
  operator: 'an operator',
  end: 'the end of the template',
};
