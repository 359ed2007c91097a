/** What a caller of the library hands over is checked before anything is computed for it. */

import type { EngineOptions, GenerateRequest } from '../engine.ts';
import { AprError } from '../errors.ts';
import { isModelSource } from '../formats/model-source.ts';

const BACKENDS: readonly unknown[] = ['auto', 'cpu', 'reference', 'cuda', 'wgpu'];
const KERNELS: readonly unknown[] = ['simd', 'relaxed'];
export const MAX_THREADS = 256;
export const MAX_SEQUENCES = 64;

function refuse(name: string, found: unknown, expected: string): never {
  const shown =
    typeof found === 'string' ? JSON.stringify(found.slice(0, 80)) : Array.isArray(found) ? 'an array' : String(found);
  throw new AprError('USAGE', `${name} is ${shown}, expected ${expected}`, { option: name });
}

/** @throws AprError USAGE naming the option */
export function validateEngineOptions(source: unknown, options: EngineOptions): void {
  if (!isModelSource(source)) refuse('source', source, 'the path, URL, bytes or Blob of a model file');
  const { backend, kernel, threads, sequences } = options;
  if (backend !== undefined && !BACKENDS.includes(backend)) refuse('backend', backend, `one of ${BACKENDS.join(', ')}`);
  if (kernel !== undefined && !KERNELS.includes(kernel)) refuse('kernel', kernel, `one of ${KERNELS.join(', ')}`);
  for (const name of ['skipContract', 'selfCheck'] as const) {
    const value = options[name];
    if (value !== undefined && typeof value !== 'boolean') refuse(name, value, 'true or false');
  }
  if (threads !== undefined && !isWhole(threads, 1, MAX_THREADS)) {
    refuse('threads', threads, `a whole number from 1 to ${MAX_THREADS}`);
  }
  if (sequences !== undefined && !isWhole(sequences, 1, MAX_SEQUENCES)) {
    refuse('sequences', sequences, `a whole number from 1 to ${MAX_SEQUENCES}`);
  }
}

/** Everything but the sampling options, which the sampler checks. @throws AprError USAGE naming the option */
export function validateRequest(request: GenerateRequest): void {
  if (typeof request !== 'object' || request === null) refuse('request', request, 'an object with prompt or messages');
  const { prompt, messages, maxTokens, stop, logprobs } = request;
  if ((prompt === undefined) === (messages === undefined)) {
    throw new AprError('USAGE', 'a request needs either a prompt or messages, and not both');
  }
  if (prompt !== undefined && typeof prompt !== 'string' && !Array.isArray(prompt)) {
    refuse('prompt', prompt, 'a text or an array of token ids');
  }
  if (messages !== undefined) validateMessages(messages);
  if (maxTokens !== undefined && !isWhole(maxTokens, 0, 2 ** 31 - 1)) {
    refuse('maxTokens', maxTokens, 'a whole number from 0');
  }
  if (stop !== undefined && (!Array.isArray(stop) || stop.some((text) => typeof text !== 'string' || text === ''))) {
    refuse('stop', stop, 'an array of texts that are not empty');
  }
  if (logprobs !== undefined && !isWhole(logprobs, 0, 2 ** 31 - 1))
    refuse('logprobs', logprobs, 'a whole number from 0');
}

export function validateMessages(messages: unknown): void {
  if (!Array.isArray(messages)) refuse('messages', messages, 'an array of {role, content}');
  for (const [index, message] of messages.entries()) {
    if (typeof message !== 'object' || message === null) {
      refuse(`messages[${index}]`, message, 'an object with role and content');
    }
  }
}

/** A copy of the ids, so that nobody can change them while they are in use. @throws AprError USAGE */
export function validateTokens(tokens: unknown, vocabularySize: number): number[] {
  if (typeof tokens !== 'object' || tokens === null || !(Symbol.iterator in tokens)) {
    refuse('tokens', tokens, 'an array of token ids');
  }
  const ids = [...(tokens as Iterable<unknown>)];
  for (const id of ids) {
    if (isWhole(id, 0, vocabularySize - 1)) continue;
    throw new AprError('USAGE', `token ${String(id)} is not in the vocabulary of ${vocabularySize} tokens`);
  }
  return ids as number[];
}

function isWhole(value: unknown, least: number, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
}
