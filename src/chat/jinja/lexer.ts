/**
 * A template cut into tokens, with white space around tags as jinja2 treats it under the settings of the transformers
 * library: a tag alone takes the space before it on its line (`lstrip_blocks`) and the line's end behind it
 * (`trim_blocks`).
 */

import { SPACE, strip } from './text.ts';
import { TemplateError } from './values.ts';

export type TokenKind =
  | 'data'
  | 'print'
  | 'endPrint'
  | 'block'
  | 'endBlock'
  | 'name'
  | 'text'
  | 'integer'
  | 'float'
  | 'operator'
  | 'end';

export interface Token {
  readonly kind: TokenKind;
  /** A text literal without quotes and escapes; of numbers, the digits. */
  readonly value: string;
  readonly line: number;
}

const OPERATORS = /\/\/|\*\*|==|!=|>=|<=|[-+/*%~[\](){}><=.:|,;]/y;
const BLANK = new RegExp(`[${SPACE}]+`, 'yu');
const ONLY_BLANK = new RegExp(`^[${SPACE}]+$`, 'u');
const NAME = /[\p{L}\p{Nl}_][\p{L}\p{M}\p{N}\p{Pc}]*/uy;
const FLOAT = /(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?e[+-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+)/iy;
const INTEGER = /0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[\da-f])+|[1-9](?:_?\d)*|0(?:_?0)*/iy;
const TEXT = /'([^'\\]*(?:\\.[^'\\]*)*)'|"([^"\\]*(?:\\.[^"\\]*)*)"/sy;
const TAG = /\{[%{#]/g;
const RAW = new RegExp(`\\{%[-+]?[${SPACE}]*raw[${SPACE}]*(?:-%\\}[${SPACE}]*|%\\})`, 'yu');
const END_RAW = new RegExp(`\\{%([-+]?)[${SPACE}]*endraw[${SPACE}]*(?:\\+%\\}|-%\\}[${SPACE}]*|%\\}\\n?)`, 'gu');
const END_COMMENT = new RegExp(`\\+#\\}|-#\\}[${SPACE}]*|#\\}\\n?`, 'gu');
const END_BLOCK = new RegExp(`\\+%\\}|-%\\}[${SPACE}]*|%\\}\\n?`, 'yu');
const END_PRINT = new RegExp(`-\\}\\}[${SPACE}]*|\\}\\}`, 'yu');

const CLOSING: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };

/** @throws TemplateError with the line */
export function tokenize(template: string): Token[] {
  return new Lexer(template).run();
}

class Lexer {
  readonly #source: string;
  readonly #tokens: Token[] = [];
  #at = 0;
  #line = 1;
  #counted = 0;
  /** The text before the cursor, as far as it has been consumed, ends a line. */
  #startsLine = true;

  constructor(template: string) {
    this.#source = template.replaceAll(/\r\n?/g, '\n').replace(/\n$/, '');
  }

  run(): Token[] {
    while (this.#at < this.#source.length) this.#data();
    this.#push('end', '');
    return this.#tokens;
  }

  /** Text up to the next tag, and the tag. */
  #data(): void {
    TAG.lastIndex = this.#at;
    const tag = TAG.exec(this.#source);
    if (tag === null) {
      this.#push('data', this.#source.slice(this.#at));
      this.#at = this.#source.length;
      return;
    }
    const text = this.#source.slice(this.#at, tag.index);
    const sign = this.#source[tag.index + 2] ?? '';
    const isPrint = tag[0] === '{{';
    const kept = this.#before(text, sign, !isPrint);
    if (kept !== '') this.#push('data', kept);
    this.#at = tag.index;
    const raw = isPrint ? undefined : this.#match(RAW);
    if (raw !== undefined) {
      this.#advance(raw);
      this.#raw();
      return;
    }
    this.#advance(tag[0] + (sign === '-' || sign === '+' ? sign : ''));
    if (tag[0] === '{#') this.#comment();
    else this.#tag(isPrint);
  }

  /** What stays of the text before a tag. */
  #before(text: string, sign: string, isBlock: boolean): string {
    if (sign === '-') return strip(text, undefined, 'rstrip');
    if (sign === '+' || !isBlock) return text;
    const lineStart = text.lastIndexOf('\n') + 1;
    if (lineStart === 0 && !this.#startsLine) return text;
    return ONLY_BLANK.test(text.slice(lineStart)) ? text.slice(0, lineStart) : text;
  }

  #comment(): void {
    END_COMMENT.lastIndex = this.#at;
    const end = END_COMMENT.exec(this.#source);
    if (end === null) throw this.#error('a comment has no end #}');
    this.#advance(this.#source.slice(this.#at, end.index) + end[0]);
  }

  #raw(): void {
    END_RAW.lastIndex = this.#at;
    const end = END_RAW.exec(this.#source);
    if (end === null) throw this.#error('{% raw %} has no {% endraw %}');
    const text = this.#before(this.#source.slice(this.#at, end.index), end[1]!, true);
    if (text !== '') this.#push('data', text);
    this.#advance(this.#source.slice(this.#at, end.index) + end[0]);
  }

  #tag(isPrint: boolean): void {
    this.#push(isPrint ? 'print' : 'block', '');
    const open: string[] = [];
    while (this.#at < this.#source.length) {
      const end = open.length === 0 ? this.#match(isPrint ? END_PRINT : END_BLOCK) : undefined;
      if (end !== undefined) {
        this.#push(isPrint ? 'endPrint' : 'endBlock', '');
        this.#advance(end);
        return;
      }
      this.#token(open);
    }
    throw this.#error(`${isPrint ? '{{' : '{%'} has no end`);
  }

  #token(open: string[]): void {
    const blank = this.#match(BLANK);
    if (blank !== undefined) {
      this.#advance(blank);
      return;
    }
    const isPlace = this.#source[this.#at - 1] === '.';
    const float = isPlace ? undefined : this.#match(FLOAT);
    if (float !== undefined) return this.#take('float', float, float.replaceAll('_', ''));
    const integer = this.#match(INTEGER);
    if (integer !== undefined) return this.#take('integer', integer, integer.replaceAll('_', ''));
    const name = this.#match(NAME);
    if (name !== undefined) return this.#take('name', name, name);
    const text = this.#match(TEXT);
    if (text !== undefined) return this.#take('text', text, unescaped(text.slice(1, -1)));
    const operator = this.#match(OPERATORS);
    if (operator === undefined) {
      throw this.#error(`unexpected character ${JSON.stringify(this.#source[this.#at])}`);
    }
    const closing = CLOSING[operator];
    if (closing !== undefined) open.push(closing);
    else if (operator === ')' || operator === ']' || operator === '}') {
      const expected = open.pop();
      if (expected !== operator) {
        throw this.#error(`unexpected '${operator}'${expected === undefined ? '' : `, expected '${expected}'`}`);
      }
    }
    this.#take('operator', operator, operator);
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#source)?.[0];
  }

  #take(kind: TokenKind, source: string, value: string): void {
    this.#push(kind, value);
    this.#advance(source);
  }

  #push(kind: TokenKind, value: string): void {
    for (; this.#counted < this.#at; this.#counted++) if (this.#source[this.#counted] === '\n') this.#line++;
    this.#tokens.push({ kind, value, line: this.#line });
  }

  #advance(source: string): void {
    this.#at += source.length;
    this.#startsLine = source.endsWith('\n');
  }

  #error(reason: string): TemplateError {
    this.#push('end', '');
    return new TemplateError(`line ${this.#line}: ${reason}`);
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  a: '\x07',
  b: '\b',
  f: '\f',
  v: '\v',
  '\n': '',
  '\\': '\\',
  "'": "'",
  '"': '"',
};

/** Python's escapes; what is none keeps its backslash. */
function unescaped(text: string): string {
  return text.replaceAll(
    /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([0-7]{1,3})|([xuUN])|(.))/gsu,
    (match, x, u, long, octal, broken, other: string | undefined) => {
      if (broken !== undefined) throw new TemplateError(`${match} in a text is no escape that can be read`);
      const hex: string | undefined = x ?? u ?? long;
      if (hex !== undefined) {
        const code = Number.parseInt(hex, 16);
        if (code > 0x10ffff) throw new TemplateError(`${match} is no character`);
        return code < 0x10000 ? String.fromCharCode(code) : String.fromCodePoint(code);
      }
      if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
      return ESCAPES[other!] ?? match;
    },
  );
}
