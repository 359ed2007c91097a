/** Messages of a conversation, as the OpenAI API has them, made ready for a template. */

import type { ChatMessage } from '../engine.ts';
import { AprError } from '../errors.ts';

/** A message whose content is one text, or null where the template is to see that there is none. */
export type PlainMessage = Omit<ChatMessage, 'content'> & { readonly content: string | null };

/**
 * Messages with the parts of their contents joined by line ends, as llama.cpp joins them.
 * @throws AprError USAGE naming the message, and what is wrong with it
 */
export function plainMessages(messages: readonly ChatMessage[]): PlainMessage[] {
  if (messages.length === 0) throw new AprError('USAGE', 'messages is empty, expected at least one message');
  return messages.map((message, index) => {
    const name = `messages[${index}]`;
    if (typeof message !== 'object' || message === null) {
      throw new AprError('USAGE', `${name} is ${kindOf(message)}, expected an object with role and content`);
    }
    if (typeof message.role !== 'string') {
      throw new AprError('USAGE', `${name}.role is ${kindOf(message.role)}, expected text`);
    }
    return { ...message, content: plainContent(message, name) };
  });
}

function plainContent(message: ChatMessage, name: string): string | null {
  const content: unknown = message.content;
  if (typeof content === 'string') return content;
  if (Array.isArray(content)) return content.map((part, at) => textOf(part, `${name}.content[${at}]`)).join('\n');
  const isAbsent = content === null || content === undefined;
  const { tool_calls: calls } = message;
  if (isAbsent && message.role === 'assistant' && Array.isArray(calls) && calls.length > 0) return null;
  const expected = 'expected text or an array of text parts';
  const hint = isAbsent ? '; only an assistant with tool_calls may go without' : '';
  throw new AprError('USAGE', `${name}.content is ${kindOf(content)}, ${expected}${hint}`);
}

function textOf(part: unknown, name: string): string {
  const { type, text } = (typeof part === 'object' && part !== null ? part : {}) as Readonly<Record<string, unknown>>;
  if (type === 'text' && typeof text === 'string') return text;
  if (type === 'text') throw new AprError('USAGE', `${name}.text is ${kindOf(text)}, expected text`);
  const found = typeof type === 'string' ? `of type ${JSON.stringify(type.slice(0, 80))}` : 'no part that has a type';
  throw new AprError('USAGE', `${name} is ${found}, expected {type: "text", text}; models here read text only`);
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (value === undefined) return 'missing';
  return Array.isArray(value) ? 'an array' : typeof value;
}
