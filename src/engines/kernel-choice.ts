/** Which kernels an engine runs: the fastest that compute what the reference computes. */

import { missingExports } from '../backends/wasm/kernels.ts';
import { type KernelFault, selfCheck } from '../backends/wasm/self-check.ts';
import type { EngineOptions, EngineWarning } from '../engine.ts';
import { AprError } from '../errors.ts';
import type { ModelFile } from '../formats/model-file.ts';
import type { Weight } from '../graph/command.ts';
import { spannedAsync } from '../graph/observer.ts';
import type { KernelBuild, Platform } from '../platform/platform.ts';

export type KernelSet = 'simd' | 'relaxed';

export interface KernelQuestion {
  /** To be tried in this order. */
  readonly kernels: readonly KernelSet[];
  readonly shared: boolean;
  readonly file: ModelFile;
  readonly weights: readonly Weight[];
  readonly options: EngineOptions;
  readonly warn: (warning: EngineWarning) => void;
}

export interface ChosenKernels {
  readonly kernel: KernelSet;
  readonly module: WebAssembly.Module;
}

const DOES: Readonly<Record<KernelFault['kernel'], string>> = {
  embed: 'read',
  decode: 'multiply',
  prefill: 'multiply (several tokens at once)',
  experts: 'multiply (chosen experts)',
};

/**
 * The first kernels that pass the check; undefined when none does and the reference backend may take their place. One that
 * fails is told in a warning.
 * @throws AprError LOAD_FAILED when kernels and this code are not of one build, BACKEND_UNAVAILABLE when the kernels or the backend were asked for by name and fail; IO, BAD_FORMAT
 */
export async function chooseKernels(
  platform: Pick<Platform, 'loadKernels'>,
  { kernels, shared, file, weights, options, warn }: KernelQuestion,
): Promise<ChosenKernels | undefined> {
  const { observer } = options;
  for (const [i, kernel] of kernels.entries()) {
    const build: KernelBuild = `${kernel}-${shared ? 'shared' : 'plain'}`;
    const module = await spannedAsync(observer, 'kernels', () => platform.loadKernels(build));
    const missing = missingExports(module);
    if (missing.length > 0) {
      const message =
        `the kernel module ${build}.wasm is of another build than this code: it lacks ${missing.join(', ')}; ` +
        'build anew (npm run build), or install apr again';
      throw new AprError('LOAD_FAILED', message, { build, missing });
    }
    if (options.selfCheck === false) return { kernel, module };
    const check = { file, weights, module, shared };
    const fault = await spannedAsync(observer, 'self_check', () => selfCheck(check));
    if (fault === undefined) return { kernel, module };
    const { type, tensor, found, expected } = fault;
    const what = `the ${kernel} kernels ${DOES[fault.kernel]} ${type} wrongly on this machine (${tensor}: ${found}, expected ${expected})`;
    const next = kernels[i + 1] ?? (mayFallBack(options) ? 'reference' : undefined);
    if (next === undefined) {
      const advice = 'use --backend reference, which is slow, or --no-selfcheck to run them all the same';
      const details = { kernel, type, tensor, found: String(found), expected: String(expected) };
      throw new AprError('BACKEND_UNAVAILABLE', `${file.source.name}: ${what}; ${advice}`, details);
    }
    const instead = next === 'reference' ? 'the reference backend, which is slow, takes' : `the ${next} kernels take`;
    warn({ rule: 'KERNEL-SELFCHECK', message: `${what}; ${instead} their place` });
  }
  return undefined;
}

function mayFallBack({ backend = 'auto', kernel }: EngineOptions): boolean {
  return backend === 'auto' && kernel === undefined;
}
