/** The name `loop` within a loop. */

import type { Meter } from './meter.ts';
import { equals } from './operators.ts';
import { type Arguments, Attributes, bind, Callable, TemplateError, Undefined, type Value } from './values.ts';

/**
 * What `loop` is in each iteration.
 * @param depth of the recursion, from 0
 * @param recurse renders the same loop over other items, where the loop is a recursive one
 */
export function createLoop(
  meter: Meter,
  items: readonly Value[],
  depth: number,
  recurse: ((items: Value) => Value) | undefined,
): (index: number) => Value {
  const { length } = items;
  let changed: readonly Value[] | undefined;
  const hasChanged = new Callable('changed', ({ positional }) => {
    const before = changed;
    changed = positional;
    const isSame =
      before?.length === positional.length && positional.every((value, at) => equals(meter, value, before[at]!));
    return !isSame;
  });
  const call = (args: Arguments): Value => {
    if (recurse !== undefined) return recurse(bind('loop', args, ['iterable'], 1)[0]!);
    throw new TemplateError("The loop must have the 'recursive' marker to be called recursively.");
  };
  return (index) => {
    const cycle = new Callable('cycle', ({ positional }) => {
      if (positional.length === 0) throw new TemplateError('no items for cycling given');
      return positional[index % positional.length]!;
    });
    const attributes = new Map<string, Value>([
      ['index', index + 1],
      ['index0', index],
      ['revindex', length - index],
      ['revindex0', length - index - 1],
      ['first', index === 0],
      ['last', index === length - 1],
      ['length', length],
      ['depth', depth + 1],
      ['depth0', depth],
      ['previtem', index > 0 ? items[index - 1]! : new Undefined('there is no previous item')],
      ['nextitem', index + 1 < length ? items[index + 1]! : new Undefined('there is no next item')],
      ['cycle', cycle],
      ['changed', hasChanged],
    ]);
    return new Attributes('LoopContext', attributes, call);
  };
}
