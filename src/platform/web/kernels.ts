/** Where a page gets the kernel modules from. */

import { AprError } from '../../errors.ts';
import type { KernelBuild } from '../platform.ts';

/** A kernel module: its address, its bytes, or compiled already (where the host forbids compiling at run time). */
export type KernelModule = string | URL | Uint8Array<ArrayBuffer> | WebAssembly.Module;

/** Some of the four builds; the others come from beside this package's own files. */
export type KernelModules = Readonly<Partial<Record<KernelBuild, KernelModule>>>;

/** Written out one by one, since that is what bundlers find. */
const BUILT_IN: Readonly<Record<KernelBuild, () => URL>> = {
  'simd-shared': () => new URL('../../../assembly/simd-shared.wasm', import.meta.url),
  'simd-plain': () => new URL('../../../assembly/simd-plain.wasm', import.meta.url),
  'relaxed-shared': () => new URL('../../../assembly/relaxed-shared.wasm', import.meta.url),
  'relaxed-plain': () => new URL('../../../assembly/relaxed-plain.wasm', import.meta.url),
};

/** @throws AprError LOAD_FAILED naming the address */
export async function loadKernels(build: KernelBuild, given: KernelModules = {}): Promise<WebAssembly.Module> {
  const source = given[build] ?? BUILT_IN[build]();
  if (source instanceof WebAssembly.Module) return source;
  const place = source instanceof Uint8Array ? 'the bytes that were given' : String(source);
  try {
    if (source instanceof Uint8Array) return await WebAssembly.compile(source);
    const response = await fetch(source);
    if (!response.ok) throw new Error(`the server answered ${response.status} ${response.statusText}`.trim());
    // Compiling while it comes wants the right media type; servers that do not know .wasm are served too.
    if (response.headers.get('content-type') === 'application/wasm')
      return await WebAssembly.compileStreaming(response);
    return await WebAssembly.compile(await response.arrayBuffer());
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const message = `the kernel module ${build}.wasm could not be loaded from ${place}: ${reason}; serve it there, or name another place with the option "kernels"`;
    throw new AprError('LOAD_FAILED', message, { build }, { cause });
  }
}
