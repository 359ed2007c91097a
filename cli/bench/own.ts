/** This engine as it is measured. */

import { AprError } from '../../src/errors.ts';
import type { Engine, FinalEvent } from '../../src/index.ts';
import type { Subject } from './subject.ts';

export function ownSubject(engine: Engine): Subject {
  const generate = async (prompt: readonly number[], maxTokens: number): Promise<FinalEvent> => {
    let final: FinalEvent | undefined;
    for await (const event of engine.generate({ prompt, maxTokens, ignoreEos: true })) {
      if (event.event === 'final') final = event;
    }
    if (final === undefined) throw new AprError('INFERENCE', 'a generation ended without its figures');
    if (final.cached_tokens !== 0) {
      const message = `${final.cached_tokens} tokens of a prompt came from the cache, expected none: nothing was measured`;
      throw new AprError('INFERENCE', message);
    }
    return final;
  };
  return {
    prefill: async (prompt) => (await generate(prompt, 0)).timings.prefill_tok_per_sec,
    // The first token comes out of the prompt's pass.
    decode: async (first, count) => (await generate([first], count + 1)).timings.decode_tok_per_sec,
    dispose: () => engine.dispose(),
  };
}
