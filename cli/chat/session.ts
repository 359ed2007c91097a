/** A conversation with a model: each message becomes a turn, and the context never overflows. */

import { AprError } from '../../src/errors.ts';
import type { Engine, FinalEvent, GenerateRequest } from '../../src/index.ts';
import type { CHAT_SETTINGS } from '../commands/chat-options.ts';
import type { OutputStream } from '../environment.ts';
import type { OptionValues } from '../options.ts';
import { createRenderer } from '../render/answer.ts';
import { type OutputForm, renderError } from '../render/error.ts';
import { write } from '../render/terminal.ts';
import { Conversation } from './conversation.ts';

export type ChatSettings = OptionValues<typeof CHAT_SETTINGS>;

export interface SessionOutput {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly form: OutputForm;
  /** False: nothing but errors goes to stderr. */
  readonly talkative: boolean;
  readonly verbose: boolean;
}

/** This share of the context stays free for an answer; when it does not, turns are dropped until half is free. */
const ANSWER_SHARE = 1 / 8;
const KEPT_SHARE = 1 / 2;

export class ChatSession {
  readonly engine: Engine;
  readonly conversation: Conversation;
  settings: ChatSettings;
  readonly stop: readonly string[];
  /** Paths that this session wrote or read: they are its own to overwrite. */
  readonly ownFiles = new Set<string>();
  /** The measured figures of the last answer that came to its end. */
  last: FinalEvent | undefined;
  answers = 0;
  generatedTokens = 0;
  computedTokens = 0;
  readonly #output: SessionOutput;
  #abort: AbortController | undefined;
  #status = 0;
  /** How often the last turn was answered anew. */
  #attempts = 0;
  /** To be said behind the answer. */
  #note: string | undefined;

  constructor(
    engine: Engine,
    system: string | undefined,
    settings: ChatSettings,
    stop: readonly string[],
    output: SessionOutput,
  ) {
    this.engine = engine;
    this.conversation = new Conversation(system);
    this.settings = settings;
    this.stop = stop;
    this.#output = output;
  }

  /** Exit status of the session so far: that of the first turn that failed. */
  get status(): number {
    return this.#status;
  }

  /** An answer is being computed. */
  get answering(): boolean {
    return this.#abort !== undefined;
  }

  /** What a command was asked to show. */
  show(text: string): void {
    this.#output.stderr.write(`${text}\n`);
  }

  /** One line beside the answers. */
  say(line: string): void {
    if (this.#output.talkative) this.#output.stderr.write(`${line}\n`);
  }

  /** Tells an error without ending the session; `counts` makes it the session's exit status too. */
  fail(error: unknown, counts: boolean): void {
    const { form, verbose, stdout, stderr } = this.#output;
    const status = renderError(error, form, verbose, { stdout, stderr });
    if (counts && this.#status === 0) this.#status = status;
  }

  /** Ends the answer that is being computed; what there is of it stays. */
  interrupt(): void {
    this.#abort?.abort();
  }

  /** A turn: the message goes in, the answer comes out. */
  async ask(text: string): Promise<void> {
    this.conversation.ask(text);
    this.#attempts = 0;
    await this.#answer();
  }

  /** Answers the last message anew. */
  async regenerate(): Promise<void> {
    const before = this.conversation.unanswer();
    if (before === undefined) {
      throw new AprError('USAGE', 'there is no answer to compute anew: nothing was said yet');
    }
    this.#attempts++;
    const answered = await this.#answer();
    if (!answered) this.conversation.restore(before);
  }

  /** Tokens of the conversation, opened for an answer. */
  countTokens(): number {
    const { thinking } = this.settings;
    const text = this.engine.applyChatTemplate(this.conversation.messages(), { thinking: thinking === 'on' });
    return this.engine.tokenize(text, { special: true }).length;
  }

  /** True when there is an answer, or a part of one. */
  async #answer(): Promise<boolean> {
    const abort = new AbortController();
    this.#abort = abort;
    const { form, stdout } = this.#output;
    const renderer = createRenderer(form, stdout);
    let text = '';
    this.#note = undefined;
    try {
      this.#makeRoom();
      const request = this.#request(abort.signal);
      for await (const event of this.engine.generate(request)) {
        if (event.event === 'token') text += event.text;
        else this.#finished(event, request);
        await renderer.event(event);
      }
      if (this.#note !== undefined) this.say(this.#note);
      this.conversation.answer(text);
      return true;
    } catch (error) {
      const stopped = abort.signal.aborted && error instanceof AprError && error.code === 'ABORTED';
      if (form === 'text' && text !== '') await write(stdout, '\n');
      if (!stopped || form !== 'text') this.fail(error, !stopped);
      else this.say('(stopped)');
      if (!stopped || text === '') return false;
      this.conversation.answer(text);
      return true;
    } finally {
      this.#abort = undefined;
    }
  }

  #finished(event: FinalEvent, { maxTokens }: GenerateRequest): void {
    this.last = event;
    this.answers++;
    this.generatedTokens += event.tokens_generated;
    this.computedTokens += event.prompt_tokens.length - event.cached_tokens;
    if (event.stop_reason !== 'length') return;
    const cut = event.tokens_generated === maxTokens && this.settings['max-tokens'] !== undefined;
    this.#note = cut ? `(ended at --max-tokens ${maxTokens})` : '(the context is full: the answer ends here)';
  }

  /** Forgets the oldest turns when the conversation leaves no room for an answer. */
  #makeRoom(): void {
    const { contextLength } = this.engine.info;
    const asked = this.settings['max-tokens'] ?? contextLength;
    const room = Math.min(asked, Math.floor(contextLength * ANSWER_SHARE));
    if (this.conversation.turnCount < 2 || this.countTokens() + room <= contextLength) return;
    let dropped = 0;
    while (this.conversation.turnCount > 1 && this.countTokens() > contextLength * KEPT_SHARE) {
      this.conversation.dropOldest();
      dropped++;
    }
    if (dropped === 0) return;
    const turns = dropped === 1 ? 'the oldest turn is' : `the ${dropped} oldest turns are`;
    this.say(`(the context of ${contextLength} tokens is full: ${turns} forgotten)`);
  }

  #request(signal: AbortSignal): GenerateRequest {
    const { settings } = this;
    const seed = settings.seed === undefined ? undefined : settings.seed + this.#attempts;
    const given = {
      topK: settings['top-k'],
      minP: settings['min-p'],
      seed,
      repeatPenalty: settings['repeat-penalty'],
      repeatLastN: settings['repeat-last-n'],
      thinking: settings.thinking === 'on' ? true : undefined,
    };
    const set = Object.entries(given).filter(([, value]) => value !== undefined);
    return {
      messages: this.conversation.messages(),
      temperature: settings.temperature ?? 0.7,
      topP: settings['top-p'] ?? 0.9,
      maxTokens: settings['max-tokens'] ?? this.engine.info.contextLength,
      stop: this.stop,
      signal,
      ...(Object.fromEntries(set) as Partial<GenerateRequest>),
    };
  }
}
