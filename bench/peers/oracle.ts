/** Values of llama.cpp on a file: log-probabilities along a prompt, and a greedy continuation. */

import { type Llama, type LlamaSequence, loadLlama, type TokenInputOptions } from './llama-types.ts';

/** Token id and natural logarithm of its probability, rounded to four digits. */
export type Scored = readonly [id: number, logprob: number];

export interface GoldenCase {
  readonly prompt: string;
  /** Ids of the prompt, special tokens in it recognised, nothing added. */
  readonly tokens: readonly number[];
  /** The best three after each prompt token. */
  readonly prompt_logprobs: readonly (readonly Scored[])[];
  /** Greedy tokens up to an end token, with the best five at each. */
  readonly generated: readonly { readonly id: number; readonly top: readonly Scored[] }[];
  readonly text: string;
}

export interface Golden {
  readonly vocab: number;
  readonly cases: readonly GoldenCase[];
}

const PROMPT_TOP = 3;
const GENERATED_TOP = 5;
const GENERATED_MOST = 24;

/**
 * The values of every prompt on one file: CPU, one thread, f16 KV cache, attention computed by its separate operations
 * (the fused one sums values in f16, which moves log-probabilities by more than our tolerances).
 */
export async function goldenValues(path: string, prompts: readonly string[]): Promise<Golden> {
  const llama: Llama = await loadLlama(1);
  try {
    const model = await llama.loadModel({ modelPath: path, gpuLayers: 0 });
    const context = await model.createContext({ contextSize: 512, batchSize: 512, threads: 1, flashAttention: false });
    const sequence = context.getSequence();
    const cases: GoldenCase[] = [];
    let vocab = 0;
    for (const prompt of prompts) {
      await sequence.clearHistory();
      const tokens = [...model.tokenize(prompt, true)];
      const along = await scores(sequence, tokens);
      vocab = along[0]!.size;
      const generated: GoldenCase['generated'][number][] = [];
      const ids: number[] = [];
      let next = along.at(-1)!;
      while (generated.length < GENERATED_MOST) {
        const top = best(next, GENERATED_TOP);
        const id = top[0]![0];
        generated.push({ id, top });
        if (model.isEogToken(id)) break;
        ids.push(id);
        next = (await scores(sequence, [id]))[0]!;
      }
      const prompt_logprobs = along.map((probabilities) => best(probabilities, PROMPT_TOP));
      cases.push({ prompt, tokens, prompt_logprobs, generated, text: model.detokenize(ids) });
    }
    await context.dispose();
    await model.dispose();
    return { vocab, cases };
  } finally {
    await llama.dispose();
  }
}

/** Probabilities of every token after each of these, best first. Greedy sampling leaves the logits as they are. */
async function scores(sequence: LlamaSequence, tokens: readonly number[]): Promise<ReadonlyMap<number, number>[]> {
  const options: TokenInputOptions = { generateNext: { probabilities: true, options: { temperature: 0 } } };
  const outputs = await sequence.controlledEvaluate(tokens.map((token) => [token, options]));
  return tokens.map((_, i) => {
    const probabilities = outputs[i]?.next.probabilities;
    if (probabilities === undefined) throw new Error(`llama.cpp gave no probabilities after token ${i} of the prompt`);
    return probabilities;
  });
}

function best(probabilities: ReadonlyMap<number, number>, count: number): Scored[] {
  return [...probabilities]
    .sort((a, b) => b[1] - a[1])
    .slice(0, count)
    .map(([id, probability]) => [id, Math.round(Math.log(probability) * 1e4) / 1e4]);
}
