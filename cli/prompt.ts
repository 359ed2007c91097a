/** Where the prompt comes from. */

import { createReadStream } from 'node:fs';
import { AprError } from '../src/errors.ts';

/** No context is this long; an endless stream ends here. */
const MAX_PROMPT_BYTES = 64 << 20;

export interface PromptSources {
  readonly positional: string | undefined;
  readonly option: string | undefined;
  readonly file: string | undefined;
  /** Called before standard input is read, which may take for ever. */
  readonly onWait?: () => void;
}

export type InputStream = AsyncIterable<Uint8Array | string> & { readonly isTTY?: boolean };

/**
 * The prompt's text. Standard input is read only when nothing else was given and it is not a terminal, or for `-i -`.
 * @throws AprError USAGE when there is none, several, or one that is not UTF-8; NOT_FOUND, IO for the file
 */
export async function readPrompt(
  { positional, option, file, onWait }: PromptSources,
  stdin: InputStream,
): Promise<string> {
  // As for other tools, a lone "-" is standard input.
  if (positional === '-')
    return readPrompt({ positional: undefined, option, file: file ?? '-', ...waiting(onWait) }, stdin);
  const given = [
    ...(positional === undefined ? [] : ['the PROMPT argument']),
    ...(option === undefined ? [] : ['-p']),
    ...(file === undefined ? [] : ['-i']),
  ];
  if (given.length > 1)
    throw new AprError('USAGE', `the prompt is given by ${given.join(' and ')}, expected one of them`);
  const text = positional ?? option;
  if (text !== undefined) return text;
  if (file === '-') {
    onWait?.();
    return decodeText(await collect(stdin, 'standard input'), 'standard input');
  }
  if (file !== undefined) return decodeText(await collect(createReadStream(file), file), file);
  if (stdin.isTTY) {
    throw new AprError('USAGE', 'no prompt; give it behind SOURCE, with -p TEXT, with -i FILE, or through a pipe');
  }
  onWait?.();
  const piped = decodeText(await collect(stdin, 'standard input'), 'standard input');
  if (piped === '') {
    throw new AprError(
      'USAGE',
      'no prompt; standard input was empty, and none of PROMPT, -p TEXT and -i FILE was given',
    );
  }
  // `echo` and here-documents end with a newline that nobody means; -i keeps every byte.
  return piped.replace(/\r?\n$/, '');
}

function waiting(onWait: (() => void) | undefined): Pick<PromptSources, 'onWait'> {
  return onWait === undefined ? {} : { onWait };
}

async function collect(stream: AsyncIterable<Uint8Array | string>, name: string): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of stream) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
      size += bytes.length;
      if (size > MAX_PROMPT_BYTES) {
        throw new AprError('USAGE', `${name}: is longer than ${MAX_PROMPT_BYTES} bytes, too long for any prompt`);
      }
      chunks.push(bytes);
    }
  } catch (cause) {
    if (cause instanceof AprError) throw cause;
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') {
      throw new AprError('NOT_FOUND', `-i ${name}: no such file`, { option: '--input', path: name }, { cause });
    }
    const reason = code === 'EISDIR' ? 'it is a directory' : message;
    throw new AprError('IO', `-i ${name}: the prompt cannot be read: ${reason}`, { path: name }, { cause });
  }
  return Buffer.concat(chunks);
}

/** @throws AprError USAGE for bytes that are no UTF-8 */
export function decodeText(bytes: Uint8Array, name: string): string {
  try {
    // A byte-order mark is part of the text: nothing is trimmed.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new AprError('USAGE', `${name}: is not valid UTF-8, expected text in UTF-8`, { path: name }, { cause });
  }
}
