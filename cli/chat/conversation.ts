/** What was said: a system message, and turns that each begin with a message of the user. */

import { AprError } from '../../src/errors.ts';
import type { ChatMessage } from '../../src/index.ts';

export class Conversation {
  system: string | undefined;
  #turns: ChatMessage[][] = [];

  constructor(system: string | undefined) {
    this.system = system;
  }

  get turnCount(): number {
    return this.#turns.length;
  }

  messages(): ChatMessage[] {
    const system: ChatMessage[] = this.system === undefined ? [] : [{ role: 'system', content: this.system }];
    return [...system, ...this.#turns.flat()];
  }

  /** Begins a turn. One that has no answer, since it was stopped or failed, makes room for it. */
  ask(content: string): void {
    if (this.#turns.at(-1)?.length === 1) this.#turns.pop();
    this.#turns.push([{ role: 'user', content }]);
  }

  answer(content: string): void {
    this.#turns.at(-1)?.push({ role: 'assistant', content });
  }

  /** Takes the last turn's answer back, and returns the turn as it was; undefined when there is none. */
  unanswer(): readonly ChatMessage[] | undefined {
    const last = this.#turns.pop();
    if (last !== undefined) this.#turns.push(last.slice(0, 1));
    return last;
  }

  /** The last turn as it was before {@link unanswer}. */
  restore(turn: readonly ChatMessage[]): void {
    this.#turns.pop();
    this.#turns.push([...turn]);
  }

  dropOldest(): void {
    this.#turns.shift();
  }

  clear(): void {
    this.#turns = [];
  }

  /** Takes the place of what was said. @throws AprError BAD_FORMAT */
  replace(messages: readonly ChatMessage[], name: string): void {
    const [first, ...others] = messages;
    const system = first?.role === 'system' && typeof first.content === 'string' ? first.content : undefined;
    const rest = system === undefined ? messages : others;
    if (rest.length > 0 && rest[0]?.role !== 'user') {
      const message = `${name}: the first message is of role ${JSON.stringify(rest[0]?.role)}, expected "user"`;
      throw new AprError('BAD_FORMAT', message, { path: name });
    }
    const turns: ChatMessage[][] = [];
    for (const message of rest) {
      if (message.role === 'user') turns.push([message]);
      else turns.at(-1)?.push(message);
    }
    this.system = system;
    this.#turns = turns;
  }
}

/** A conversation as a file holds it. @throws AprError BAD_FORMAT naming what is wrong */
export function parseConversation(text: string, name: string): ChatMessage[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const message = `${name}: is not JSON (${reason}), expected a conversation that /save wrote`;
    throw new AprError('BAD_FORMAT', message, { path: name }, { cause });
  }
  const messages = Array.isArray(value) ? value : (value as { messages?: unknown } | null)?.messages;
  if (!Array.isArray(messages)) {
    const message = `${name}: has no "messages", expected {"messages": [{"role", "content"}, …]}`;
    throw new AprError('BAD_FORMAT', message, { path: name });
  }
  messages.forEach((message: unknown, index) => {
    const { role, content } = (message ?? {}) as Partial<ChatMessage>;
    if (typeof role === 'string' && typeof content === 'string') return;
    const text = `${name}: messages[${index}] is not an object with the texts "role" and "content"`;
    throw new AprError('BAD_FORMAT', text, { path: name });
  });
  return messages as ChatMessage[];
}
