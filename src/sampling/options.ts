import type { SamplingOptions } from '../engine.ts';
import { AprError } from '../errors.ts';
import { randomSeed } from './random.ts';

/** Every option with its value. */
export type ResolvedSampling = Readonly<Required<SamplingOptions>>;

interface Range {
  readonly fallback: number;
  readonly valid: (value: number) => boolean;
  readonly expected: string;
}

const wholeFrom = (least: number) => (value: number) => Number.isSafeInteger(value) && value >= least;
const share = (value: number): boolean => value >= 0 && value <= 1;

const RANGES: Readonly<Record<Exclude<keyof SamplingOptions, 'seed'>, Range>> = {
  temperature: { fallback: 0, valid: (value) => value >= 0 && Number.isFinite(value), expected: 'a number from 0 up' },
  topK: { fallback: 0, valid: /* @__PURE__ */ wholeFrom(0), expected: 'a whole number from 0 (off) up' },
  topP: { fallback: 1, valid: share, expected: 'a number from 0 to 1 (off)' },
  minP: { fallback: 0, valid: share, expected: 'a number from 0 (off) to 1' },
  repeatPenalty: {
    fallback: 1,
    // Beyond these, logits would leave the range of f32.
    valid: (value) => value >= 0.01 && value <= 100,
    expected: 'a number from 0.01 to 100; 1 is off',
  },
  repeatLastN: {
    fallback: 64,
    valid: /* @__PURE__ */ wholeFrom(-1),
    expected: 'a whole number from 0 (none) up, or -1 for all tokens',
  },
};

/**
 * The options with defaults filled in; without a seed, a random one.
 * @throws AprError USAGE naming the option, what was found and what was expected
 */
export function validateSampling(options: SamplingOptions): ResolvedSampling {
  const resolved: Record<string, number> = {};
  for (const [name, { fallback, valid, expected }] of Object.entries(RANGES)) {
    const value: unknown = options[name as keyof SamplingOptions] ?? fallback;
    resolved[name] = checked(name, value, valid, expected);
  }
  const { seed = randomSeed() } = options;
  resolved.seed = checked('seed', seed, wholeFrom(0), 'a whole number from 0 to 2^53 - 1');
  return resolved as unknown as ResolvedSampling;
}

function checked(name: string, value: unknown, valid: (value: number) => boolean, expected: string): number {
  if (typeof value === 'number' && valid(value)) return value;
  const found = typeof value === 'number' ? String(value) : JSON.stringify(value);
  throw new AprError('USAGE', `${name} is ${found}, expected ${expected}`, {
    option: name,
    found: String(found),
    expected,
  });
}
