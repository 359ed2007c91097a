/**
 * The template language, against what Python's jinja2 3.1.6 makes of each case under the settings of the transformers
 * library: its text, or null where it raises an error.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { REPOSITORY } from '../../bench/repository.ts';
import { parseTemplate, renderTemplate, TemplateLimit } from '../../src/chat/jinja.ts';

type Rows = readonly (readonly [string, string | null])[];

const cases = JSON.parse(readFileSync(join(REPOSITORY, 'test/chat/jinja-cases.json'), 'utf8')) as {
  readonly expressionVariables: Record<string, unknown>;
  readonly statementVariables: Record<string, unknown>;
  readonly expressions: Rows;
  readonly statements: Rows;
  readonly whiteSpace: Rows;
};

function rendered(source: string, variables: Readonly<Record<string, unknown>> = {}): string {
  return renderTemplate(parseTemplate(source), variables, new Date(2024, 6, 4, 15, 7, 9));
}

function check(rows: Rows, variables: Readonly<Record<string, unknown>>, wrap = (source: string) => source): void {
  assert.ok(rows.length > 150);
  for (const [source, expected] of rows) {
    if (expected === null) assert.throws(() => rendered(wrap(source), variables), undefined, source);
    else assert.is(rendered(wrap(source), variables), expected, source);
  }
}

test('expressions: operators, filters, tests, methods', () => {
  check(cases.expressions, cases.expressionVariables, (source) => `{{ ${source} }}`);
});

test('statements and scopes', () => check(cases.statements, cases.statementVariables));

test('white space around tags', () => check(cases.whiteSpace, {}));

test('errors say what is wrong, and where a template cannot be read', () => {
  const reasons: [string, RegExp][] = [
    ['a\n{% if x %}b', /^line 2: found the end of the template, expected {% endif %}$/],
    ['{{ 1 +\n }}', /^line 2: found }}, expected an expression$/],
    ['{% include "x" %}', /chat templates have no {% include %}/],
    ['{% frobnicate %}', /there is no statement {% frobnicate %}/],
    ['{{ x.y }}', /'x' is undefined/],
    ['{{ {}.a.b }}', /'dict object' has no attribute 'a'/],
    ["{{ 'a' + 1 }}", /can only concatenate str \(not "int"\) to str/],
    ["{{ 'a' | frobnicate }}", /No filter named 'frobnicate'/],
    ["{{ 'a' is frobnicate }}", /No test named 'frobnicate'/],
    ["{{ 'a' | pprint }}", /the filter pprint is one of Jinja's that apr does not offer/],
    ["{{ 'a'.encode() }}", /str.encode is a method of Python's that apr does not offer/],
    ['{{ 2 ** 60 }}', /beyond 2\^53/],
  ];
  for (const [source, reason] of reasons) {
    assert.throws(
      () => rendered(source),
      (error: unknown) => error instanceof Error && reason.test(error.message),
      source,
    );
  }
});

test('what a template may spend is bounded', () => {
  for (const source of [
    "{{ 'a' * 100000000 }}",
    "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    '{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}',
    '{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}',
    '{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}' +
      '{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}',
    '{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}',
    '{% for i in range(100000000) %}{% endfor %}',
    '{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}',
    "{% set s = 'a' * 60000000 %}{% for i in range(99999) %}{{ s | upper | length }}{% endfor %}",
    "{% set s = 'a' * 60000000 %}{{ s | replace('a', s) }}",
    "{{ 'a'.center(100000000) }}",
    '{{ [1] | batch(100000000, 1) | list }}',
  ]) {
    assert.throws(
      () => rendered(source),
      (error: unknown) => error instanceof TemplateLimit,
      source,
    );
  }
});

test('what a template was handed stays as it was', () => {
  const variables = { d: { a: 1 }, l: [1] };
  assert.is(
    rendered('{% set _ = d.update(a=2) %}{% set _ = l.append(2) %}{{ d }}{{ l }}', variables),
    "{'a': 2}[1, 2]",
  );
  assert.equal(variables, { d: { a: 1 }, l: [1] });
});

test.run();
