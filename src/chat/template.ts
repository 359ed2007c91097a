/** A conversation as the text that a model was trained on. */

import type { ChatMessage, ChatOptions } from '../engine.ts';
import { AprError } from '../errors.ts';
import type { Metadata } from '../formats/metadata.ts';
import type { TextSegment, Tokenizer } from '../tokenizer/index.ts';
import { builtInTemplate } from './built-in.ts';
import { asksFor, parseTemplate, renderTemplate, TemplateLimit, TemplateRefusal } from './jinja.ts';
import { type PlainMessage, plainMessages } from './messages.ts';
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
    const guard = new Placeholders(this.#tokenizer, this.source, [conversation, options.tools]);
    try {
      return guard.reveal(this.#run(conversation, options, (value) => guard.hideAll(value)));
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

/** Placeholders are taken from here up: the first plane for private use beyond the one that fonts and users fill. */
const FIRST_PLACEHOLDER = 0xf0000;

/**
 * Keeps special tokens that a user wrote from being recognised. Each such text is one private-use character while the
 * template runs, so that trimming, splitting and comparing see the rest of the content as it is, and text again
 * afterwards. Text without special tokens goes through untouched.
 *
 * A template that deletes characters out of the middle of a content can still put a special token together.
 */
class Placeholders {
  readonly #tokenizer: Tokenizer;
  readonly #texts: ReadonlySet<string>;
  readonly #byText = new Map<string, string>();
  readonly #byPlaceholder = new Map<string, string>();
  #next = FIRST_PLACEHOLDER;

  /** @param values everything that the template will see, which must hold no placeholder */
  constructor(tokenizer: Tokenizer, source: string, values: unknown) {
    this.#tokenizer = tokenizer;
    this.#texts = new Set([source, ...textsIn(values)]);
  }

  /** The same value with all its texts hidden, those of keys too. */
  hideAll(value: unknown): unknown {
    return mapTexts(value, (text) => this.hide(text));
  }

  hide(text: string): string {
    return this.#tokenizer
      .splitControl(text)
      .map((part) => (part.special ? this.#placeholder(part.text) : part.text))
      .join('');
  }

  reveal(rendered: string): TextSegment[] {
    if (this.#byPlaceholder.size === 0) return [{ text: rendered, special: true }];
    const segments: TextSegment[] = [];
    let from = 0;
    for (let at = 0; at < rendered.length; ) {
      const character = String.fromCodePoint(rendered.codePointAt(at)!);
      const text = this.#byPlaceholder.get(character);
      if (text !== undefined) {
        if (at > from) segments.push({ text: rendered.slice(from, at), special: true });
        segments.push({ text, special: false });
        from = at + character.length;
      }
      at += character.length;
    }
    if (from < rendered.length) segments.push({ text: rendered.slice(from), special: true });
    return segments;
  }

  #placeholder(text: string): string {
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    let placeholder: string;
    do placeholder = String.fromCodePoint(this.#next++);
    while ([...this.#texts].some((seen) => seen.includes(placeholder)));
    this.#byText.set(text, placeholder);
    this.#byPlaceholder.set(placeholder, text);
    return placeholder;
  }
}

/** Deeper values are no messages or tools that anybody means. */
const MAX_DEPTH = 64;

/** A copy of what JSON can say, each text replaced. */
function mapTexts(value: unknown, replace: (text: string) => string, depth = 0): unknown {
  if (depth > MAX_DEPTH) {
    throw new AprError('USAGE', `messages or tools are nested deeper than ${MAX_DEPTH} levels, expected a JSON value`);
  }
  if (typeof value === 'string') return replace(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, replace, depth + 1));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(entries.map(([key, item]) => [replace(key), mapTexts(item, replace, depth + 1)]));
}

function textsIn(value: unknown): string[] {
  const texts: string[] = [];
  mapTexts(value, (text) => {
    texts.push(text);
    return text;
  });
  return texts;
}
