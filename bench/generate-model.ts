/**
 * Writes a synthetic GGUF file of a real model's shape: random weights, vocabulary of real size.
 *
 *   node dist/bench/generate-model.js NAME OUT.gguf [--seed N]
 */

import { parseArgs } from 'node:util';
import { generateModel, PRESETS } from './model/presets.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string', default: '1' } },
});
const [name, path] = positionals;
const seed = Number(values.seed);
if (name === undefined || path === undefined || positionals.length > 2 || !Number.isInteger(seed)) {
  const names = Object.keys(PRESETS).join(', ');
  process.stderr.write(`usage: generate-model NAME OUT.gguf [--seed N]\nNAME is one of ${names}\n`);
  process.exitCode = 2;
} else {
  const bytes = generateModel(name, path, seed);
  process.stdout.write(`${path}: ${(bytes / 1e6).toFixed(1)} MB\n`);
}
