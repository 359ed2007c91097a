/** Emphasis on a terminal that shows it; elsewhere, and with NO_COLOR set, text stays as it is. */

import type { OutputStream } from '../environment.ts';

export interface Style {
  bold(text: string): string;
  dim(text: string): string;
  /** Colour `index` of six that can be told apart on a light and on a dark ground. */
  colour(index: number, text: string): string;
}

const PLAIN: Style = { bold: (text) => text, dim: (text) => text, colour: (_, text) => text };

const sgr =
  (code: number, end: number) =>
  (text: string): string =>
    text === '' ? '' : `\x1b[${code}m${text}\x1b[${end}m`;

const COLOURS = [36, 33, 35, 32, 34, 31].map((code) => sgr(code, 39));

const ANSI: Style = {
  bold: sgr(1, 22),
  dim: sgr(2, 22),
  colour: (index, text) => COLOURS[index % COLOURS.length]!(text),
};

/** https://no-color.org: any value but an empty one switches colours off. */
export function styleOf(stream: OutputStream, { NO_COLOR, TERM }: NodeJS.ProcessEnv = process.env): Style {
  const wanted = stream.isTTY === true && !NO_COLOR && TERM !== 'dumb';
  return wanted ? ANSI : PLAIN;
}
