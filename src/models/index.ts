/** The architectures that can be run: one line each. */

import { AprError } from '../errors.ts';
import type { Architecture } from './architecture.ts';
import { gemma2 } from './gemma2.ts';
import { gemma3 } from './gemma3.ts';
import { granite } from './granite.ts';
import { normaliseArchitecture } from './hyperparameters.ts';
import { llama } from './llama.ts';
import { olmo2 } from './olmo2.ts';
import { phi3 } from './phi3.ts';
import { qwen2 } from './qwen2.ts';
import { qwen2moe } from './qwen2moe.ts';
import { qwen3 } from './qwen3.ts';
import { qwen3moe } from './qwen3moe.ts';
import { smollm3 } from './smollm3.ts';

const ARCHITECTURES: readonly Architecture[] = [
  gemma2,
  gemma3,
  granite,
  llama,
  olmo2,
  phi3,
  qwen2,
  qwen2moe,
  qwen3,
  qwen3moe,
  smollm3,
];

/** @throws AprError UNSUPPORTED naming the architecture and those that are supported */
export function architectureOf(name: string, sourceName: string): Architecture {
  const normalised = normaliseArchitecture(name);
  const architecture = ARCHITECTURES.find((candidate) => candidate.name === normalised);
  if (architecture !== undefined) return architecture;
  const supported = ARCHITECTURES.map((candidate) => candidate.name).join(', ');
  throw new AprError(
    'UNSUPPORTED',
    `${sourceName}: architecture "${name}" is not supported; supported are ${supported}`,
    { found: name, supported },
  );
}
