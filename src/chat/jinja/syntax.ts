/** The syntax tree of a template. */

import type { Float } from './values.ts';

export interface CallArguments {
  readonly positional: readonly Expression[];
  readonly named: readonly (readonly [string, Expression])[];
  /** `*list` and `**dict` */
  readonly list: Expression | undefined;
  readonly dict: Expression | undefined;
}

export interface Filter {
  readonly name: string;
  readonly args: CallArguments;
}

export type Expression =
  | { readonly type: 'constant'; readonly value: string | number | boolean | null | Float }
  | { readonly type: 'name'; readonly name: string }
  | { readonly type: 'list' | 'tuple'; readonly items: readonly Expression[] }
  | { readonly type: 'dict'; readonly pairs: readonly (readonly [Expression, Expression])[] }
  | { readonly type: 'attribute'; readonly object: Expression; readonly name: string }
  | { readonly type: 'item'; readonly object: Expression; readonly key: Expression }
  | {
      readonly type: 'slice';
      readonly object: Expression;
      readonly start: Expression | undefined;
      readonly stop: Expression | undefined;
      readonly step: Expression | undefined;
    }
  | { readonly type: 'call'; readonly callee: Expression; readonly args: CallArguments }
  | { readonly type: 'filter'; readonly operand: Expression; readonly filter: Filter }
  | { readonly type: 'test'; readonly operand: Expression; readonly name: string; readonly args: CallArguments }
  | { readonly type: 'unary'; readonly operator: 'not' | '-' | '+'; readonly operand: Expression }
  | { readonly type: 'logical'; readonly operator: 'and' | 'or'; readonly left: Expression; readonly right: Expression }
  | { readonly type: 'binary'; readonly operator: string; readonly left: Expression; readonly right: Expression }
  | {
      readonly type: 'compare';
      readonly first: Expression;
      readonly rest: readonly (readonly [string, Expression])[];
    }
  | {
      readonly type: 'conditional';
      readonly condition: Expression;
      readonly yes: Expression;
      readonly no: Expression | undefined;
    };

/** What can be assigned to. */
export type Target =
  | { readonly type: 'variable'; readonly name: string }
  | { readonly type: 'variables'; readonly items: readonly Target[] }
  | { readonly type: 'member'; readonly object: string; readonly name: string };

export interface Parameter {
  readonly name: string;
  readonly fallback: Expression | undefined;
}

export type Block = readonly Statement[];

export type Statement =
  | { readonly type: 'data'; readonly text: string }
  | { readonly type: 'print'; readonly value: Expression }
  | {
      readonly type: 'if';
      readonly branches: readonly (readonly [Expression, Block])[];
      readonly otherwise: Block;
    }
  | {
      readonly type: 'for';
      readonly target: Target;
      readonly iterable: Expression;
      readonly condition: Expression | undefined;
      readonly isRecursive: boolean;
      readonly body: Block;
      readonly otherwise: Block;
    }
  | { readonly type: 'set'; readonly target: Target; readonly value: Expression }
  | {
      readonly type: 'setBlock';
      readonly target: Target;
      readonly filters: readonly Filter[];
      readonly body: Block;
    }
  | { readonly type: 'macro'; readonly name: string; readonly parameters: readonly Parameter[]; readonly body: Block }
  | {
      readonly type: 'callBlock';
      readonly call: Expression & { readonly type: 'call' };
      readonly parameters: readonly Parameter[];
      readonly body: Block;
    }
  | { readonly type: 'filterBlock'; readonly filters: readonly Filter[]; readonly body: Block }
  | {
      readonly type: 'with';
      readonly bindings: readonly (readonly [Target, Expression])[];
      readonly body: Block;
    }
  | { readonly type: 'break' | 'continue' };
