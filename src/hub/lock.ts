/**
 * One download of a file at a time, over all processes that share the cache. Node has no lock that the system gives back
 * when a process dies, so the holder touches its lock file now and then, and one that is dead or silent loses it. Where
 * two hold it in spite of that (a machine that slept), the digest of the file tells: no wrong file comes of it.
 */

import { randomUUID } from 'node:crypto';
import { statSync, unlinkSync, utimesSync } from 'node:fs';
import { mkdir, open, readFile, stat, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { AprError } from '../errors.ts';

const TOUCH_MS = 5_000;
/** Since the last touch: its holder is gone, or lives on a machine that sleeps. */
const SILENT_MS = 60_000;
const POLL_MS = 250;

export interface LockOptions {
  readonly signal?: AbortSignal | undefined;
  /** Told once, when somebody else holds it. */
  readonly onWait?: (holder: string) => void;
}

/**
 * Takes the lock, waiting for whoever has it.
 * @returns gives it back
 * @throws AprError IO, ABORTED
 */
export async function lock(path: string, { signal, onWait }: LockOptions = {}): Promise<() => void> {
  const own = JSON.stringify({ pid: process.pid, host: hostname(), id: randomUUID() });
  try {
    await mkdir(dirname(path), { recursive: true });
    for (let told = false; ; ) {
      if (await create(path, own)) return holding(path);
      const holder = await readHolder(path);
      if (holder === undefined) continue;
      if (isGone(holder)) {
        await takeAway(path, holder.text);
        continue;
      }
      if (!told) onWait?.(holder.pid === undefined ? 'another process' : `process ${holder.pid} on ${holder.host}`);
      told = true;
      await delay(POLL_MS, undefined, signal === undefined ? {} : { signal });
    }
  } catch (cause) {
    if (signal?.aborted) throw new AprError('ABORTED', 'the download was interrupted', {}, { cause });
    throw new AprError('IO', `${path}: cannot be locked: ${(cause as Error).message}`, { path }, { cause });
  }
}

async function create(path: string, text: string): Promise<boolean> {
  try {
    const handle = await open(path, 'wx');
    await handle.writeFile(text);
    await handle.close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function holding(path: string): () => void {
  const { ino } = statSync(path);
  const isOurs = (): boolean => statSync(path, { throwIfNoEntry: false })?.ino === ino;
  const timer = setInterval(() => {
    try {
      if (isOurs()) utimesSync(path, new Date(), new Date());
    } catch {
      // A folder that cannot be written any more will be told by the download itself.
    }
  }, TOUCH_MS);
  timer.unref();
  const release = (): void => {
    clearInterval(timer);
    process.off('exit', release);
    try {
      if (isOurs()) unlinkSync(path);
    } catch {
      // Whoever comes next finds a lock whose holder is gone.
    }
  };
  // An interrupt ends the process without another turn of the event loop.
  process.once('exit', release);
  return release;
}

interface Holder {
  readonly text: string;
  readonly pid: number | undefined;
  readonly host: string;
  readonly silentMs: number;
}

async function readHolder(path: string): Promise<Holder | undefined> {
  try {
    const text = await readFile(path, 'utf8');
    const silentMs = Date.now() - (await stat(path)).mtimeMs;
    let pid: number | undefined;
    let host = '';
    try {
      const holder = JSON.parse(text) as { pid?: unknown; host?: unknown };
      if (Number.isSafeInteger(holder.pid) && typeof holder.host === 'string') {
        pid = holder.pid as number;
        host = holder.host;
      }
    } catch {
      // Being written right now, or left half written by a process that died; its age tells.
    }
    return { text, pid, host, silentMs };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function isGone({ pid, host, silentMs }: Holder): boolean {
  if (silentMs > SILENT_MS) return true;
  if (pid === undefined || host !== hostname()) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

/** Removes the lock of a holder that is gone; guarded, so that nobody removes the one that somebody took since. */
async function takeAway(path: string, text: string): Promise<void> {
  const guard = `${path}.take`;
  if (!(await create(guard, ''))) {
    const age = Date.now() - (statSync(guard, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > SILENT_MS) await unlink(guard).catch(ignoreMissing);
    else await delay(POLL_MS);
    return;
  }
  try {
    const holder = await readHolder(path);
    if (holder?.text === text) await unlink(path).catch(ignoreMissing);
  } finally {
    await unlink(guard).catch(ignoreMissing);
  }
}

function ignoreMissing(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}
