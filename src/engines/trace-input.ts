/** What a trace works on: the tokens of the prompt, found and checked before weights are read. */

import { createChatTemplate, encodeSegments } from '../chat/index.ts';
import type { EngineOptions } from '../engine.ts';
import { AprError } from '../errors.ts';
import { openModel } from '../formats/open-model.ts';
import { type Hyperparameters, readHyperparameters } from '../models/hyperparameters.ts';
import type { Platform } from '../platform/platform.ts';
import { createTokenizer, type Tokenizer } from '../tokenizer/index.ts';
import type { ActivationRows, PositionRange } from '../trace/rows.ts';
import { OUTER_STAGES, STAGES, stageOf } from '../trace/stages.ts';

export interface TraceOptions extends Omit<EngineOptions, 'shared'> {
  /** Text, or the ids themselves. */
  prompt: string | readonly number[];
  /** Apply the chat template to the text. Default: where the model has one. */
  chat?: boolean;
  /** System message of the chat. */
  system?: string;
  thinking?: boolean;
  /** Which tokens of the prompt the figures are about. Default `last`. */
  tokens?: 'last' | 'all';
  /** Tokens to generate behind the prompt. Default 0. */
  maxTokens?: number;
  /** List every activation of every layer. Default false. */
  payload?: boolean;
  /** Only this layer is listed, saved and compared. */
  layer?: number;
  /** Only these stages are saved and compared. */
  stages?: readonly string[];
  /** Path of a model of the same shape, `backend:reference` or `backend:cpu`, or a folder of saved tensors. */
  reference?: string;
  /** Least cosine. Default 0.99. */
  threshold?: number;
  /** Largest relative L2 difference. Default 0.05. */
  maxL2?: number;
  /** New folder for the activations as .npy files. */
  saveTensors?: string;
}

/**
 * Tokens that are looked at together: enough that the kernels of prefill take part, few enough that a reference's
 * activations of them fit into memory.
 */
const WINDOW = 16;

/** Passes up to position `end`, from where the one before ended. */
export interface Window {
  readonly end: number;
  readonly observed: boolean;
}

export type ModelShape = Pick<
  Hyperparameters,
  'architecture' | 'blockCount' | 'embeddingLength' | 'headCount' | 'vocabularySize'
>;

export interface TraceInput {
  readonly tokenizer: Tokenizer;
  readonly shape: ModelShape;
  /** The prompt, at least one token. */
  readonly ids: readonly number[];
  readonly windows: readonly Window[];
  /** The tokens that the figures are about. */
  readonly range: PositionRange;
}

/**
 * Finds what can be wrong with the request before weights are read.
 * @throws AprError USAGE, TEMPLATE, and what a file throws whose header cannot be read
 */
export async function readInput(
  platform: Pick<Platform, 'openSource'>,
  source: string,
  options: TraceOptions,
): Promise<TraceInput> {
  const { prompt, system, thinking, layer } = options;
  checkNumbers(options);
  const bytes = await platform.openSource(source);
  try {
    const { metadata } = await openModel(bytes);
    const tokenizer = createTokenizer(metadata);
    const template = createChatTemplate(metadata, tokenizer);
    const shape = readHyperparameters(metadata);
    const { blockCount } = shape;
    if (layer !== undefined && layer >= blockCount) {
      const message = `layer is ${layer}, expected one from 0 to ${blockCount - 1}: ${source} has ${blockCount}`;
      throw new AprError('USAGE', message, { option: 'layer' });
    }
    const chat = typeof prompt === 'string' && (options.chat ?? template !== undefined);
    let ids: readonly number[];
    if (!chat) {
      for (const [name, given] of [
        ['system', system !== undefined],
        ['thinking', thinking === true],
      ] as const) {
        if (given) throw new AprError('USAGE', `${name} needs a chat template, and this prompt goes through none`);
      }
      ids = typeof prompt === 'string' ? tokenizer.encode(prompt, { special: true, addSpecial: true }) : [...prompt];
    } else if (template === undefined) {
      throw new AprError('TEMPLATE', `${source}: the file has no chat template; give the prompt as plain text (--raw)`);
    } else {
      const messages = [...(system === undefined ? [] : [{ role: 'system', content: system }])];
      const segments = template.render([...messages, { role: 'user', content: prompt }], {
        thinking: thinking ?? false,
      });
      ids = encodeSegments(tokenizer, segments);
    }
    if (ids.length === 0) throw new AprError('USAGE', 'the prompt is empty: there is no token to trace');
    const all = options.tokens === 'all';
    const range = { first: all ? 0 : ids.length - 1, last: ids.length - 1 };
    return { tokenizer, shape, ids, windows: windowsOf(ids.length, all), range };
  } finally {
    await bytes.close();
  }
}

function checkNumbers({ layer, threshold, maxL2, stages, maxTokens, tokens }: TraceOptions): void {
  const check = (name: string, value: number | undefined, least: number, most: number, whole: boolean): void => {
    if (value === undefined || (value >= least && value <= most && (!whole || Number.isInteger(value)))) return;
    const message = `${name} is ${value}, expected ${whole ? 'a whole number' : 'a number'} from ${least} to ${most}`;
    throw new AprError('USAGE', message, { option: name });
  };
  check('layer', layer, 0, 2 ** 31 - 1, true);
  check('maxTokens', maxTokens, 0, 2 ** 31 - 1, true);
  check('threshold', threshold, -1, 1, false);
  check('maxL2', maxL2, 0, Number.MAX_VALUE, false);
  if (tokens !== undefined && tokens !== 'last' && tokens !== 'all') {
    throw new AprError('USAGE', `tokens is ${JSON.stringify(tokens)}, expected last or all`, { option: 'tokens' });
  }
  const unknown = stages?.find((name) => !STAGES.some((stage) => stage.name === name));
  if (unknown !== undefined || stages?.length === 0) {
    const names = STAGES.map(({ name }) => name).join(', ');
    const found = unknown === undefined ? 'stages is empty' : `stage ${JSON.stringify(unknown)} is unknown`;
    throw new AprError('USAGE', `${found}, expected some of ${names}`, { option: 'stages' });
  }
  if (layer !== undefined && stages?.every((name) => OUTER_STAGES.some((stage) => stage.name === name))) {
    const message = `no layer computes ${stages.join(' or ')}, but layer ${layer} alone was chosen; leave one of them out`;
    throw new AprError('USAGE', message, { option: 'stages' });
  }
}

function windowsOf(length: number, all: boolean): Window[] {
  if (all) {
    const count = Math.ceil(length / WINDOW);
    return Array.from({ length: count }, (_, i) => ({ end: Math.min(length, (i + 1) * WINDOW), observed: true }));
  }
  const before = Math.max(0, length - WINDOW);
  return [...(before === 0 ? [] : [{ end: before, observed: false }]), { end: length, observed: true }];
}

/** @throws AprError for a file whose header cannot be read */
export async function readShape(platform: Pick<Platform, 'openSource'>, source: string): Promise<ModelShape> {
  const bytes = await platform.openSource(source);
  try {
    return readHyperparameters((await openModel(bytes)).metadata);
  } finally {
    await bytes.close();
  }
}

/** Whether what was asked for includes this activation. */
export function isChosen({ name, layer }: ActivationRows, { layer: only, stages }: TraceOptions): boolean {
  if (only !== undefined && layer !== only) return false;
  return stages === undefined || stages.includes(stageOf(name)?.name ?? name);
}
