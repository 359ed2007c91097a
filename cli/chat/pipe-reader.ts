/** Messages out of a pipe or a file: a message a line, with the same signs for several lines as at a terminal. */

import { decodeLine, readLines } from '../lines.ts';
import type { InputStream } from '../prompt.ts';
import { type Entry, MessageAssembler } from './messages.ts';
import type { MessageReader } from './terminal-reader.ts';

const NAME = 'standard input';

export class PipeReader implements MessageReader {
  readonly #lines: AsyncGenerator<Uint8Array, void, undefined>;
  readonly #assembler = new MessageAssembler();
  #count = 0;

  constructor(input: InputStream) {
    this.#lines = readLines(input, NAME);
  }

  /** @throws AprError USAGE for bytes that are not UTF-8, IO */
  async next(): Promise<Entry | undefined> {
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done === true) return this.#assembler.end();
      const entry = this.#assembler.push(decodeLine(value, NAME, ++this.#count));
      if (entry !== undefined) return entry;
    }
  }

  close(): void {}
}
