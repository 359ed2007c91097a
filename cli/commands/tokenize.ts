/** `apr tokenize encode SOURCE` and `apr tokenize decode SOURCE ID…` */

import { AprError } from '../../src/errors.ts';
import type { Tokenizer } from '../../src/index.ts';
import type { Environment } from '../environment.ts';
import { type OptionValues, quote } from '../options.ts';
import { readPrompt } from '../prompt.ts';
import type { OutputForm } from '../render/error.ts';
import { jsonLine } from '../render/json.ts';
import { visible, visibleLine, write } from '../render/terminal.ts';
import { resolveSource } from '../source.ts';
import type { TOKENIZE_OPTIONS } from './tokenize-options.ts';

type Values = OptionValues<typeof TOKENIZE_OPTIONS>;

const USAGE = 'apr tokenize encode SOURCE PROMPT, or apr tokenize decode SOURCE ID…';

/** @throws AprError for everything that goes wrong */
export async function tokenize(
  positionals: readonly string[],
  values: Values,
  form: OutputForm,
  { stdin, stdout, stderr }: Environment,
): Promise<void> {
  const [action, source, ...words] = positionals;
  if (action !== 'encode' && action !== 'decode') {
    const found = action === undefined ? 'nothing is said to be done' : `found ${quote(action)}`;
    throw new AprError('USAGE', `${found}, expected ${USAGE}`, { found: action ?? null });
  }
  if (source === undefined) throw new AprError('USAGE', `SOURCE is missing, expected ${USAGE}`);
  if (values.count && values.pieces) {
    throw new AprError('USAGE', '--count and --pieces exclude each other; give one of them', { option: '--pieces' });
  }
  const path = await resolveSource(source, values, { stderr });
  if (action === 'encode') {
    const [positional, ...surplus] = words;
    if (surplus.length > 0) {
      const message = `found ${words.length} words behind SOURCE, expected one text; put quotes around it`;
      throw new AprError('USAGE', message, { found: words.length, expected: 1 });
    }
    const text = await readPrompt({ positional, option: values.prompt, file: values.input }, stdin);
    const tokenizer = await open(path);
    const ids = encode(tokenizer, path, text, values);
    if (values.count) {
      await write(stdout, form === 'json' ? jsonLine({ count: ids.length }) : `${ids.length}\n`);
      return;
    }
    if (values.pieces) await write(stdout, withPieces(tokenizer, ids, form));
    else await write(stdout, form === 'json' ? jsonLine({ tokens: ids }) : `${ids.join(' ')}\n`);
    if (stderr.isTTY && !values.quiet) stderr.write(`${ids.length} token${ids.length === 1 ? '' : 's'}\n`);
    return;
  }
  for (const name of ['prompt', 'input', 'bos', 'count'] as const) {
    if (values[name] === undefined) continue;
    const message = `--${name} is for encode; decode takes the ids behind SOURCE`;
    throw new AprError('USAGE', message, { option: `--${name}` });
  }
  const ids = readIds(words);
  const tokenizer = await open(path);
  const text = tokenizer.decode(ids, { special: values.special === true });
  if (values.pieces) {
    await write(stdout, withPieces(tokenizer, ids, form));
    return;
  }
  if (form === 'json') await write(stdout, jsonLine({ text }));
  else await write(stdout, `${stdout.isTTY ? visible(text) : text}\n`);
}

// `ignoreBOM` keeps a byte-order mark, which can be a token.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true, fatal: true });

/** Text of a token, or its bytes where they are no text by themselves. */
function pieceOf(tokenizer: Tokenizer, id: number): string | readonly number[] {
  const bytes = tokenizer.tokenBytes(id, { special: true });
  try {
    return decoder.decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return [...bytes];
    throw error;
  }
}

/** Ids and pieces as a document, or a line for each. */
function withPieces(tokenizer: Tokenizer, ids: readonly number[], form: OutputForm): string {
  const pieces = ids.map((id) => pieceOf(tokenizer, id));
  if (form === 'json') return jsonLine({ tokens: ids, pieces });
  const width = ids.reduce((widest, id) => Math.max(widest, String(id).length), 0);
  const shown = (piece: string | readonly number[]): string =>
    typeof piece === 'string'
      ? visibleLine(JSON.stringify(piece))
      : `<${piece.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')}>`;
  return ids.map((id, at) => `${String(id).padStart(width)}  ${shown(pieces[at]!)}\n`).join('');
}

async function open(path: string): Promise<Tokenizer> {
  const { loadTokenizer } = await import('../../src/index.ts');
  return loadTokenizer(path);
}

function encode(tokenizer: Tokenizer, path: string, text: string, { special, bos }: Values): number[] {
  const ids = tokenizer.encode(text, { special: special === true });
  if (bos !== true) return ids;
  const { bosId } = tokenizer;
  if (bosId === undefined) {
    const message = `--bos asks for a token that begins the text, but ${path} declares none (tokenizer.ggml.bos_token_id)`;
    throw new AprError('USAGE', message, { option: '--bos' });
  }
  return ids[0] === bosId ? ids : [bosId, ...ids];
}

/** Ids between spaces or commas, as `encode` prints them in either form. */
function readIds(words: readonly string[]): number[] {
  const ids = words
    .flatMap((word) => word.replace(/^\[(.*)\]$/s, '$1').split(/[\s,]+/))
    .filter((word) => word !== '')
    .map((word) => {
      if (/^\d{1,10}$/.test(word)) return Number(word);
      throw new AprError('USAGE', `found ${quote(word)} among the ids, expected whole numbers from 0`, { found: word });
    });
  if (ids.length === 0) throw new AprError('USAGE', `no ids, expected ${USAGE}`);
  return ids;
}
