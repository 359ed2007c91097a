/** Conversations as files. */

import { randomBytes } from 'node:crypto';
import { open, readFile, rename, stat, unlink } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { AprError } from '../../src/errors.ts';
import { visibleLine } from '../render/terminal.ts';
import { parseConversation } from './conversation.ts';
import type { ChatSession } from './session.ts';

/** `/save [--force] FILE` @throws AprError USAGE, OVERWRITE, IO */
export async function save(session: ChatSession, argument: string): Promise<void> {
  const force = /^--force\s+/.exec(argument);
  const path = atHome(argument.slice(force?.[0].length ?? 0));
  if (path === '') throw new AprError('USAGE', '/save needs the name of a file');
  const own = session.ownFiles.has(path);
  if ((await exists(path)) && force === null && !own) {
    throw new AprError('OVERWRITE', `${path}: exists; /save --force ${path} overwrites it`, { path });
  }
  const messages = session.conversation.messages();
  const document = { version: '1.0', model: session.engine.info.model, messages };
  await writeWhole(path, `${JSON.stringify(document, undefined, 2)}\n`);
  session.ownFiles.add(path);
  session.say(`(${messages.length} messages are in ${visibleLine(path)})`);
}

/** `/load FILE` @throws AprError USAGE, NOT_FOUND, BAD_FORMAT, IO */
export async function load(session: ChatSession, argument: string): Promise<void> {
  const path = atHome(argument);
  if (path === '') throw new AprError('USAGE', '/load needs the name of a file');
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    const missing = (cause as { code?: string }).code === 'ENOENT';
    const message = missing ? `${path}: no such file` : `${path}: cannot be read: ${reasonOf(cause)}`;
    throw new AprError(missing ? 'NOT_FOUND' : 'IO', message, { path }, { cause });
  }
  const messages = parseConversation(text, path);
  session.conversation.replace(messages, path);
  session.ownFiles.add(path);
  session.say(`(${messages.length} messages from ${visibleLine(path)}; the next answer goes on from there)`);
}

/** As a shell does, whose user types this. */
function atHome(path: string): string {
  return path.startsWith('~/') ? join(homedir(), path.slice(2)) : path;
}

/** @throws AprError USAGE for what is there and is no file, IO */
async function exists(path: string): Promise<boolean> {
  let stats: Awaited<ReturnType<typeof stat>>;
  try {
    stats = await stat(path);
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return false;
    throw cannotWrite(path, error);
  }
  if (stats.isFile()) return true;
  // Renaming would put a plain file in the place of a device or pipe.
  const what = stats.isDirectory() ? 'a folder' : 'a device or pipe';
  throw new AprError('USAGE', `${path}: is ${what}, expected the name of a file`, { path });
}

/** Through a temporary name: what was there stays until the new text is complete. */
async function writeWhole(path: string, text: string): Promise<void> {
  const temporary = `${path}.${randomBytes(4).toString('hex')}.tmp`;
  try {
    const file = await open(temporary, 'wx');
    try {
      await file.writeFile(text);
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => {}); // it may not have come into being
    throw cannotWrite(path, error);
  }
}

function cannotWrite(path: string, cause: unknown): AprError {
  const noFolder = (cause as { code?: string }).code === 'ENOENT';
  const reason = noFolder ? `there is no folder ${dirname(path)}` : reasonOf(cause);
  return new AprError('IO', `${path}: cannot be written: ${reason}`, { path }, { cause });
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
