/** Names and what they stand for. */

import type { Value } from './values.ts';

/** Each loop's iteration, macro and block has its own names, and sees those around it. */
export class Scope {
  readonly #names = new Map<string, Value>();
  readonly #outer: Scope | undefined;

  constructor(outer?: Scope) {
    this.#outer = outer;
  }

  get(name: string): Value | undefined {
    let scope: Scope | undefined = this;
    while (scope !== undefined) {
      const value = scope.#names.get(name);
      if (value !== undefined) return value;
      scope = scope.#outer;
    }
    return undefined;
  }

  set(name: string, value: Value): void {
    this.#names.set(name, value);
  }
}
