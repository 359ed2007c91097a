/** What a command works with, so that tests can hand in their own. */

import type { createEngine } from '../src/index.ts';
import type { InputStream } from './prompt.ts';

export interface OutputStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string, done?: (error?: Error | null) => void): boolean;
}

export interface Environment {
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** Hands interrupts (Ctrl-C) to the command, until it gives them back by the returned function. */
  takeInterrupts?(handler: () => void): () => void;
  /** What an interrupt does when no command takes it: the process ends. */
  interrupted?(): void;
  /** Tells the status that the process is to end with if its reader walks away; filled in by runCli. */
  failing?(status: number): void;
  /** Whether there is something at this path, asked before a prompt is waited for. Absent: opening it says so. */
  sourceExists?(path: string): boolean;
  /** Imports the engine only when a command needs it. */
  loadCreateEngine(): Promise<typeof createEngine>;
}
