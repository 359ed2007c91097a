/** Runs measured processes one at a time. */

import { type ChildProcess, spawn } from 'node:child_process';
import type { ModelMeasurement, ModelTask } from './measurement.ts';
import { compiled } from './repository.ts';

/**
 * One measurement in a process of its own.
 * @throws Error with what the process wrote to stderr when it fails
 */
export async function measureModel(
  node: string,
  engine: 'ours' | 'peer',
  { model, threads, prefill, decode, context }: ModelTask,
): Promise<ModelMeasurement> {
  const script = compiled(engine === 'ours' ? 'bench/ours.js' : 'bench/peers/node-llama-cpp.js');
  const child = spawn(node, [script, model, ...[threads, prefill, decode, context].map(String)]);
  const output = collect(child);
  const errors = collect(child, 'stderr');
  const [code, signal] = await ended(child);
  const line = (await output).trim().split('\n').at(-1) ?? '';
  if (code !== 0 || !line.startsWith('{')) {
    throw new Error(`${script} ended with ${signal ?? code}: ${(await errors).trim() || line || 'no output'}`);
  }
  return JSON.parse(line) as ModelMeasurement;
}

/**
 * Milliseconds from the start of `apr run demo` to the first token on its output.
 * @throws Error when the command fails
 */
export async function measureStart(node: string, threads: number): Promise<number> {
  const start = performance.now();
  const args = ['run', 'demo', 'What is 2+2?', '--stream', '--threads', String(threads)];
  const child = spawn(node, [compiled('cli/main.js'), ...args]);
  let first: number | undefined;
  child.stdout.once('data', () => {
    first = performance.now() - start;
  });
  const output = collect(child);
  const errors = collect(child, 'stderr');
  const [code, signal] = await ended(child);
  const text = (await output).split('\n')[0] ?? '';
  if (code !== 0 || first === undefined || !text.includes('"event":"token"')) {
    throw new Error(`apr run demo ended with ${signal ?? code}: ${(await errors).trim() || text || 'no output'}`);
  }
  return first;
}

async function collect(child: ChildProcess, stream: 'stdout' | 'stderr' = 'stdout'): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of child[stream]!) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function ended(child: ChildProcess): Promise<[code: number | null, signal: string | null]> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve([code, signal]));
  });
}
