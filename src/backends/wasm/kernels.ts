/** The exports of the kernel modules, and the numbers under which programs call them. */

/** Work kernels in the order of their numbers: `(start, end, scratch, …arguments)`, see assembly/index.ts. */
export const KERNELS = [
  'embed',
  'quantize',
  'mul_mat',
  'route_plan',
  'mul_mat_id',
  'rms_norm',
  'rope',
  'add',
  'add_bias',
  'swiglu',
  'geglu',
  'scale',
  'soft_cap',
  'sigmoid_gate',
  'select_rows',
  'top_k',
  'combine',
  'store_kv',
  'attention',
  'attention_scores',
  'attention_values',
  'attention_merge',
  'read_bytes',
] as const;

export type KernelName = (typeof KERNELS)[number];

/** Not a kernel: copies bytes from one bank to another. */
export const TRANSFER = KERNELS.length;

/** Values that an item of `quantize`, `swiglu` and `geglu` takes. */
export const ITEM_VALUES = 256;

/** Most arguments of a kernel, after start, end and scratch. */
export const MAX_ARGUMENTS = 18;

export type WorkKernel = (start: number, end: number, scratch: number, ...args: number[]) => void;

export type KernelExports = { readonly [name in KernelName]: WorkKernel } & {
  /** Scratch bytes that the matrix kernels need for each worker. */
  readonly SCRATCH_BYTES: WebAssembly.Global;
  /** Rows that are interleaved in a group. */
  readonly GROUP_ROWS: WebAssembly.Global;
  group_bytes(type: number, width: number): number;
  activation_format(type: number): number;
  activation_bytes(format: number, width: number, rows: number): number;
  plan_bytes(rows: number, slots: number, experts: number): number;
  /** `grid` points at the entries of the type's grid (grids.ts), if it has one. */
  repack(type: number, source: number, destination: number, width: number, rows: number, grid: number): void;
  dequantize(type: number, destination: number, group: number, row: number, width: number): void;
  /** Positions of a chunk of the attention kernels. */
  readonly ATTENTION_CHUNK: WebAssembly.Global;
  /** Rows of an item of `attention`; `group` query heads share a head of keys. */
  attention_rows(context: number, group: number): number;
  attention_scratch_bytes(headDim: number, headDimV: number, group: number, context: number): number;
  attention_partial_bytes(rows: number, headCount: number, context: number, headDimV: number): number;
  /** Bytes of one layer's keys or values for one sequence. */
  k_cache_bytes(context: number, headCountKv: number, headDim: number): number;
  v_cache_bytes(context: number, headCountKv: number, headDimV: number): number;
};

/** Every export that is not a work kernel. */
const OTHER_EXPORTS: Readonly<Record<Exclude<keyof KernelExports, KernelName>, true>> = {
  SCRATCH_BYTES: true,
  GROUP_ROWS: true,
  group_bytes: true,
  activation_format: true,
  activation_bytes: true,
  plan_bytes: true,
  repack: true,
  dequantize: true,
  ATTENTION_CHUNK: true,
  attention_rows: true,
  attention_scratch_bytes: true,
  attention_partial_bytes: true,
  k_cache_bytes: true,
  v_cache_bytes: true,
};

/** Exports that this code calls and the module lacks: it was built from other sources. Their arguments are not seen. */
export function missingExports(module: WebAssembly.Module): string[] {
  const present = new Set(WebAssembly.Module.exports(module).map(({ name }) => name));
  return [...KERNELS, ...Object.keys(OTHER_EXPORTS)].filter((name) => !present.has(name));
}
