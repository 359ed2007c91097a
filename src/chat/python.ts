/** What Python's own functions do, where templates count on them. */

/** A value of the interpreter. */
export interface Value {
  readonly type: string;
  readonly value: unknown;
}

/** `str(value)` */
export function toText(value: Value): string {
  return value.type === 'StringValue' ? String(value.value) : toRepresentation(value);
}

/** `repr(value)`; nesting is as deep as what the template was handed or could write down. */
function toRepresentation(value: Value): string {
  switch (value.type) {
    case 'StringValue':
      return quoted(String(value.value));
    case 'BooleanValue':
      return value.value === true ? 'True' : 'False';
    case 'NullValue':
      return 'None';
    case 'UndefinedValue':
      return '';
    case 'ArrayValue':
      return `[${(value.value as readonly Value[]).map(toRepresentation).join(', ')}]`;
    case 'TupleValue': {
      const items = (value.value as readonly Value[]).map(toRepresentation);
      return `(${items.join(', ')}${items.length === 1 ? ',' : ''})`;
    }
    case 'ObjectValue': {
      const entries = [...(value.value as ReadonlyMap<string, Value>)];
      return `{${entries.map(([key, item]) => `${quoted(key)}: ${toRepresentation(item)}`).join(', ')}}`;
    }
    default:
      return String(value);
  }
}

const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\\': '\\\\' };

function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const body = text.replaceAll(/[\\\n\r\t]/g, (character) => ESCAPES[character]!);
  return quote + (quote === "'" ? body.replaceAll("'", "\\'") : body) + quote;
}

/** `text.strip(characters)`, at one end or at both. */
export function strip(text: string, characters: string, name: 'strip' | 'lstrip' | 'rstrip'): string {
  const set = new Set(characters);
  const letters = Array.from(text);
  let start = 0;
  let end = letters.length;
  if (name !== 'rstrip') while (start < end && set.has(letters[start]!)) start++;
  if (name !== 'lstrip') while (end > start && set.has(letters[end - 1]!)) end--;
  return letters.slice(start, end).join('');
}

/**
 * `text.format(…)` with plain fields: `{}`, `{0}`, `{name}`.
 * @throws Error for a field that is not given, or that asks for more than a value
 */
export function format(text: string, positional: readonly Value[], named: ReadonlyMap<string, Value>): string {
  let next = 0;
  return text.replaceAll(/\{\{|\}\}|\{([^{}]*)\}|[{}]/g, (match, field: string | undefined) => {
    if (match === '{{' || match === '}}') return match[0]!;
    if (field === undefined) throw new Error(`format() found a single "${match}"`);
    const value =
      field === '' ? positional[next++] : /^\d+$/.test(field) ? positional[Number(field)] : named.get(field);
    if (value === undefined) throw new Error(`format() has no value for ${match}`);
    return toText(value);
  });
}

const HTML: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&#34;', "'": '&#39;' };

/** Jinja's `escape`. */
export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => HTML[character]!);
}
