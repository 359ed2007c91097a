import { readFile } from 'node:fs/promises';

export const BUILDS = ['simd-shared', 'simd-plain', 'relaxed-shared', 'relaxed-plain'] as const;
export type Build = (typeof BUILDS)[number];

type Kernel = (...args: number[]) => number;

/** The kernels of one build over a memory of their own. */
export interface KernelBench {
  readonly memory: WebAssembly.Memory;
  /** A function by its export name. */
  call(name: string, ...args: number[]): number;
  constant(name: string): number;
  /** Pointer to a new area, 64-byte aligned, filled with bytes that are no harmless zeros. */
  reserve(bytes: number): number;
  /** Pointer to a copy of the values. */
  floats(values: ArrayLike<number>): number;
  ints(values: ArrayLike<number>): number;
  /** View of f32 in memory. */
  read(pointer: number, count: number): Float32Array;
}

export async function compileBuild(build: Build): Promise<WebAssembly.Module | undefined> {
  const bytes = await readFile(new URL(`../../assembly/${build}.wasm`, import.meta.url));
  return WebAssembly.validate(bytes) ? WebAssembly.compile(bytes) : undefined;
}

/** Undefined when this runtime does not take the build, as Node 20 does not take relaxed ones. */
export async function createBench(build: Build = 'simd-shared', pages = 256): Promise<KernelBench | undefined> {
  const module = await compileBuild(build);
  if (module === undefined) return undefined;
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: build.endsWith('shared') });
  const { exports } = await WebAssembly.instantiate(module, { env: { memory } });
  let next = 64;
  const reserve = (bytes: number): number => {
    const pointer = next;
    next = Math.ceil((next + bytes) / 64) * 64;
    if (next > memory.buffer.byteLength) throw new Error(`the bench has no room for ${bytes} bytes`);
    // 0xffc1: NaN as f32 and as f16.
    new Uint16Array(memory.buffer, pointer, (next - pointer) / 2).fill(0xffc1);
    return pointer;
  };
  const exported = (name: string): unknown => {
    const value = exports[name];
    if (value === undefined) throw new Error(`the ${build} build does not export ${name}`);
    return value;
  };
  return {
    memory,
    call: (name, ...args) => (exported(name) as Kernel)(...args),
    constant: (name) => (exported(name) as WebAssembly.Global).value as number,
    reserve,
    floats(values) {
      const pointer = reserve(values.length * 4);
      new Float32Array(memory.buffer, pointer, values.length).set(values);
      return pointer;
    },
    ints(values) {
      const pointer = reserve(values.length * 4);
      new Int32Array(memory.buffer, pointer, values.length).set(values);
      return pointer;
    },
    read: (pointer, count) => new Float32Array(memory.buffer, pointer, count),
  };
}

/** The bench of the build that every runtime takes. */
export async function simdBench(pages?: number): Promise<KernelBench> {
  const bench = await createBench('simd-shared', pages);
  if (bench === undefined) throw new Error('this runtime does not accept WebAssembly SIMD with shared memory');
  return bench;
}

/** Uniform numbers in −scale … scale from a seed (xorshift32). */
export function randomFloats(count: number, seed: number, scale = 1): Float32Array {
  const out = new Float32Array(count);
  let state = (seed * 2654435761 + 1) >>> 0;
  for (let i = 0; i < count; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    out[i] = ((state >>> 0) / 2 ** 31 - 1) * scale;
  }
  return out;
}

export function floatBits(value: number): number {
  return new Int32Array(new Float32Array([value]).buffer)[0]!;
}

/** The words of floats, to compare them bit for bit. */
export function bitsOf(values: Float32Array): Int32Array {
  return new Int32Array(values.slice().buffer);
}

/** Largest |a − b|. */
export function largestDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) throw new Error(`${a.length} values against ${b.length}`);
  let largest = 0;
  for (let i = 0; i < a.length; i++) {
    const difference = Math.abs(a[i]! - b[i]!);
    // NaN must not pass for a small difference.
    if (!(difference <= largest)) largest = difference;
    if (Number.isNaN(difference)) return Number.POSITIVE_INFINITY;
  }
  return largest;
}
