/** One line of a batch: what it asks for, checked before the model sees it. */

import { AprError } from '../../src/errors.ts';
import type { ChatMessage, GenerateRequest } from '../../src/index.ts';
import { RUN_OPTIONS } from '../commands/run-options.ts';
import { expectation, type NumberOption, quote } from '../options.ts';

export type TaskId = string | number;

/** What a line says; what it leaves out the command line says. */
export interface Task extends Pick<GenerateRequest, 'maxTokens' | 'temperature' | 'topP' | 'seed' | 'stop'> {
  readonly prompt?: string;
  readonly messages?: readonly ChatMessage[];
}

type Fields = Readonly<Record<string, unknown>>;

const NUMBERS = {
  max_tokens: ['maxTokens', RUN_OPTIONS['max-tokens']],
  temperature: ['temperature', RUN_OPTIONS.temperature],
  top_p: ['topP', RUN_OPTIONS['top-p']],
  seed: ['seed', RUN_OPTIONS.seed],
} as const satisfies Record<string, readonly [keyof Task, NumberOption]>;

const KEYS = ['task_id', 'prompt', 'messages', ...Object.keys(NUMBERS), 'stop'];
const MESSAGE_KEYS = ['role', 'content', 'reasoning_content', 'tool_calls', 'tool_call_id', 'name'];
const MESSAGE_TEXTS = ['reasoning_content', 'tool_call_id', 'name'];

/** @throws AprError USAGE for a line that is not a JSON object */
export function parseObject(line: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    const message = `the line is ${quote(line)}, which is not JSON; expected an object such as {"prompt": "…"}`;
    throw new AprError('USAGE', message, {}, { cause });
  }
  if (!isObject(value)) refuse('the line', value, 'a JSON object');
  const twice = repeatedKey(line);
  if (twice !== undefined) {
    throw new AprError('USAGE', `the line has the key ${quote(twice)} twice; give it once`, {
      key: twice.slice(0, 100),
    });
  }
  return value;
}

/** A key of the object itself that stands in it more than once: JSON.parse keeps the last without a word. */
function repeatedKey(json: string): string | undefined {
  const seen = new Set<string>();
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    const character = json[at];
    if (character === '{' || character === '[') depth++;
    else if (character === '}' || character === ']') depth--;
    else if (character === '"') {
      const start = at;
      do at = json.indexOf('"', at + 1);
      while (isEscaped(json, at));
      if (depth !== 1 || !/^\s*:/.test(json.slice(at + 1, at + 100))) continue;
      const key = JSON.parse(json.slice(start, at + 1)) as string;
      if (seen.has(key)) return key;
      seen.add(key);
    }
  }
  return undefined;
}

/** Whether an odd number of backslashes stands before. */
function isEscaped(json: string, at: number): boolean {
  let before = at;
  while (json[before - 1] === '\\') before--;
  return (at - before) % 2 === 1;
}

const MAX_ID_LENGTH = 1024;

/** The line's own name, where it has a proper one: for its result, whatever else is wrong with it. */
export function taskIdOf({ task_id: id }: Fields): TaskId | undefined {
  if (typeof id === 'string') return id.length <= MAX_ID_LENGTH ? id : undefined;
  // A whole number that JavaScript would round comes back as another one.
  const exact = typeof id === 'number' && Number.isFinite(id) && (!Number.isInteger(id) || Number.isSafeInteger(id));
  return exact ? id : undefined;
}

/** @throws AprError USAGE naming the key, what was found and what was expected */
export function parseTask(line: Fields): Task {
  refuseUnknown(line, KEYS, '');
  // As other programs write what they leave out.
  const fields: Fields = Object.fromEntries(Object.entries(line).filter(([, value]) => value !== null));
  if (fields.task_id !== undefined && taskIdOf(fields) === undefined) {
    const expected = `a text of ${MAX_ID_LENGTH} characters at most, or a number below 2^53; as a text it may be any number`;
    refuse('task_id', fields.task_id, expected);
  }
  const { prompt, messages, stop } = fields;
  if ((prompt === undefined) === (messages === undefined)) {
    const found = prompt === undefined ? 'neither' : 'both';
    throw new AprError('USAGE', `the line has ${found} of prompt and messages, expected one of them`);
  }
  if (prompt !== undefined && typeof prompt !== 'string') refuse('prompt', prompt, 'a text');
  if (messages !== undefined) checkMessages(messages);
  if (stop !== undefined) checkStop(stop);
  const numbers: Record<string, number> = {};
  for (const [key, [name, option]] of Object.entries(NUMBERS)) {
    const value = fields[key];
    if (value === undefined) continue;
    const fits = typeof value === 'number' && value >= option.min && value <= option.max;
    if (!fits || (option.kind === 'integer' && !Number.isInteger(value))) refuse(key, value, expectation(option));
    numbers[name] = value;
  }
  return {
    ...(prompt === undefined ? {} : { prompt }),
    ...(messages === undefined ? {} : { messages }),
    ...(stop === undefined ? {} : { stop: typeof stop === 'string' ? [stop] : stop }),
    ...numbers,
  };
}

function checkMessages(messages: unknown): asserts messages is ChatMessage[] {
  if (!Array.isArray(messages) || messages.length === 0) {
    refuse('messages', messages, 'an array of {role, content} that is not empty');
  }
  messages.forEach((message: unknown, index) => {
    const place = `messages[${index}]`;
    if (!isObject(message)) refuse(place, message, 'an object with role and content');
    refuseUnknown(message, MESSAGE_KEYS, `${place}.`);
    const { role, content, tool_calls: calls } = message;
    if (typeof role !== 'string' || role === '') refuse(`${place}.role`, role, 'a text such as "user"');
    if (Array.isArray(content)) {
      content.forEach((part: unknown, at) => {
        if (isObject(part) && part.type === 'text' && typeof part.text === 'string') return;
        refuse(`${place}.content[${at}]`, part, '{"type": "text", "text": …}');
      });
    } else if (typeof content !== 'string' && !(content === null && calls !== undefined)) {
      refuse(`${place}.content`, content, 'a text, an array of text parts, or null beside tool_calls');
    }
    if (calls !== undefined && !(Array.isArray(calls) && calls.every(isObject))) {
      refuse(`${place}.tool_calls`, calls, 'an array of objects');
    }
    for (const key of MESSAGE_TEXTS) {
      const value = message[key];
      if (value !== undefined && typeof value !== 'string') refuse(`${place}.${key}`, value, 'a text');
    }
  });
}

function checkStop(stop: unknown): asserts stop is string | string[] {
  const texts: unknown[] = Array.isArray(stop) ? stop : [stop];
  const index = texts.findIndex((text) => typeof text !== 'string' || text === '');
  if (index === -1) return;
  const expected = 'a text that is not empty, or an array of such';
  refuse(
    Array.isArray(stop) ? `stop[${index}]` : 'stop',
    texts[index],
    Array.isArray(stop) ? expected.split(',')[0]! : expected,
  );
}

function refuseUnknown(fields: Fields, known: readonly string[], place: string): void {
  const key = Object.keys(fields).find((name) => !known.includes(name));
  if (key === undefined) return;
  const message = `unknown key ${quote(`${place}${key}`)}, expected one of ${known.join(', ')}`;
  throw new AprError('USAGE', message, { key: `${place}${key}`.slice(0, 100) });
}

function refuse(key: string, value: unknown, expected: string): never {
  const found = describe(value);
  const verb = value === undefined ? `${key} is missing` : `${key} is ${found}`;
  throw new AprError('USAGE', `${verb}, expected ${expected}`, { key, found, expected });
}

/** A value from a line, in a few words. */
function describe(value: unknown): string {
  if (typeof value === 'string') return quote(value);
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : 'an array';
  return isObject(value) ? 'an object' : String(value);
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
