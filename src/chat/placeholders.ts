/** What keeps the texts of a conversation from becoming special tokens while a template arranges them. */

import { AprError } from '../errors.ts';
import type { TextSegment, Tokenizer } from '../tokenizer/index.ts';

/** Whether a text has a character that special tokens begin with. */
export function mayForge(tokenizer: Tokenizer, values: unknown): boolean {
  const starts = [...tokenizer.controlStarts];
  return textsIn(values).some((text) => starts.some((start) => text.includes(start)));
}

/** How many control tokens these segments become. */
export function countControl(tokenizer: Tokenizer, segments: readonly TextSegment[]): number {
  const count = (text: string): number => tokenizer.splitControl(text).filter(({ special }) => special).length;
  return segments.reduce((sum, { text, special }) => sum + (special ? count(text) : 0), 0);
}

/** Placeholders are taken from here up: the first plane for private use beyond the one that fonts and users fill. */
const FIRST_PLACEHOLDER = 0xf0000;

/**
 * Keeps special tokens that a user wrote from being recognised. Each such text is one private-use character while the
 * template runs, so that trimming, splitting and comparing see the rest of the content as it is, and text again
 * afterwards. Text without special tokens goes through untouched.
 *
 * Strictly, the characters that special tokens begin with are hidden too, so that none can be put together from what a
 * user wrote, but not where a content has what the template may look for: its own constants.
 */
export class Placeholders {
  readonly #tokenizer: Tokenizer;
  readonly #texts: ReadonlySet<string>;
  /** Constants of the template that hold a character that special tokens begin with; undefined if not strict. */
  readonly #kept: readonly string[] | undefined;
  readonly #byText = new Map<string, string>();
  readonly #byPlaceholder = new Map<string, string>();
  #next = FIRST_PLACEHOLDER;

  /**
   * @param values everything that the template will see, which must hold no placeholder
   * @param constants texts of the template's expressions; given, contents are hidden strictly
   */
  constructor(tokenizer: Tokenizer, source: string, values: unknown, constants?: readonly string[]) {
    this.#tokenizer = tokenizer;
    this.#texts = new Set([source, ...textsIn(values)]);
    const starts = [...tokenizer.controlStarts];
    this.#kept = constants?.filter((constant) => starts.some((start) => constant.includes(start)));
  }

  /** The same value with all its texts hidden, those of keys too. */
  hideAll(value: unknown): unknown {
    return mapTexts(value, (text) => this.hide(text));
  }

  hide(text: string): string {
    return this.#tokenizer
      .splitControl(text)
      .map((part) => (part.special ? this.#placeholder(part.text) : this.#hideStarts(part.text)))
      .join('');
  }

  #hideStarts(text: string): string {
    if (this.#kept === undefined) return text;
    const starts = this.#tokenizer.controlStarts;
    const covered = new Set<number>();
    for (const constant of this.#kept) {
      for (let at = text.indexOf(constant); at >= 0; at = text.indexOf(constant, at + 1)) {
        for (let i = 0; i < constant.length; i++) if (starts.has(constant[i]!)) covered.add(at + i);
      }
    }
    let hidden = '';
    for (let i = 0; i < text.length; i++) {
      const unit = text[i]!;
      hidden += starts.has(unit) && !covered.has(i) ? this.#placeholder(unit) : unit;
    }
    return hidden;
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
