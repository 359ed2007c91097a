/** What a template may spend. It comes from a model file and is hostile until it has rendered. */

/** A template that exceeds its bounds. */
export class TemplateLimit extends Error {}

/** Evaluated expressions and statements of one rendering; a message takes about a hundred. */
const MAX_STEPS = 2_000_000;
const MAX_STRING = 2 ** 26;
/** Characters of a template; the longest that are published have some 50,000. */
const MAX_SOURCE = 2 ** 20;
const MAX_ITEMS = 1_000_000;

/** Characters that cost as much as one step when they are copied or searched. */
const STEP_CHARACTERS = 256;

/** To be asked before a template is parsed: its tree takes a hundred times its room. @throws TemplateLimit */
export function boundSource(template: string): void {
  if (template.length > MAX_SOURCE) {
    throw new TemplateLimit(`it has ${template.length} characters, expected at most ${MAX_SOURCE}`);
  }
}

export class Meter {
  #steps = 0;

  /** @throws TemplateLimit */
  step(steps = 1): void {
    this.#steps += steps;
    if (this.#steps > MAX_STEPS) throw new TemplateLimit(`it takes more than ${MAX_STEPS} steps`);
  }

  /** To be asked before a text of that length is made. @throws TemplateLimit */
  bound(length: number): void {
    if (length > MAX_STRING) throw new TemplateLimit(`it makes a text of more than ${MAX_STRING} characters`);
  }

  /** The same, for a text that is copied or searched. @throws TemplateLimit */
  text(length: number): void {
    this.bound(length);
    this.step(Math.floor(length / STEP_CHARACTERS));
  }

  /** To be asked before a list of that length is made. @throws TemplateLimit */
  items(length: number): void {
    if (length > MAX_ITEMS) throw new TemplateLimit(`it makes a list of more than ${MAX_ITEMS} items`);
    this.step(length);
  }
}
