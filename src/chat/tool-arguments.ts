/**
 * Arguments of calls in a conversation. The OpenAI API has them as JSON text, the transformers library as an object, and
 * most templates print one of the two only: of a text they make a text within quotes, or they fail.
 */

import type { PlainMessage } from './messages.ts';

/** What a template prints as the arguments that they are; `either` also where it prints none. */
export type ArgumentForm = 'object' | 'text' | 'either';

/** The name of an argument that no template has of its own. */
const PROBE = 'which_form_is_this';

/**
 * Found out by trying, as llama.cpp does.
 * @param render a conversation and its tools as the template has them
 */
export function argumentForm(render: (messages: unknown, tools: unknown) => string): ArgumentForm {
  const shows = (value: unknown): boolean => {
    const call = { id: 'call00000', type: 'function', function: { name: 'probe', arguments: value } };
    const messages = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: '', tool_calls: [call] },
    ];
    const parameters = { type: 'object', properties: {} };
    const tools = [{ type: 'function', function: { name: 'probe', description: 'x', parameters } }];
    try {
      const rendered = render(messages, tools);
      // Quotes with a backslash are those of JSON within JSON.
      return rendered.includes(PROBE) && !rendered.includes(`\\"${PROBE}`);
    } catch {
      // What is wrong with it is said when the conversation itself is rendered.
      return false;
    }
  };
  const object = shows({ [PROBE]: 'x' });
  const text = shows(JSON.stringify({ [PROBE]: 'x' }));
  if (object === text) return 'either';
  return object ? 'object' : 'text';
}

/** Whether there is a call, and so a reason to find the form out. */
export function hasCalls(messages: readonly PlainMessage[]): boolean {
  return messages.some(({ tool_calls: calls }) => Array.isArray(calls) && calls.length > 0);
}

/** The messages with the arguments of their calls in that form; what is no JSON object stays as it is. */
export function withArguments(messages: readonly PlainMessage[], form: ArgumentForm): readonly PlainMessage[] {
  if (form === 'either') return messages;
  const convert = form === 'object' ? toObject : toText;
  const converted = (holder: Holder): Holder =>
    holder.arguments === undefined ? holder : { ...holder, arguments: convert(holder.arguments) };
  return messages.map((message) => {
    const { tool_calls: calls } = message;
    if (!Array.isArray(calls)) return message;
    const own = (call: unknown): unknown => {
      if (!isObject(call)) return call;
      // Templates take a call without the object around it too.
      return isObject(call.function) ? { ...call, function: converted(call.function) } : converted(call);
    };
    return { ...message, tool_calls: calls.map(own) as PlainMessage['tool_calls'] };
  });
}

type Holder = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is Holder {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function toObject(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  // Some programs write nothing at all where there are no arguments.
  if (value.trim() === '') return {};
  try {
    const parsed: unknown = JSON.parse(value);
    return isObject(parsed) ? parsed : value;
  } catch {
    return value;
  }
}

function toText(value: unknown): unknown {
  return isObject(value) ? JSON.stringify(value) : value;
}
