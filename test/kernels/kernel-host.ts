/** Kernel modules for tests and micro-benchmarks: one instance on one memory, with a bump allocator. */

import { readFile } from 'node:fs/promises';
import type { KernelExports } from '../../src/backends/wasm/kernels.ts';

export type Variant = 'simd-shared' | 'simd-plain' | 'relaxed-shared' | 'relaxed-plain';
export const VARIANTS: readonly Variant[] = ['simd-shared', 'simd-plain', 'relaxed-shared', 'relaxed-plain'];

type AnyKernel = (...args: number[]) => number;

export interface KernelHost {
  readonly variant: Variant;
  readonly memory: WebAssembly.Memory;
  /** The exports that programs use, typed, and all others by name. */
  readonly exports: KernelExports & { readonly dequantize_native: AnyKernel };
  readonly kernel: Readonly<Record<string, AnyKernel>>;
  /** Scratch of one worker. */
  readonly scratch: number;
  /** 64-byte aligned, zero-filled bytes, followed by a gap of 64 bytes of 0xa5: see {@link KernelHost.intact}. */
  alloc(bytes: number): number;
  /** Whether nothing was written behind any allocation. */
  intact(): boolean;
  /** Frees everything after this point. */
  mark(): () => void;
  floats(pointer: number, length: number): Float32Array;
  ints(pointer: number, length: number): Int32Array;
  bytes(pointer: number, length: number): Uint8Array;
}

const GUARD = 64;

async function moduleBytes(variant: Variant): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await readFile(new URL(`../../assembly/${variant}.wasm`, import.meta.url)));
}

/** Whether this runtime accepts a build by default. Relaxed SIMD is one that older ones do not. */
export async function supports(variant: Variant): Promise<boolean> {
  return WebAssembly.validate(await moduleBytes(variant));
}

/**
 * Instantiates a build, which must lie in assembly/ beside the compiled tests, on a memory of `pages` × 64 KiB.
 * Allocations start at `base`.
 */
export async function loadKernels(variant: Variant, pages: number, base = 1024): Promise<KernelHost> {
  const memory = new WebAssembly.Memory({
    initial: pages,
    maximum: variant.endsWith('shared') ? pages : 65536,
    shared: variant.endsWith('shared'),
  });
  const { instance } = await WebAssembly.instantiate(await moduleBytes(variant), { env: { memory } });
  const exports = instance.exports as unknown as KernelHost['exports'];
  let top = base;
  let guards: number[] = [];
  const alloc = (bytes: number): number => {
    const pointer = top;
    const end = pointer + bytes;
    top = Math.ceil((end + GUARD) / 64) * 64;
    if (top > memory.buffer.byteLength) throw new Error(`test memory of ${pages} pages is too small`);
    new Uint8Array(memory.buffer, pointer, bytes).fill(0);
    new Uint8Array(memory.buffer, end, GUARD).fill(0xa5);
    guards.push(end);
    return pointer;
  };
  return {
    variant,
    memory,
    exports,
    kernel: instance.exports as unknown as KernelHost['kernel'],
    scratch: alloc(exports.SCRATCH_BYTES.value as number),
    alloc,
    intact: () => guards.every((end) => new Uint8Array(memory.buffer, end, GUARD).every((byte) => byte === 0xa5)),
    mark: () => {
      const before = top;
      const kept = guards;
      guards = [...kept];
      return () => {
        top = before;
        guards = kept;
      };
    },
    floats: (pointer, length) => new Float32Array(memory.buffer, pointer, length),
    ints: (pointer, length) => new Int32Array(memory.buffer, pointer, length),
    bytes: (pointer, length) => new Uint8Array(memory.buffer, pointer, length),
  };
}
