/** Text from a model, a file or the command line may carry control sequences; a terminal must not obey them. */

import type { OutputStream } from '../environment.ts';

/** Control characters except newline and tab as visible escapes. */
export function visible(text: string): string {
  return escaped(text, /[\0-\x08\x0b-\x1f\x7f-\x9f]/g);
}

/** The same on one line. */
export function visibleLine(text: string): string {
  return escaped(text, /[\0-\x1f\x7f-\x9f\u2028\u2029]/g);
}

function escaped(text: string, pattern: RegExp): string {
  return text.replace(pattern, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Writes, and waits until it is out: a slow reader holds the generation back instead of filling the memory. */
export function write(stream: OutputStream, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => (error == null ? resolve() : reject(error)));
  });
}
