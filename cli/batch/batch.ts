/** `apr run SOURCE --batch-jsonl FILE`: a request a line in, a result a line out, in the order of the requests. */

import { createReadStream } from 'node:fs';
import { AprError } from '../../src/errors.ts';
import type { Engine, FinalEvent, GenerateRequest } from '../../src/index.ts';
import type { Environment } from '../environment.ts';
import { decodeLine, longLine, readLinesThatFit } from '../lines.ts';
import type { InputStream } from '../prompt.ts';
import { errorBody } from '../render/error.ts';
import { jsonLine } from '../render/json.ts';
import { write } from '../render/terminal.ts';
import { inOrder } from './in-order.ts';
import { parseObject, parseTask, type Task, type TaskId, taskIdOf } from './task.ts';

/** For each sequence, so many results may wait for that of an earlier line. */
const WAITING = 8;

export interface BatchOptions {
  /** The file of requests; "-" is standard input. */
  readonly file: string;
  /** What a line leaves out. */
  complete(task: Task): GenerateRequest;
}

export interface BatchOutcome {
  readonly answers: number;
  readonly failures: number;
  readonly tokens: number;
  /** Of the whole batch. */
  readonly seconds: number;
}

/** Exit status of a batch with a line that failed. */
export const LINE_FAILED = 1;

const CPU_BACKENDS: ReadonlySet<string> = new Set(['cpu', 'reference']);

interface Line {
  /** From 1. */
  readonly number: number;
  /** Undefined for one that is too long. */
  readonly bytes: Uint8Array | undefined;
}

interface Result {
  readonly document: object;
  /** Undefined for a line that failed. */
  readonly final: FinalEvent | undefined;
}

/**
 * As many requests run at a time as the engine has sequences. A line that cannot be answered has an error for its
 * result, and the others go on.
 * @throws AprError for a file that cannot be read; what was asked before it is answered first
 */
export async function runBatch(
  engine: Engine,
  { file, complete }: BatchOptions,
  { stdin, stdout, failing }: Pick<Environment, 'stdin' | 'stdout' | 'failing'>,
): Promise<BatchOutcome> {
  const [stream, name] = file === '-' ? [stdin, 'standard input'] : [createReadStream(file), file];
  const { sequences } = engine.info;
  // One more than run: it stands ready when another one ends.
  const limits = { running: sequences + 1, taken: sequences * WAITING };
  const start = performance.now();
  let [answers, failures, tokens] = [0, 0, 0];
  const answer = (line: Line): Promise<Result> => answerLine(engine, line, name, complete);
  for await (const { document, final } of inOrder(numbered(stream, name), answer, limits)) {
    if (final !== undefined) answers++;
    else {
      failures++;
      failing?.(LINE_FAILED);
    }
    tokens += final?.tokens_generated ?? 0;
    await write(stdout, jsonLine(document));
  }
  return { answers, failures, tokens, seconds: (performance.now() - start) / 1000 };
}

/** Lines that are not blank, with their numbers in the file. */
async function* numbered(stream: InputStream, name: string): AsyncGenerator<Line, void, undefined> {
  let number = 0;
  for await (const bytes of readLinesThatFit(stream, name)) {
    number++;
    if (number === 1 && bytes?.includes(0)) {
      const message = `${name}: its first line holds a zero byte, so it is no text; expected a JSON object a line`;
      throw new AprError('BAD_FORMAT', message, { path: name });
    }
    if (bytes === undefined || bytes.some((byte) => byte !== 0x20 && byte !== 0x09)) yield { number, bytes };
  }
}

async function answerLine(
  engine: Engine,
  { number, bytes }: Line,
  name: string,
  complete: BatchOptions['complete'],
): Promise<Result> {
  let id: { task_id?: TaskId } = {};
  try {
    if (bytes === undefined) throw longLine(name);
    const fields = parseObject(decodeLine(bytes, name, number));
    const taskId = taskIdOf(fields);
    if (taskId !== undefined) id = { task_id: taskId };
    let final: FinalEvent | undefined;
    for await (const event of engine.generate(complete(parseTask(fields)))) if (event.event === 'final') final = event;
    return { document: { ...id, line: number, ...documentOf(final as FinalEvent) }, final };
  } catch (error) {
    return { document: { ...id, line: number, ...errorBody(error) }, final: undefined };
  }
}

function documentOf(final: FinalEvent): object {
  return {
    text: final.text,
    stop_reason: final.stop_reason,
    prompt_length: final.prompt_tokens.length,
    tokens: final.tokens,
    tokens_generated: final.tokens_generated,
    ...(final.seed === undefined ? {} : { seed: final.seed }),
    tok_per_sec: final.tok_per_sec,
    inference_ms: final.inference_time_ms,
    used_gpu: !CPU_BACKENDS.has(final.backend.ran),
  };
}
