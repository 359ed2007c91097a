/** `json.dumps`, as the filter `tojson` of the transformers library calls it. */

import type { Meter } from './meter.ts';
import { compareText, floatText } from './text.ts';
import { Dict, Float, List, TemplateError, Tuple, typeName, type Value } from './values.ts';

export interface JsonOptions {
  /** What one more level is set in by; undefined writes everything on one line. */
  readonly indent: string | undefined;
  readonly itemSeparator: string;
  readonly keySeparator: string;
  readonly sortKeys: boolean;
  readonly ensureAscii: boolean;
}

/** @throws TemplateError for what JSON cannot say */
export function toJson(meter: Meter, value: Value, options: JsonOptions, depth = 0): string {
  meter.step();
  if (value === null) return 'null';
  if (typeof value === 'boolean' || typeof value === 'number') return String(value);
  if (typeof value === 'string') return jsonText(value, options.ensureAscii);
  if (value instanceof Float) return jsonFloat(value.value);
  if (value instanceof List || value instanceof Tuple) {
    const items = value.items.map((item) => toJson(meter, item, options, depth + 1));
    return enclosed('[', items, ']', options, depth);
  }
  if (!(value instanceof Dict)) {
    throw new TemplateError(`Object of type ${typeName(value)} is not JSON serializable`);
  }
  const entries = value.entries().map(([key, item]) => [keyText(key), item] as const);
  if (options.sortKeys) entries.sort(([one], [other]) => compareText(one, other));
  const items = entries.map(
    ([key, item]) =>
      jsonText(key, options.ensureAscii) + options.keySeparator + toJson(meter, item, options, depth + 1),
  );
  return enclosed('{', items, '}', options, depth);
}

function enclosed(open: string, items: readonly string[], close: string, options: JsonOptions, depth: number): string {
  if (items.length === 0) return open + close;
  const { indent, itemSeparator } = options;
  if (indent === undefined) return open + items.join(itemSeparator) + close;
  const outer = `\n${indent.repeat(depth)}`;
  const inner = outer + indent;
  return open + inner + items.join(itemSeparator + inner) + outer + close;
}

function keyText(key: Value): string {
  if (typeof key === 'string') return key;
  if (key === null) return 'null';
  if (typeof key === 'boolean' || typeof key === 'number') return String(key);
  if (key instanceof Float) return jsonFloat(key.value);
  throw new TemplateError(`keys must be str, int, float, bool or None, not ${typeName(key)}`);
}

function jsonFloat(value: number): string {
  if (Number.isFinite(value)) return floatText(value);
  return Number.isNaN(value) ? 'NaN' : value > 0 ? 'Infinity' : '-Infinity';
}

function jsonText(text: string, ensureAscii: boolean): string {
  const json = JSON.stringify(text);
  if (!ensureAscii) return json;
  // Not the planes for private use: what stands in for special tokens of users is taken from there.
  return json.replaceAll(/[\x7f-\ud7ff\ue000-\uffff]|[\ud800-\udb7f][\udc00-\udfff]/g, (character) =>
    Array.from({ length: character.length }, (_, at) => character.charCodeAt(at).toString(16).padStart(4, '0'))
      .map((hex) => `\\u${hex}`)
      .join(''),
  );
}
