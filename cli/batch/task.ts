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
    const message = `the line is ${quote(line)}, which is not JSON (${(cause as Error).message}); expected an object`;
    throw new AprError('USAGE', message, {}, { cause });
  }
  if (!isObject(value)) refuse('the line', value, 'a JSON object');
  return value;
}

/** The line's own name, where it has a proper one: for its result, whatever else is wrong with it. */
export function taskIdOf({ task_id: id }: Fields): TaskId | undefined {
  return typeof id === 'string' || typeof id === 'number' ? id : undefined;
}

/** @throws AprError USAGE naming the key, what was found and what was expected */
export function parseTask(fields: Fields): Task {
  refuseUnknown(fields, KEYS, '');
  if (fields.task_id !== undefined && taskIdOf(fields) === undefined) {
    refuse('task_id', fields.task_id, 'a text or a number');
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
