/**
 * Jinja for chat templates: the language as Python's jinja2 3.1 has it, under the settings of the transformers library,
 * for which the templates in model files are written. Values behave as Python's do (src/chat/jinja/values.ts), since
 * that is what templates count on: `'1' == 1` is false, `1 / 2` a float, `d.items` a method before it is a key.
 */

import { type HiddenNames, hiddenNames } from './jinja/frames.ts';
import { globals, TemplateRefusal, toValue } from './jinja/globals.ts';
import { Interpreter } from './jinja/interpreter.ts';
import { boundSource, Meter, TemplateLimit } from './jinja/meter.ts';
import { parse } from './jinja/parser.ts';
import { Scope } from './jinja/scope.ts';
import type { Block, Filter } from './jinja/syntax.ts';

export { TemplateLimit, TemplateRefusal };

/** A template that has been read. */
export interface Program {
  readonly body: Block;
  readonly hidden: HiddenNames;
}

/** @throws TemplateLimit for one that is too long, Error when it cannot be parsed */
export function parseTemplate(template: string): Program {
  boundSource(template);
  const body = parse(template);
  return { body, hidden: hiddenNames(body) };
}

/**
 * Whether the template asks its caller for one of these variables: it reads one, and does not merely set it for itself.
 */
export function asksFor(program: Program, names: readonly string[]): boolean {
  const read = new Set<unknown>();
  const set = new Set<unknown>();
  const tested = new Set<unknown>();
  const pending: unknown[] = [program.body];
  while (pending.length > 0) {
    const node = pending.pop();
    if (typeof node !== 'object' || node === null) continue;
    const { type, name, operand, filter } = node as Readonly<Record<string, unknown>>;
    if (type === 'name') read.add(name);
    if (type === 'variable') set.add(name);
    const isDefault = type === 'filter' && ['default', 'd'].includes((filter as Filter).name);
    if (type === 'test' || isDefault) tested.add((operand as { readonly name?: unknown }).name);
    pending.push(...Object.values(node));
  }
  return names.some((name) => read.has(name) && (!set.has(name) || tested.has(name)));
}

/** Texts that stand in the template's expressions. */
export function textConstants(program: Program): string[] {
  const texts = new Set<string>();
  const pending: unknown[] = [program.body];
  while (pending.length > 0) {
    const node = pending.pop();
    if (typeof node !== 'object' || node === null) continue;
    const { type, value } = node as Readonly<Record<string, unknown>>;
    if (type === 'constant' && typeof value === 'string' && value !== '') texts.add(value);
    pending.push(...Object.values(node));
  }
  return [...texts];
}

/**
 * Text of a parsed template.
 * @throws TemplateRefusal, TemplateLimit, Error
 */
export function renderTemplate(program: Program, variables: Readonly<Record<string, unknown>>, now: Date): string {
  const interpreter = new Interpreter(new Meter(), program.hidden);
  const outer = new Scope();
  for (const [name, value] of globals(interpreter, now)) outer.set(name, value);
  for (const [name, value] of Object.entries(variables)) outer.set(name, toValue(value));
  return interpreter.render(program.body, outer);
}
