/** The steps that pre-tokenisers are made of: each cuts pieces of text into smaller ones, in one pass. */

import { type CodePoints, NUMBER, SPACE } from './code-points.ts';

/** Appends the ends of the pieces of `text[start … end)` to `ends`. */
export type Step = (text: CodePoints, start: number, end: number, ends: Ends) => void;

/** End of what begins at `at` and is a piece of its own, or -1 where nothing of the kind begins. */
export type Matcher = (text: CodePoints, at: number, end: number) => number;

/** Whether a code point belongs to a set; `kind` is its class. */
export type Member = (value: number, kind: number) => boolean;

/** Growing list of piece ends, in code points. */
export class Ends {
  values = new Uint32Array(64);
  length = 0;

  push(end: number): void {
    if (this.length === this.values.length) {
      const grown = new Uint32Array(this.length * 2);
      grown.set(this.values);
      this.values = grown;
    }
    this.values[this.length++] = end;
  }
}

/** Cuts out what a matcher finds, from left to right; what lies between stays together, as in a search for matches. */
export function matches(match: Matcher): Step {
  return (text, start, end, ends) => {
    let from = start;
    for (let at = start; at < end; ) {
      const stop = match(text, at, end);
      if (stop < 0) {
        at++;
        continue;
      }
      if (at > from) ends.push(at);
      ends.push(stop);
      from = stop;
      at = stop;
    }
    if (from < end) ends.push(end);
  };
}

/** The first of several matchers that finds something. */
export function firstOf(...matchers: readonly Matcher[]): Matcher {
  return (text, at, end) => {
    for (const match of matchers) {
      const stop = match(text, at, end);
      if (stop >= 0) return stop;
    }
    return -1;
  };
}

/** One or more members, with white space in front (`\s?`) if asked for. */
export function run(member: Member, leadingSpace = false): Matcher {
  return ({ values, classes }, at, end) => {
    const body = leadingSpace && classes[at] === SPACE ? at + 1 : at;
    let stop = body;
    while (stop < end && member(values[stop]!, classes[stop]!)) stop++;
    return stop > body ? stop : -1;
  };
}

/** That many members, no fewer. */
export function group(member: Member, size: number): Matcher {
  return ({ values, classes }, at, end) => {
    if (end - at < size) return -1;
    for (let i = at; i < at + size; i++) if (!member(values[i]!, classes[i]!)) return -1;
    return at + size;
  };
}

/** One to `most` members. */
export function upTo(member: Member, most: number): Matcher {
  const all = run(member);
  return (text, at, end) => all(text, at, Math.min(end, at + most));
}

/** White space at the end of a piece: `\s+$`. */
export const trailingSpace: Step = ({ classes }, start, end, ends) => {
  let at = end;
  while (at > start && classes[at - 1] === SPACE) at--;
  if (at > start) ends.push(at);
  if (at < end) ends.push(end);
};

/**
 * Numbers in groups of three from the right: `1 234 567`. The text in front of a number stays with its first group,
 * as llama.cpp has it (src/unicode.cpp, `afmoe`): the steps behind this one count on it.
 */
export const groupsFromRight: Step = ({ classes }, start, end, ends) => {
  let pushed = start;
  for (let at = start; at < end; ) {
    if (classes[at] !== NUMBER) {
      at++;
      continue;
    }
    let stop = at;
    while (stop < end && classes[stop] === NUMBER) stop++;
    let next = at + ((stop - at) % 3);
    if (next === at) next += 3;
    for (; next <= stop; next += 3) {
      ends.push(next);
      pushed = next;
    }
    at = stop;
  }
  if (pushed < end) ends.push(end);
};

/** A cut wherever a multiple of three digits follows: `(?=(\d{3})+(?!\d))`. */
export const digitTriples: Step = ({ values }, start, end, ends) => {
  let pushed = start;
  for (let at = start; at < end; ) {
    let stop = at;
    while (stop < end && isDigit(values[stop]!)) stop++;
    for (let cut = at + ((stop - at) % 3); cut < stop; cut += 3) {
      if (cut > pushed) ends.push(cut);
      pushed = cut;
    }
    at = stop + 1;
  }
  if (pushed < end) ends.push(end);
};

/** ASCII digit. */
export const isDigit = (value: number): boolean => value >= 0x30 && value <= 0x39;

/** Carriage return or line feed. */
export const isBreak = (value: number | undefined): boolean => value === 0x0a || value === 0x0d;
