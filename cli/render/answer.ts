/** The answer on stdout, in one of three forms. */

import type { FinalEvent, GenerateEvent } from '../../src/index.ts';
import type { OutputStream } from '../environment.ts';
import type { OutputForm } from './error.ts';
import { jsonLine } from './json.ts';
import { visible, write } from './terminal.ts';

export interface Renderer {
  event(event: GenerateEvent): Promise<void>;
}

export function createRenderer(form: OutputForm, stdout: OutputStream): Renderer {
  switch (form) {
    case 'text':
      return new TextRenderer(stdout);
    case 'json':
      return new JsonRenderer(stdout);
    case 'stream':
      return new StreamRenderer(stdout);
  }
}

/** Each piece as it comes, and a newline behind the last. */
class TextRenderer implements Renderer {
  readonly #stdout: OutputStream;

  constructor(stdout: OutputStream) {
    this.#stdout = stdout;
  }

  async event(event: GenerateEvent): Promise<void> {
    if (event.event === 'final') await write(this.#stdout, '\n');
    else if (event.text !== '') await write(this.#stdout, this.#stdout.isTTY ? visible(event.text) : event.text);
  }
}

/** One document, without the event's name. */
class JsonRenderer implements Renderer {
  readonly #stdout: OutputStream;

  constructor(stdout: OutputStream) {
    this.#stdout = stdout;
  }

  async event(event: GenerateEvent): Promise<void> {
    if (event.event !== 'final') return;
    const { event: _, ...document } = event satisfies FinalEvent;
    await write(this.#stdout, jsonLine(document));
  }
}

/** One event a line. */
class StreamRenderer implements Renderer {
  readonly #stdout: OutputStream;

  constructor(stdout: OutputStream) {
    this.#stdout = stdout;
  }

  event(event: GenerateEvent): Promise<void> {
    return write(this.#stdout, jsonLine(event));
  }
}
