/**
 * Kernels held against the reference before their answers count: some rows of the file's own weights, of each type that is
 * in use, times made-up activations. It costs milliseconds, and memory that does not grow with the model.
 */

import { rowBytes } from '../../formats/ggml-types.ts';
import type { ModelFile, TensorInfo } from '../../formats/model-file.ts';
import type { Weight } from '../../graph/command.ts';
import { align } from '../../scheduling/arena.ts';
import { gridEntries, MAX_GRID_BYTES } from '../grids.ts';
import { dequantize } from '../reference/dequantize.ts';
import { roundTrip } from '../reference/round-trip.ts';
import { ITEM_VALUES, type KernelExports } from './kernels.ts';
import { groupBytes } from './layout.ts';
import { instantiate } from './tasks.ts';

/** A result that is not the reference's. */
export interface KernelFault {
  /** Tensor type, and the tensor whose rows showed it. */
  readonly type: string;
  readonly tensor: string;
  /** `embed` reads rows, `decode` multiplies one token, `prefill` tiles of four, `experts` what a router chose. */
  readonly kernel: 'embed' | 'decode' | 'prefill' | 'experts';
  readonly found: number;
  readonly expected: number;
}

export interface SelfCheckOptions {
  readonly file: ModelFile;
  readonly weights: readonly Weight[];
  readonly module: WebAssembly.Module;
  /** Kind of memory that the module imports. */
  readonly shared: boolean;
}

/** Values of a row that are looked at, a multiple of every block. */
const PROBE_WIDTH = 512;
/** Bytes of one tensor that are read, one row at least. */
const PROBE_BYTES = 1 << 18;
/** Memory for one probe: 16 rows of f32, native and placed once an expert, and scratch, with room to spare. */
const PAGES = 8;
/** A tile of prefill, and a token that is left over. */
const TOKENS = 5;
/** Experts of a probe; expert e has the probe's rows, turned by e. */
const EXPERTS = 3;
/** The experts that each token goes to. */
const CHOICES = [
  [2, 0],
  [1, 2],
  [0, 1],
  [1, 0],
  [1, 2],
] as const;
const SLOTS = 2;
/** Of the sum of |w · x|: fifty times the largest difference that was measured, over all types and both builds. */
const TOLERANCE = 1e-5;
/** Sums beyond are not judged: a damaged file may hold weights whose products overflow in one order and not in another. */
const MOST = 1e30;

/** Rows of one type, and what the reference makes of them. */
interface Probe {
  readonly tensor: TensorInfo;
  readonly width: number;
  readonly rows: number;
  /** Whether a mixture of experts has matrices of this type. */
  readonly experts: boolean;
  /** Native blocks, [rows × width]. */
  readonly bytes: Uint8Array;
  /** [rows × width]. */
  readonly values: Float32Array;
}

/** The first result of these kernels that is not the reference's; undefined when all agree. @throws AprError IO, BAD_FORMAT */
export async function selfCheck({ file, weights, module, shared }: SelfCheckOptions): Promise<KernelFault | undefined> {
  const memory = new WebAssembly.Memory({ initial: PAGES, maximum: PAGES, shared });
  const { exports } = (await instantiate(module, [memory]))[0]!;
  return checkKernels(exports, memory, file, weights);
}

/** The same of kernels that are there already; what lies in their memory, {@link PAGES} at least, is overwritten. */
export async function checkKernels(
  kernels: KernelExports,
  memory: WebAssembly.Memory,
  file: ModelFile,
  weights: readonly Weight[],
): Promise<KernelFault | undefined> {
  const probes = await Promise.all(typesInUse(file, weights).map((found) => readProbe(file, found)));
  const x = activations();
  for (const probe of probes) {
    const fault = probeFault(kernels, memory, probe, x);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

interface TypeInUse {
  readonly tensor: TensorInfo;
  experts: boolean;
}

/** One matrix of each type: the first. */
function typesInUse(file: ModelFile, weights: readonly Weight[]): TypeInUse[] {
  const found = new Map<string, TypeInUse>();
  for (const { name, vector, experts } of weights) {
    const tensor = file.tensors.get(name);
    if (vector || tensor === undefined) continue;
    const type = found.get(tensor.type.name) ?? { tensor, experts: false };
    type.experts ||= experts > 1;
    found.set(tensor.type.name, type);
  }
  return [...found.values()];
}

/** The beginnings of rows in the middle of the tensor, where a vocabulary has common tokens. */
async function readProbe(file: ModelFile, { tensor, experts }: TypeInUse): Promise<Probe> {
  const { type, shape, offset } = tensor;
  const [whole = 1, count = 1] = shape;
  const width = Math.min(whole, PROBE_WIDTH);
  const [wholeBytes, probeBytes] = [rowBytes(type, whole), rowBytes(type, width)];
  const rows = Math.max(1, Math.min(16, count, Math.floor(PROBE_BYTES / wholeBytes)));
  const first = Math.floor((count - rows) / 2);
  // Of the last row only what is used.
  const read = await file.source.read(offset + first * wholeBytes, (rows - 1) * wholeBytes + probeBytes);
  const bytes = new Uint8Array(rows * probeBytes);
  for (let row = 0; row < rows; row++) {
    bytes.set(read.subarray(row * wholeBytes, row * wholeBytes + probeBytes), row * probeBytes);
  }
  const values = new Float32Array(rows * width);
  dequantize(type, new DataView(bytes.buffer), 0, values.length, values);
  return { tensor, width, rows, experts, bytes, values };
}

/** [TOKENS × PROBE_WIDTH], of both signs and of different sizes within every block. */
function activations(): Float32Array {
  return Float32Array.from(
    { length: TOKENS * PROBE_WIDTH },
    (_, i) => Math.cos(1.7 * i) * (1 + (i % 7)) * (1 + Math.floor(i / PROBE_WIDTH)),
  );
}

/** Where things lie in the probe's memory. */
function placed(kernels: KernelExports, { tensor, width, experts, bytes }: Probe) {
  let at = 1024;
  const reserve = (size: number): number => {
    const pointer = at;
    at += align(size);
    return pointer;
  };
  const format = kernels.activation_format(tensor.type.id);
  return {
    format,
    scratch: reserve(kernels.SCRATCH_BYTES.value as number),
    grid: reserve(MAX_GRID_BYTES),
    native: reserve(bytes.length),
    group: reserve(groupBytes(kernels, tensor.type.id, width) * (experts ? EXPERTS : 1)),
    x: reserve(TOKENS * width * 4),
    quantized: reserve(format === 0 ? 0 : kernels.activation_bytes(format, width, TOKENS) >>> 0),
    list: reserve(TOKENS * 8),
    routing: reserve(TOKENS * SLOTS * 8),
    plan: reserve(kernels.plan_bytes(TOKENS, SLOTS, EXPERTS) >>> 0),
    results: reserve(TOKENS * SLOTS * 16 * 4),
    row: reserve(width * 4),
    end: at,
  };
}

function probeFault(
  kernels: KernelExports,
  memory: WebAssembly.Memory,
  probe: Probe,
  activations: Float32Array,
): KernelFault | undefined {
  const { tensor, width, rows, bytes, values } = probe;
  const { name: type, id } = tensor.type;
  const place = placed(kernels, probe);
  if (place.end > memory.buffer.byteLength) throw new Error(`a probe of ${type} needs ${place.end} bytes`);
  const floats = (pointer: number, length: number): Float32Array => new Float32Array(memory.buffer, pointer, length);
  const fault = (kernel: KernelFault['kernel'], found: number, expected: number): KernelFault => ({
    type,
    tensor: tensor.name,
    kernel,
    found,
    expected,
  });

  new Uint8Array(memory.buffer, place.native, bytes.length).set(bytes);
  const grid = gridEntries(id);
  if (grid !== undefined) new Uint16Array(memory.buffer, place.grid, grid.length).set(grid);
  kernels.repack(id, place.native, place.group, width, rows, place.grid);
  const groupSize = groupBytes(kernels, id, width);
  for (let expert = 1; probe.experts && expert < EXPERTS; expert++) {
    const native = new Uint8Array(memory.buffer, place.native, bytes.length);
    const turn = (expert % rows) * (bytes.length / rows);
    native.set(bytes.subarray(turn));
    native.set(bytes.subarray(0, turn), bytes.length - turn);
    kernels.repack(id, place.native, place.group + expert * groupSize, width, rows, place.grid);
  }
  for (let row = 0; row < rows; row++) {
    kernels.dequantize(id, place.row, place.group, row, width);
    const found = floats(place.row, width);
    for (let i = 0; i < width; i++) {
      const expected = values[row * width + i]!;
      if (Math.abs(expected) < MOST && !(Math.abs(found[i]! - expected) <= 1e-5 * Math.abs(expected) + 1e-30))
        return fault('embed', found[i]!, expected);
    }
  }

  const pairs = new Int32Array(memory.buffer, place.list, TOKENS * 2);
  for (let token = 0; token < TOKENS; token++) pairs.fill(token, token * 2, token * 2 + 2);
  for (const [kernel, tokens] of [
    ['decode', 1],
    ['prefill', TOKENS],
  ] as const) {
    const x = floats(place.x, tokens * width);
    for (let token = 0; token < tokens; token++) {
      x.set(activations.subarray(token * PROBE_WIDTH, token * PROBE_WIDTH + width), token * width);
    }
    const rounded = x.slice();
    if (place.format !== 0) {
      const items = tokens * Math.ceil(width / ITEM_VALUES);
      kernels.quantize(0, items, place.scratch, place.format, place.quantized, place.x, width, tokens);
    }
    const input = place.format === 0 ? place.x : place.quantized;
    floats(place.results, tokens * rows).fill(Number.NaN);
    const sizes = [place.group, width, rows, input, tokens, place.list, tokens] as const;
    kernels.mul_mat(0, 1, place.scratch, id, place.results, rows, ...sizes);
    const results = floats(place.results, tokens * rows);
    for (let token = 0; token < tokens; token++) {
      roundTrip(tensor.type.name, rounded, token * width, width);
      for (let row = 0; row < rows; row++) {
        const [expected, magnitude] = product(values, row * width, rounded, token * width, width);
        const found = results[token * rows + row]!;
        if (magnitude < MOST && !(Math.abs(found - expected) <= TOLERANCE * magnitude + 1e-30))
          return fault(kernel, found, expected);
      }
    }
    if (!probe.experts) continue;
    const routing = new Int32Array(memory.buffer, place.routing, tokens * SLOTS * 2);
    for (let token = 0; token < tokens; token++) routing.set(CHOICES[token]!, token * SLOTS * 2);
    kernels.route_plan(0, 1, place.scratch, place.plan, place.routing, tokens, SLOTS, EXPERTS);
    floats(place.results, tokens * SLOTS * rows).fill(Number.NaN);
    const most = Math.min(EXPERTS, tokens * SLOTS);
    const matrix = [place.group, groupSize, width, rows] as const;
    kernels.mul_mat_id(0, most, place.scratch, id, place.results, rows, ...matrix, input, tokens, place.plan, 0);
    const chosen = floats(place.results, tokens * SLOTS * rows);
    for (let pair = 0; pair < tokens * SLOTS; pair++) {
      const token = Math.floor(pair / SLOTS);
      const expert = CHOICES[token]![pair % SLOTS]!;
      for (let row = 0; row < rows; row++) {
        const from = ((row + expert) % rows) * width;
        const [expected, magnitude] = product(values, from, rounded, token * width, width);
        const found = chosen[pair * rows + row]!;
        if (magnitude < MOST && !(Math.abs(found - expected) <= TOLERANCE * magnitude + 1e-30))
          return fault('experts', found, expected);
      }
    }
  }
  return undefined;
}

/** Σ w · x and Σ |w · x|. */
function product(
  w: Float32Array,
  wAt: number,
  x: Float32Array,
  xAt: number,
  width: number,
): [sum: number, magnitude: number] {
  let sum = 0;
  let magnitude = 0;
  for (let i = 0; i < width; i++) {
    const term = w[wAt + i]! * x[xAt + i]!;
    sum += term;
    magnitude += Math.abs(term);
  }
  return [sum, magnitude];
}
