/** Runs a page in headless Chromium. The page posts what it has found out to `/report`. */

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PLACES = [
  process.env.APR_CHROMIUM,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** Path of Chromium, also from the variable APR_CHROMIUM; undefined where there is none. */
export function findChromium(): string | undefined {
  return PLACES.find((path) => path !== undefined && existsSync(path));
}

/** Opens the page; the returned function ends the browser and waits for it. */
export function openChromium(path: string, url: string): () => Promise<void> {
  const profile = mkdtempSync(join(tmpdir(), 'apr-chromium-'));
  const browser = spawn(
    path,
    [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      // Docker's /dev/shm is small.
      '--disable-dev-shm-usage',
      `--user-data-dir=${profile}`,
      url,
    ],
    { stdio: 'ignore', detached: true },
  );
  const ended = new Promise<void>((resolve) => {
    browser.once('close', () => resolve());
    browser.once('error', () => resolve());
  });
  const kill = (): void => {
    try {
      // With the processes below it.
      process.kill(-(browser.pid as number), 'SIGKILL');
    } catch {
      browser.kill('SIGKILL'); // no process groups here, or it is gone already
    }
  };
  const interrupted = (): void => process.exit(130);
  process.once('exit', kill);
  // A signal alone would end this process without the event above, and leave the browser.
  process.once('SIGINT', interrupted);
  process.once('SIGTERM', interrupted);
  return async () => {
    process.off('exit', kill);
    process.off('SIGINT', interrupted);
    process.off('SIGTERM', interrupted);
    kill();
    await ended;
    rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  };
}
