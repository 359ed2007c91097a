/** The functions that templates can call. */

import { strftime } from '../strftime.ts';
import { entriesOf } from './attributes.ts';
import type { Runtime } from './interpreter.ts';
import { textOf } from './text.ts';
import { expectInteger, expectText } from './text-methods.ts';
import {
  type Arguments,
  Attributes,
  bind,
  Callable,
  Dict,
  Float,
  List,
  Namespace,
  Range,
  TemplateError,
  Undefined,
  type Value,
} from './values.ts';

/** Raised by the template itself through `raise_exception`. */
export class TemplateRefusal extends Error {}

/** @param now what `strftime_now` writes, in local time */
export function globals(runtime: Runtime, now: Date): ReadonlyMap<string, Value> {
  const functions: Readonly<Record<string, (args: Arguments) => Value>> = {
    raise_exception: (args) => {
      throw new TemplateRefusal(textOf(runtime.meter, bind('raise_exception', args, ['message'], 1)[0]!));
    },
    strftime_now: (args) => strftime(now, expectText('strftime_now', bind('strftime_now', args, ['format'], 1)[0])),
    range: (args) => range(runtime, args),
    dict: (args) => new Dict(merged(runtime, 'dict', args)),
    namespace: (args) => new Namespace(new Map(merged(runtime, 'namespace', args))),
    joiner: (args) => joiner(args),
    cycler: (args) => cycler(args),
  };
  return new Map(Object.entries(functions).map(([name, call]) => [name, new Callable(name, call)]));
}

function range({ meter }: Runtime, args: Arguments): Value {
  const [first, second, third] = bind('range', args, ['start', 'stop', 'step'], 1).map((value) =>
    value === undefined ? undefined : expectInteger('range', value),
  );
  if (third === 0) throw new TemplateError('range() arg 3 must not be zero');
  const values = second === undefined ? new Range(0, first!, 1) : new Range(first!, second, third ?? 1);
  meter.items(values.length);
  return values;
}

/** Entries of a mapping or of pairs, and those that are named. */
function merged(runtime: Runtime, what: string, { positional, named }: Arguments): [string, Value][] {
  if (positional.length > 1) throw new TemplateError(`${what} expected at most 1 argument, got ${positional.length}`);
  const [source] = positional;
  const entries = source === undefined ? [] : entriesOf(runtime, source);
  return [...(entries as readonly (readonly [string, Value])[]), ...named].map(([key, value]) => [key, value]);
}

/** Gives nothing when first called, and the separator from then on. */
function joiner(args: Arguments): Value {
  const [separator = ', '] = bind('joiner', args, ['sep']);
  let isFirst = true;
  return new Callable('joiner', () => {
    const text = isFirst ? '' : separator;
    isFirst = false;
    return text;
  });
}

function cycler({ positional }: Arguments): Value {
  if (positional.length === 0) throw new TemplateError('at least one item has to be provided');
  let at = 0;
  const attributes = new Map<string, Value>();
  const update = (): void => {
    attributes.set('current', positional[at % positional.length]!);
  };
  const next = new Callable('next', () => {
    const value = positional[at % positional.length]!;
    at++;
    update();
    return value;
  });
  const reset = new Callable('reset', () => {
    at = 0;
    update();
    return null;
  });
  update();
  attributes.set('next', next);
  attributes.set('reset', reset);
  return new Attributes('Cycler', attributes);
}

/**
 * A value for the template from what JSON can say.
 * @throws TemplateError for anything else
 */
export function toValue(input: unknown): Value {
  switch (typeof input) {
    case 'string':
    case 'boolean':
      return input;
    case 'number':
      return Number.isSafeInteger(input) && !Object.is(input, -0) ? input : new Float(input);
    case 'undefined':
      return new Undefined('a value that is not given is undefined');
    case 'object':
      if (input === null) return null;
      if (Array.isArray(input)) return new List(input.map(toValue));
      return new Dict(Object.entries(input).map(([key, value]) => [key, toValue(value)] as const));
    default:
      throw new TemplateError(`a ${typeof input} cannot be handed to a template`);
  }
}
