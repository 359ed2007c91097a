/** The part of node-llama-cpp's interface that is used here; the package itself is no dependency. */

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { installPeer } from './install.ts';

export interface TokenOutput {
  readonly next: { readonly token?: number | null; readonly probabilities?: ReadonlyMap<number, number> };
}

export interface TokenInputOptions {
  readonly generateNext: {
    readonly token?: boolean;
    readonly probabilities?: boolean;
    readonly options?: { readonly temperature: number };
  };
}

export interface LlamaSequence {
  controlledEvaluate(input: (number | [number, TokenInputOptions])[]): Promise<(TokenOutput | undefined)[]>;
  evaluate(
    tokens: number[],
    options: { temperature: number; yieldEogToken: boolean },
  ): AsyncGenerator<number, void, undefined>;
  clearHistory(): Promise<void>;
}

export interface LlamaContext {
  getSequence(): LlamaSequence;
  dispose(): Promise<void>;
}

export interface LlamaModel {
  tokenize(text: string, specialTokens: boolean): number[];
  detokenize(tokens: readonly number[], specialTokens?: boolean): string;
  isEogToken(token: number): boolean;
  readonly fileInfo: { readonly metadata: unknown };
  createContext(options: {
    contextSize: number;
    batchSize: number;
    threads: number;
    flashAttention?: boolean | 'auto';
  }): Promise<LlamaContext>;
  dispose(): Promise<void>;
}

export interface Llama {
  readonly systemInfo: string;
  loadModel(options: { modelPath: string; gpuLayers: number }): Promise<LlamaModel>;
  dispose(): Promise<void>;
}

/** node-llama-cpp on the CPU, at most that many threads; installed if need be. */
export async function loadLlama(maxThreads: number): Promise<Llama> {
  const entry = pathToFileURL(join(installPeer(), 'dist', 'index.js')).href;
  const { getLlama } = (await import(entry)) as { getLlama(options: unknown): Promise<Llama> };
  return getLlama({ gpu: false, build: 'never', maxThreads, logLevel: 'error', progressLogs: false });
}
