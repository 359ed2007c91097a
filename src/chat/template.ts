/** A conversation as the text that a model was trained on. */

import type { ChatMessage, ChatOptions } from '../engine.ts';
import { AprError } from '../errors.ts';
import type { Metadata } from '../formats/metadata.ts';
import type { TextSegment, Tokenizer } from '../tokenizer/index.ts';
import { builtInTemplate } from './built-in.ts';
import { asksFor, parseTemplate, renderTemplate, TemplateLimit, TemplateRefusal, textConstants } from './jinja.ts';
import { type PlainMessage, plainMessages } from './messages.ts';
import { countControl, mayForge, Placeholders } from './placeholders.ts';
import { type ArgumentForm, argumentForm, hasCalls, withArguments } from './tool-arguments.ts';

const KEY = 'tokenizer.chat_template';

export interface RenderOptions extends Readonly<ChatOptions> {
  /** Open the assistant's answer. Default true. */
  readonly addGenerationPrompt?: boolean;
  /** What a template that asks for the date gets. Default: now. */
  readonly now?: Date;
}

export interface ChatTemplate {
  /** Where the template is from: the model file, or this package. */
  readonly origin: 'file' | 'built-in';
  /** Jinja source. */
  readonly source: string;
  /** The template asks whether the model may think. False for one that cannot be parsed. */
  readonly knowsThinking: boolean;
  /**
   * The conversation as text of the template, in which special tokens are recognised, and texts of users that look
   * like special tokens, in which they are not.
   * @throws AprError TEMPLATE when the template cannot be rendered or refuses the conversation; USAGE for bad messages,
   * or for thinking that the template does not know
   */
  render(messages: readonly ChatMessage[], options?: RenderOptions): TextSegment[];
}

/** The file's own template, or a built-in one for its format; undefined when there is neither. */
export function createChatTemplate(metadata: Metadata, tokenizer: Tokenizer): ChatTemplate | undefined {
  const own = metadata.string(KEY) || metadata.string(`${KEY}.default`);
  if (own) return new JinjaTemplate('file', own, metadata.sourceName, tokenizer);
  const source = builtInTemplate(metadata.string('general.architecture') ?? '', tokenizer);
  return source === undefined ? undefined : new JinjaTemplate('built-in', source, metadata.sourceName, tokenizer);
}

/**
 * Token ids of a rendered conversation. BOS is added if the file asks for it and the template did not write it.
 * Texts of users without special tokens get the same ids as in one whole text.
 */
export function encodeSegments(tokenizer: Tokenizer, segments: readonly TextSegment[]): number[] {
  const ids = tokenizer.encode(segments, { special: true });
  if (tokenizer.addBos && tokenizer.bosId !== undefined && ids[0] !== tokenizer.bosId) ids.unshift(tokenizer.bosId);
  return ids;
}

class JinjaTemplate implements ChatTemplate {
  readonly origin: 'file' | 'built-in';
  readonly source: string;
  readonly #sourceName: string;
  readonly #tokenizer: Tokenizer;
  // Parsed when first needed: a file whose template is beyond us still runs without it.
  #program: ReturnType<typeof parseTemplate> | undefined;
  #partsOnly: boolean | undefined;
  #form: ArgumentForm | undefined;

  constructor(origin: 'file' | 'built-in', source: string, sourceName: string, tokenizer: Tokenizer) {
    this.origin = origin;
    this.source = source;
    this.#sourceName = sourceName;
    this.#tokenizer = tokenizer;
  }

  get knowsThinking(): boolean {
    try {
      return asksFor(this.#parsed(), THINKING_SWITCHES);
    } catch {
      // What is wrong with it is said when it is rendered.
      return false;
    }
  }

  render(messages: readonly ChatMessage[], options: RenderOptions = {}): TextSegment[] {
    const plain = plainMessages(messages);
    if (options.thinking && !this.knowsThinking) {
      const [first] = THINKING_SWITCHES;
      const which = this.origin === 'file' ? `the chat template (${KEY})` : 'the built-in chat template';
      const message = `${this.#sourceName}: thinking is asked for, but ${which} does not know ${first}; leave it off`;
      throw new AprError('USAGE', message, { option: 'thinking' });
    }
    const conversation = hasCalls(plain) ? withArguments(plain, this.#argumentForm()) : plain;
    const values = [conversation, options.tools];
    const guarded = (strictly: boolean): TextSegment[] => {
      const kept = strictly ? textConstants(this.#parsed()) : undefined;
      const guard = new Placeholders(this.#tokenizer, this.source, values, kept);
      return guard.reveal(this.#run(conversation, options, (value) => guard.hideAll(value)));
    };
    try {
      const segments = guarded(false);
      if (!mayForge(this.#tokenizer, values)) return segments;
      // A template that deletes from a content, or changes it, can put a special token together that was not there.
      const strict = guarded(true);
      return countControl(this.#tokenizer, strict) === countControl(this.#tokenizer, segments) ? segments : strict;
    } catch (cause) {
      // Whatever a template makes the interpreter throw, a full stack included, is the template's fault.
      if (cause instanceof AprError) throw cause;
      const reason = reasonOf(cause);
      const what =
        cause instanceof TemplateRefusal ? 'refuses these messages' : `(${KEY}) cannot be rendered; use the raw prompt`;
      const message = `${this.#sourceName}: the chat template ${what}: ${reason}`;
      throw new AprError('TEMPLATE', message, { reason }, { cause });
    }
  }

  #parsed(): ReturnType<typeof parseTemplate> {
    this.#program ??= parseTemplate(this.source);
    return this.#program;
  }

  #run(messages: readonly PlainMessage[], options: RenderOptions, hide: (value: unknown) => unknown): string {
    const hidden = hide(this.#takesPartsOnly() ? messages.map(inParts) : messages);
    const tools = hide(options.tools);
    try {
      return this.#renderOnce(hidden, tools, options);
    } catch (error) {
      const isFinal = error instanceof TemplateRefusal || error instanceof TemplateLimit;
      if (isFinal || messages.every(({ content }) => content !== null)) throw error;
      // A template that does not look whether there is a content gets one.
      const filled = messages.map((message) => ({ ...message, content: message.content ?? '' }));
      return this.#renderOnce(hide(this.#takesPartsOnly() ? filled.map(inParts) : filled), tools, options);
    }
  }

  #renderOnce(messages: unknown, tools: unknown, options: RenderOptions): string {
    const { bosId, eosId } = this.#tokenizer;
    const textOf = (id: number | undefined): string => (id === undefined ? '' : this.#tokenizer.tokenText(id));
    const { thinking = false } = options;
    const variables = {
      messages,
      bos_token: textOf(bosId),
      eos_token: textOf(eosId),
      add_generation_prompt: options.addGenerationPrompt ?? true,
      ...Object.fromEntries(THINKING_SWITCHES.map((name) => [name, thinking])),
      tools: Array.isArray(tools) && tools.length > 0 ? tools : null,
      documents: null,
    };
    return renderTemplate(this.#parsed(), variables, options.now ?? new Date());
  }

  /**
   * Some templates read contents only as lists of parts, and of a text silently print nothing. Found out by trying, as
   * llama.cpp does.
   */
  #takesPartsOnly(): boolean {
    this.#partsOnly ??=
      !this.#shows({ role: 'user', content: PROBE }) && this.#shows(inParts({ role: 'user', content: PROBE }));
    return this.#partsOnly;
  }

  #argumentForm(): ArgumentForm {
    this.#form ??= argumentForm((messages, tools) => this.#renderOnce(messages, tools, {}));
    return this.#form;
  }

  #shows(message: unknown): boolean {
    try {
      return this.#renderOnce([message], null, {}).includes(PROBE);
    } catch {
      // What is wrong with it is said when it is rendered.
      return false;
    }
  }
}

const PROBE = 'What does this template show?';

function inParts(message: PlainMessage): unknown {
  const { content } = message;
  return content === null ? message : { ...message, content: [{ type: 'text', text: content }] };
}

function reasonOf(cause: unknown): string {
  if (cause instanceof RangeError && /call stack/i.test(cause.message))
    return 'it is nested too deep, or calls itself without end';
  return cause instanceof Error ? cause.message : String(cause);
}

/** Variables by which templates ask whether the model may think: Qwen, SmolLM and most others; Granite, DeepSeek. */
const THINKING_SWITCHES = ['enable_thinking', 'thinking'] as const;
