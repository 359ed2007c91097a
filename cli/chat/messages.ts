/** From lines to messages: blocks in `"""`, lines that end with a backslash, pasted lines. */

const QUOTES = '"""';
/** A block may stand behind the name of a command: `/system """`. */
const OPENING = /^(\/[a-z]+\s+)?"""/;

export interface Entry {
  readonly text: string;
  /** It was written on one line and not in a block: it may be a command. */
  readonly plain: boolean;
}

export class MessageAssembler {
  #lines: string[] = [];
  #block = false;
  #command = '';

  /** A message has begun and is not complete. */
  get open(): boolean {
    return this.#block || this.#lines.length > 0;
  }

  /**
   * Takes the next line; returns the message that it completes.
   * @param pasted the line came with others: it does not end the message
   */
  push(line: string, pasted = false): Entry | undefined {
    if (this.#block) return this.#inBlock(line);
    const opening = this.open ? null : OPENING.exec(line);
    if (opening !== null) {
      this.#command = opening[1] ?? '';
      this.#block = true;
      const rest = line.slice(opening[0].length);
      // What follows the opening is the first line, unless there is nothing.
      return rest === '' ? undefined : this.#inBlock(rest);
    }
    if (pasted || line.endsWith('\\')) {
      this.#lines.push(pasted ? line : line.slice(0, -1));
      return undefined;
    }
    const plain = this.#lines.length === 0;
    // What was pasted may end with a newline: then only the key that sends it is left.
    if (plain || line !== '') this.#lines.push(line);
    return this.#finish(plain);
  }

  /** What is there of a message that will not be completed. */
  end(): Entry | undefined {
    return this.open ? this.#finish(false) : undefined;
  }

  discard(): void {
    this.#finish(false);
  }

  #inBlock(line: string): Entry | undefined {
    const end = line.trimEnd();
    if (!end.endsWith(QUOTES)) {
      this.#lines.push(line);
      return undefined;
    }
    const last = end.slice(0, -QUOTES.length);
    if (last !== '') this.#lines.push(last);
    return this.#finish(this.#command !== '');
  }

  #finish(plain: boolean): Entry {
    const text = this.#command + this.#lines.join('\n');
    this.#lines = [];
    this.#block = false;
    this.#command = '';
    return { text, plain };
  }
}
