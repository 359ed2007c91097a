/** Messages typed at a terminal: editing and history by node:readline, several lines, what is typed while answering. */

import { createInterface, type Interface } from 'node:readline';
import { Writable } from 'node:stream';
import type { OutputStream } from '../environment.ts';
import { completions } from './commands.ts';
import { type Entry, MessageAssembler } from './messages.ts';

export interface MessageReader {
  /** The next message, undefined when there is none any more. */
  next(): Promise<Entry | undefined>;
  close(): void;
}

const PROMPT = '> ';
const MORE_PROMPT = '. ';
/** A terminal that knows bracketed paste marks what was pasted; others ignore the request. */
const PASTE_MARKS_ON = '\x1b[?2004h';
const PASTE_MARKS_OFF = '\x1b[?2004l';

export interface TerminalReaderOptions {
  readonly input: NodeJS.ReadableStream;
  /** A terminal too. */
  readonly output: OutputStream & Partial<Pick<NodeJS.WriteStream, 'on' | 'off'>>;
  /** Ctrl-C, or a whole line thrown away by it; true when that was not the first in a row. */
  onInterrupt(again: boolean): void;
}

export class TerminalReader implements MessageReader {
  readonly #readline: Interface;
  readonly #screen: Screen;
  readonly #options: TerminalReaderOptions;
  readonly #assembler = new MessageAssembler();
  readonly #typed: { readonly line: string; readonly pasted: boolean; readonly seen: boolean }[] = [];
  #pasting = false;
  #interrupted = false;
  #closed = false;
  #wake: (() => void) | undefined;

  constructor(options: TerminalReaderOptions) {
    this.#options = options;
    const { input, output } = options;
    this.#screen = new Screen(output);
    this.#readline = createInterface({
      input,
      output: this.#screen,
      terminal: true,
      prompt: PROMPT,
      historySize: 1000,
      removeHistoryDuplicates: true,
      completer: (line: string) => [completions(line), line],
    });
    // Before readline's own listener, so that the state is right when a line comes out of it.
    input.prependListener('keypress', (_: unknown, key: { readonly name?: string; readonly ctrl?: boolean }) => {
      if (key.name === 'paste-start') this.#pasting = true;
      else if (key.name === 'paste-end') this.#pasting = false;
      if (!(key.ctrl === true && key.name === 'c')) this.#interrupted = false;
    });
    this.#readline.on('line', (line) => {
      this.#typed.push({ line, pasted: this.#pasting, seen: !this.#screen.muted });
      // What follows is for later, and shown then.
      this.#screen.muted = true;
      this.#wakeUp();
    });
    this.#readline.on('SIGINT', () => this.interrupt());
    this.#readline.on('close', () => {
      this.#closed = true;
      // The shell's prompt begins on a line of its own.
      if (!this.#screen.muted) output.write('\n');
      this.#screen.muted = true;
      this.#wakeUp();
    });
    output.write(PASTE_MARKS_ON);
  }

  /** What Ctrl-C does, also when it comes as a signal. */
  interrupt(): void {
    const again = this.#interrupted;
    this.#interrupted = true;
    const waiting = !this.#screen.muted;
    // As in a shell, lines typed ahead are gone too.
    this.#typed.length = 0;
    if (waiting && (this.#readline.line !== '' || this.#assembler.open)) {
      // As in a shell: the line stays on the screen, and a new one begins.
      this.#assembler.discard();
      this.#readline.write(null, { ctrl: true, name: 'e' });
      this.#screen.write('\n');
      this.#readline.write(null, { ctrl: true, name: 'u' });
      this.#prompt();
      return;
    }
    this.#options.onInterrupt(again);
    if (waiting && !this.#closed) this.#prompt();
  }

  async next(): Promise<Entry | undefined> {
    for (;;) {
      const next = this.#typed.shift();
      if (next !== undefined) {
        if (!next.seen) this.#options.output.write(`${this.#promptText()}${next.line}\n`);
        const entry = this.#assembler.push(next.line, next.pasted);
        if (entry === undefined) continue;
        this.#interrupted = false;
        return entry;
      }
      if (this.#closed) return this.#assembler.end();
      this.#prompt();
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#screen.muted = true;
    }
  }

  close(): void {
    if (!this.#closed) this.#readline.close();
    this.#options.output.write(PASTE_MARKS_OFF);
  }

  #promptText(): string {
    return this.#assembler.open ? MORE_PROMPT : PROMPT;
  }

  #prompt(): void {
    this.#screen.muted = false;
    this.#readline.setPrompt(this.#promptText());
    this.#readline.prompt(true);
  }

  #wakeUp(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}

/** The terminal as readline sees it: while an answer is printed, what is typed is not shown. */
class Screen extends Writable {
  muted = true;
  readonly #target: TerminalReaderOptions['output'];

  constructor(target: TerminalReaderOptions['output']) {
    super({ decodeStrings: false });
    this.#target = target;
    target.on?.('resize', () => this.emit('resize'));
  }

  get isTTY(): boolean {
    return true;
  }

  get columns(): number {
    return this.#target.columns ?? 80;
  }

  override _write(chunk: string | Uint8Array, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (!this.muted) this.#target.write(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8'));
    done();
  }
}
