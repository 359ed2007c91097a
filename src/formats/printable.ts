/** Text from a file, made fit for a message: files can name things with escape sequences, or a megabyte long. */

const MAX_LENGTH = 80;

/** `text` without control and other invisible characters, at most 80 characters long. */
export function printable(text: string): string {
  const shown = text.slice(0, 4 * MAX_LENGTH).replace(/\p{C}/gu, '\uFFFD');
  return shown.length > MAX_LENGTH ? `${shown.slice(0, MAX_LENGTH - 1)}…` : shown;
}
