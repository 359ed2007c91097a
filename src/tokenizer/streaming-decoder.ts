/** Tokens to text, piece by piece: what is handed out never has to be taken back. */

import { AprError } from '../errors.ts';
import type { Tokenizer } from './tokenizer.ts';

export interface StreamingDecoderOptions {
  /** Texts that end the answer and are no part of it. */
  readonly stop?: readonly string[];
  /** Render control tokens. Default false. */
  readonly special?: boolean;
}

// `ignoreBOM` keeps a byte-order mark: it is text.
const decoder = /* @__PURE__ */ new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Bytes wait for the rest of their character, and text that may be the beginning of a stop string waits until it is
 * known not to be one. Joined, the pieces are the text of all tokens up to the first stop string, that is the one that
 * is complete first. They do not depend on how the text is split over tokens.
 */
export class StreamingDecoder {
  readonly #tokenizer: Pick<Tokenizer, 'tokenBytes'>;
  readonly #stop: readonly string[];
  readonly #special: boolean;
  /** Beginning of a character. */
  #bytes = new Uint8Array();
  /** Text that may begin a stop string. */
  #held = '';
  #stopped = false;

  /** @throws AprError USAGE for an empty stop string */
  constructor(tokenizer: Pick<Tokenizer, 'tokenBytes'>, options: StreamingDecoderOptions = {}) {
    this.#tokenizer = tokenizer;
    this.#stop = options.stop ?? [];
    this.#special = options.special ?? false;
    if (this.#stop.some((text) => typeof text !== 'string' || text === '')) {
      throw new AprError('USAGE', 'a stop string (--stop, stop) is empty, expected at least one character');
    }
  }

  /** Whether bytes or text wait for what comes next. */
  get pending(): boolean {
    return this.#bytes.length > 0 || this.#held !== '';
  }

  /** Text that becomes certain with this token, and whether a stop string is complete: nothing comes after it. */
  push(id: number): { text: string; stopped: boolean } {
    if (this.#stopped) return { text: '', stopped: true };
    const added = this.#tokenizer.tokenBytes(id, { special: this.#special });
    const bytes = new Uint8Array(this.#bytes.length + added.length);
    bytes.set(this.#bytes);
    bytes.set(added, this.#bytes.length);
    const complete = bytes.length - openCharacter(bytes);
    this.#bytes = bytes.slice(complete);
    return this.#release(decoder.decode(bytes.subarray(0, complete)), false);
  }

  /** What is left at the end: bytes that never became a character are U+FFFD. */
  finish(): string {
    if (this.#stopped) return '';
    const rest = decoder.decode(this.#bytes);
    this.#bytes = new Uint8Array();
    return this.#release(rest, true).text;
  }

  #release(added: string, final: boolean): { text: string; stopped: boolean } {
    const text = this.#held + added;
    const stop = firstStop(text, this.#stop);
    if (stop >= 0) {
      this.#stopped = true;
      this.#held = '';
      this.#bytes = new Uint8Array();
      return { text: text.slice(0, stop), stopped: true };
    }
    const kept = final ? 0 : openStop(text, this.#stop);
    this.#held = text.slice(text.length - kept);
    return { text: text.slice(0, text.length - kept), stopped: false };
  }
}

/** How many bytes at the end may be the beginning of a character. */
function openCharacter(bytes: Uint8Array): number {
  for (let size = 1; size <= 3 && size <= bytes.length; size++) {
    const byte = bytes[bytes.length - size]!;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const needed = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : byte < 0xf8 ? 4 : 0;
    return needed > size ? size : 0;
  }
  return 0;
}

/** Start of the stop string that is complete first, of those the longest; -1 for none. */
function firstStop(text: string, stops: readonly string[]): number {
  let start = -1;
  let end = Number.POSITIVE_INFINITY;
  for (const stop of stops) {
    const at = text.indexOf(stop);
    if (at < 0) continue;
    const stopEnd = at + stop.length;
    if (stopEnd < end || (stopEnd === end && at < start)) {
      start = at;
      end = stopEnd;
    }
  }
  return start;
}

/** Length of the longest end of the text that begins a stop string. */
function openStop(text: string, stops: readonly string[]): number {
  let longest = 0;
  for (const stop of stops) {
    for (let length = Math.min(stop.length - 1, text.length); length > longest; length--) {
      if (text.endsWith(stop.slice(0, length))) longest = length;
    }
  }
  return longest;
}
