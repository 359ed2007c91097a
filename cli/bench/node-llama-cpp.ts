/** node-llama-cpp as it is measured: llama.cpp, native, on the CPU. It is no dependency; whoever has it can compare. */

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { AprError } from '../../src/errors.ts';
import type { Subject } from './subject.ts';

const NAME = 'node-llama-cpp';

/** The part of its interface that is used here. */
interface Package {
  getLlama(options: Readonly<Record<string, unknown>>): Promise<Llama>;
}

interface Llama {
  readonly systemInfo: string;
  loadModel(options: { readonly modelPath: string; readonly gpuLayers: number }): Promise<LlamaModel>;
  dispose(): Promise<void>;
}

interface LlamaModel {
  createContext(options: Readonly<Record<string, number>>): Promise<LlamaContext>;
}

interface LlamaContext {
  getSequence(): {
    evaluate(
      tokens: number[],
      options: { readonly temperature: number; readonly yieldEogToken: boolean },
    ): AsyncGenerator<number, void, undefined>;
    clearHistory(): Promise<void>;
  };
  dispose(): Promise<void>;
}

export interface Peer {
  readonly name: string;
  readonly version: string;
  /** What llama.cpp says about the instructions that it uses. */
  readonly system: string;
  subject(threads: number, contextLength: number, longestPrompt: number): Promise<Subject>;
  dispose(): Promise<void>;
}

export interface PeerPackage {
  readonly version: string;
  /** Path of its entry. */
  readonly entry: string;
}

/**
 * The package as a program in `folder` would find it.
 * @throws AprError BACKEND_UNAVAILABLE
 */
export function findPeer(folder: string): PeerPackage {
  for (let at = folder; ; at = dirname(at)) {
    const place = join(at, 'node_modules', NAME);
    if (existsSync(join(place, 'package.json'))) return readPackage(place);
    if (at !== dirname(at)) continue;
    const message =
      `--compare ${NAME}: no such package is installed in or above ${folder}; ` +
      `run "npm install ${NAME}" there, or leave --compare out`;
    throw new AprError('BACKEND_UNAVAILABLE', message, { requested: NAME, path: folder });
  }
}

function readPackage(place: string): PeerPackage {
  try {
    const manifest = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8')) as Record<string, unknown>;
    const root = (manifest.exports as Record<string, unknown> | undefined)?.['.'];
    const entry = typeof root === 'object' && root !== null ? (root as Record<string, unknown>).import : root;
    const path = typeof entry === 'string' ? entry : manifest.main;
    if (typeof path !== 'string' || typeof manifest.version !== 'string') {
      throw new Error('its package.json names no entry, or no version');
    }
    return { version: manifest.version, entry: join(place, path) };
  } catch (cause) {
    throw unusable(place, cause);
  }
}

function unusable(place: string, cause: unknown): AprError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const message = `--compare ${NAME}: the package in ${place} cannot be used: ${reason}`;
  return new AprError('BACKEND_UNAVAILABLE', message, { requested: NAME, path: place }, { cause });
}

/**
 * Loads the model with it.
 * @throws AprError BACKEND_UNAVAILABLE when the package has no binary for this machine, LOAD_FAILED when it refuses the file
 */
export async function loadPeer({ version, entry }: PeerPackage, path: string, maxThreads: number): Promise<Peer> {
  let llama: Llama;
  try {
    const { getLlama } = (await import(pathToFileURL(entry).href)) as Package;
    // Never build: that would take minutes, and a compiler.
    llama = await getLlama({ gpu: false, build: 'never', maxThreads, logLevel: 'error', progressLogs: false });
  } catch (cause) {
    throw unusable(entry, cause);
  }
  let model: LlamaModel;
  try {
    model = await llama.loadModel({ modelPath: path, gpuLayers: 0 });
  } catch (cause) {
    await llama.dispose();
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new AprError('LOAD_FAILED', `${NAME} cannot load ${path}: ${reason}`, { requested: NAME, path }, { cause });
  }
  return {
    name: NAME,
    version,
    system: llama.systemInfo.trim(),
    subject: async (threads, contextSize, batchSize) =>
      subjectOf(await model.createContext({ threads, contextSize, batchSize: Math.max(batchSize, 512) })),
    dispose: () => llama.dispose(),
  };
}

function subjectOf(context: LlamaContext): Subject {
  const sequence = context.getSequence();
  /** Milliseconds to the first token, and from it on for `count` more. */
  const run = async (prompt: readonly number[], count: number): Promise<readonly [number, number]> => {
    await sequence.clearHistory();
    const start = performance.now();
    let first = start;
    let tokens = 0;
    for await (const _ of sequence.evaluate([...prompt], { temperature: 0, yieldEogToken: true })) {
      if (tokens === 0) first = performance.now();
      if (++tokens > count) break;
    }
    if (tokens <= count) {
      throw new AprError(
        'INFERENCE',
        `${NAME} stopped after ${tokens} tokens, expected ${count + 1}: nothing was measured`,
      );
    }
    return [first - start, performance.now() - first];
  };
  return {
    prefill: async (prompt) => (1000 * prompt.length) / (await run(prompt, 0))[0],
    decode: async (first, count) => (1000 * count) / (await run([first], count))[1],
    dispose: () => context.dispose(),
  };
}
