/**
 * Micro-benchmark of the matrix kernels on one thread: node bench/kernels.js [--json] [VARIANT|best] [TYPE …]
 *
 * decode   one token times a matrix 2,048 wide and 64 MB large (native bytes), in GB/s of native bytes; `cached` is the
 *          same on 512 KB, in G multiply-accumulates/s
 * prefill  128 tokens times 512 rows, in G multiply-accumulates/s
 * repack   native rows to groups, in GB/s of native bytes
 *
 * Limits of the machine first: a streaming read of 64 MB, and dot products of the instructions that the build has, with
 * operands in registers and in the first cache.
 */

import { performance } from 'node:perf_hooks';
import asc from 'assemblyscript/asc';
import { floatToHalf } from '../src/backends/half.ts';
import { type GgmlTypeName, ggmlType, rowBytes } from '../src/formats/ggml-types.ts';
import { type KernelHost, loadKernels, supports, type Variant } from '../test/kernels/kernel-host.ts';
import { activations, nativeRows, placeActivations, placeGrid, TYPES } from '../test/kernels/quants-data.ts';

const WIDTH = 2048;
const LARGE = 64 << 20;
const SMALL = 512 << 10;
const TOKENS = 128;

/** Seconds of the fastest of several runs after `warm` seconds of warming up (V8 tiers up meanwhile). */
function fastest(run: () => void, warm = 0.3, measured = 0.6): number {
  const until = performance.now() + warm * 1000;
  do run();
  while (performance.now() < until);
  let best = Infinity;
  const end = performance.now() + measured * 1000;
  do {
    const start = performance.now();
    run();
    best = Math.min(best, performance.now() - start);
  } while (performance.now() < end);
  return best / 1000;
}

/**
 * Seconds of one pass over a large matrix: the sum of the fastest time of each of its pieces. A pass takes longer than
 * the operating system lets a thread run on a busy machine, a piece does not.
 */
function passes(groups: number, run: (first: number, end: number) => void): number {
  const piece = Math.ceil(groups / 64);
  const best: number[] = [];
  for (let pass = 0; pass < 40; pass++) {
    for (let i = 0; i * piece < groups; i++) {
      const start = performance.now();
      run(i * piece, Math.min(groups, (i + 1) * piece));
      best[i] = Math.min(best[i] ?? Infinity, performance.now() - start);
    }
  }
  return best.reduce((a, b) => a + b, 0) / 1000;
}

const LIMITS = `
export function fill(bytes: usize): void { memory.fill(0, 1, bytes); }
export function read(start: usize, bytes: usize): i32 {
  let a = i64x2.splat(0), b = a, c = a, d = a;
  for (let at = start; at < start + bytes; at += 64) {
    a = i64x2.add(a, v128.load(at)); b = i64x2.add(b, v128.load(at, 16));
    c = i64x2.add(c, v128.load(at, 32)); d = i64x2.add(d, v128.load(at, 48));
  }
  return v128.any_true(i64x2.add(i64x2.add(a, b), i64x2.add(c, d))) ? 1 : 0;
}
export function dots(w: usize, count: i32): i32 {
  const x = v128.load(w), y = v128.load(w, 16);
  let a = i32x4.splat(0), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  for (let i = 0; i < count; i += 8) {
    a = i32x4.add(a, i32x4.dot_i16x8_s(a, x)); b = i32x4.add(b, i32x4.dot_i16x8_s(b, y));
    c = i32x4.add(c, i32x4.dot_i16x8_s(c, x)); d = i32x4.add(d, i32x4.dot_i16x8_s(d, y));
    e = i32x4.add(e, i32x4.dot_i16x8_s(e, x)); f = i32x4.add(f, i32x4.dot_i16x8_s(f, y));
    g = i32x4.add(g, i32x4.dot_i16x8_s(g, x)); h = i32x4.add(h, i32x4.dot_i16x8_s(h, y));
  }
  const all = i32x4.add(i32x4.add(i32x4.add(a, b), i32x4.add(c, d)), i32x4.add(i32x4.add(e, f), i32x4.add(g, h)));
  return v128.any_true(all) ? 1 : 0;
}
export function tiles(w: usize, x: usize, count: i32): i32 {
  let a = i32x4.splat(0), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  for (let i: usize = 0; i < <usize>count; i++) {
    const p = v128.load(w + (i << 5)), q = v128.load(w + (i << 5), 16);
    let s = v128.load32_splat(x + (i << 2));
    a = i32x4.add(a, i32x4.dot_i16x8_s(p, s)); b = i32x4.add(b, i32x4.dot_i16x8_s(q, s));
    s = v128.load32_splat(x + (i << 2), 1024);
    c = i32x4.add(c, i32x4.dot_i16x8_s(p, s)); d = i32x4.add(d, i32x4.dot_i16x8_s(q, s));
    s = v128.load32_splat(x + (i << 2), 2048);
    e = i32x4.add(e, i32x4.dot_i16x8_s(p, s)); f = i32x4.add(f, i32x4.dot_i16x8_s(q, s));
    s = v128.load32_splat(x + (i << 2), 3072);
    g = i32x4.add(g, i32x4.dot_i16x8_s(p, s)); h = i32x4.add(h, i32x4.dot_i16x8_s(q, s));
  }
  const all = i32x4.add(i32x4.add(i32x4.add(a, b), i32x4.add(c, d)), i32x4.add(i32x4.add(e, f), i32x4.add(g, h)));
  return v128.any_true(all) ? 1 : 0;
}`;

/** The same as `tiles` in bytes, as relaxed builds can: 16 products an instruction, their pairs summed to i32 by another. */
const RELAXED_LIMITS = LIMITS.slice(LIMITS.indexOf('export function tiles'))
  .replace('tiles', 'byte_tiles')
  .replace('let a =', 'const ones = v128.load(w, 4096); let a =')
  .replace(
    /i32x4\.add\((\w), i32x4\.dot_i16x8_s\((\w), s\)\)/g,
    'i32x4.add($1, i32x4.dot_i16x8_s(i16x8.relaxed_dot_i8x16_i7x16_s($2, s), ones))',
  );

interface Limits {
  /** GB/s of reading memory. */
  readonly read: number;
  /** G multiply-accumulates/s of a tile of 4 × 8 sums with operands in the first cache. */
  readonly dots: number;
}

async function limits(relaxed: boolean): Promise<Limits> {
  const options = {
    optimizeLevel: 3,
    runtime: 'stub',
    enable: ['simd', ...(relaxed ? ['relaxed-simd'] : [])],
    memoryBase: 0,
    initialMemory: 1100,
  };
  const { binary, stderr } = await asc.compileString(relaxed ? LIMITS + RELAXED_LIMITS : LIMITS, options);
  if (!binary) throw new Error(`cannot compile the limits: ${stderr.toString()}`);
  const { instance } = await WebAssembly.instantiate(new Uint8Array(binary));
  const { fill, read, dots, tiles, byte_tiles } = instance.exports as Record<string, (...args: number[]) => number>;
  // Pages that were never written are all the same page.
  fill!(LARGE);
  const seconds = passes(64, (first, end) => read!((first * LARGE) / 64, ((end - first) * LARGE) / 64));
  const count = 1 << 20;
  const repeated = (tile: (...args: number[]) => number) => (): void => {
    for (let i = 0; i < 1000; i++) tile(0, 16384, 256);
  };
  const found = {
    read: LARGE / seconds / 1e9,
    dots: (1000 * 256 * (byte_tiles === undefined ? 64 : 128)) / fastest(repeated(byte_tiles ?? tiles!)) / 1e9,
  };
  if (!json) {
    console.log(`streaming read        ${found.read.toFixed(1)} GB/s`);
    console.log(`i16 dots, registers   ${((count * 8) / fastest(() => dots!(0, count)) / 1e9).toFixed(1)} G MAC/s`);
    console.log(`i16 dots, L1, 4 × 8   ${((1000 * 256 * 64) / fastest(repeated(tiles!)) / 1e9).toFixed(1)} G MAC/s`);
    if (byte_tiles !== undefined) console.log(`i8 dots, L1, 4 × 8    ${found.dots.toFixed(1)} G MAC/s`);
  }
  return found;
}

/** Halves as models have them: normally distributed, hardly any of them subnormal. */
function typicalHalves(bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const values = activations(bytes.length / 2, 1, 5);
  for (const [i, value] of values.entries()) view.setUint16(2 * i, floatToHalf(value * 0.02), true);
}

/** @returns G multiply-accumulates/s of prefill */
function measure(host: KernelHost, name: GgmlTypeName): number {
  const { exports } = host;
  const type = ggmlType(name);
  const native = rowBytes(type, WIDTH);
  const rows = Math.floor(LARGE / native / 16) * 16;
  const release = host.mark();
  const group = exports.group_bytes(type.id, WIDTH);
  const source = host.alloc(native * 256);
  host.bytes(source, native * 256).set(nativeRows(name, WIDTH, 256, 1));
  if (name === 'F16') typicalHalves(host.bytes(source, native * 256));
  const grid = placeGrid(host, type);
  const weights = host.alloc((group * rows) / 16);
  const repack = (): void => {
    for (let row = 0; row < 256; row += 16) {
      exports.repack(type.id, source + row * native, weights + (row / 16) * group, WIDTH, 16, grid);
    }
  };
  const repackSeconds = fastest(repack, 0.1, 0.2);
  for (let g = 16; g < rows / 16; g++)
    exports.repack(type.id, source + (g % 16) * 16 * native, weights + g * group, WIDTH, 16, grid);
  const x = placeActivations(host, type, activations(WIDTH, TOKENS, 3), WIDTH, TOKENS);
  const one = placeActivations(host, type, activations(WIDTH, 1, 3), WIDTH, 1);
  const list = host.alloc(TOKENS * 8);
  host.ints(list, TOKENS * 2).set(Array.from({ length: TOKENS * 2 }, (_, i) => i >> 1));
  const dst = host.alloc(Math.max(rows, TOKENS * 512) * 4);
  const product = (matrixRows: number, input: number, count: number): void =>
    exports.mul_mat(
      0,
      matrixRows / 16,
      host.scratch,
      type.id,
      dst,
      matrixRows,
      weights,
      WIDTH,
      matrixRows,
      input,
      count,
      list,
      count,
    );
  const small = Math.floor(SMALL / native / 16) * 16;
  const cached = fastest(() => product(small, one, 1));
  const decode = passes(rows / 16, (first, end) =>
    exports.mul_mat(first, end, host.scratch, type.id, dst, rows, weights, WIDTH, rows, one, 1, list, 1),
  );
  const prefill = fastest(() => product(512, x, TOKENS));
  const prefillRate = (512 * WIDTH * TOKENS) / prefill / 1e9;
  if (json) {
    release();
    return prefillRate;
  }
  const few = [2, 4, 6, 8, 16].map((count) => {
    const input = placeActivations(host, type, activations(WIDTH, count, 3), WIDTH, count);
    return `${count}: ${((small * WIDTH * count) / fastest(() => product(small, input, count), 0.1, 0.2) / 1e9).toFixed(1)}`;
  });
  console.log(
    `${name.padEnd(7)} decode ${((rows * native) / decode / 1e9).toFixed(2).padStart(6)} GB/s   cached ` +
      `${((small * WIDTH) / cached / 1e9).toFixed(1).padStart(5)} G MAC/s   prefill ` +
      `${prefillRate.toFixed(1).padStart(5)} G MAC/s   repack ` +
      `${((256 * native) / repackSeconds / 1e9).toFixed(2)} GB/s   few tokens, G MAC/s: ${few.join(', ')}`,
  );
  release();
  return prefillRate;
}

/** What `--json` prints. */
export interface KernelRates {
  readonly variant: Variant;
  readonly limits: Limits;
  /** G multiply-accumulates/s of prefill by type. */
  readonly prefill: Readonly<Record<string, number>>;
}

const words = process.argv.slice(2);
const json = words.includes('--json');
const [chosen, ...types] = words.filter((word) => word !== '--json');
const best = (await supports('relaxed-plain')) ? 'relaxed-plain' : 'simd-plain';
const variant = (chosen === undefined || chosen === 'best' ? best : chosen) as Variant;
if (!json) console.log(`${variant}, Node ${process.version}, ${WIDTH} columns`);
const machine = await limits(variant.startsWith('relaxed'));
const host = await loadKernels(variant, 3200);
const rates: Record<string, number> = {};
for (const name of TYPES) if (types.length === 0 || types.includes(name)) rates[name] = measure(host, name);
if (json) console.log(JSON.stringify({ variant, limits: machine, prefill: rates } satisfies KernelRates));
